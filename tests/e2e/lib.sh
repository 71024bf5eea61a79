# What the end-to-end scripts share; to be sourced. A script calls `begin NAME`, then `check` and its kin,
# and `finish` last. Every test prints one line: PASS name, FAIL name: why, or SKIP name: why.
#
#   $W        the program `wherry`, with a store, a state directory and a cgroup parent of this script's own
#   $work     a scratch directory that is removed at the end
#   $image    "localhost/hello:latest", once `import_image` was called
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
bin=${WHERRY_BIN:-$top/build/dev/bin}
image=localhost/hello:latest

begin() {  # NAME
  suite=$1
  [[ $(id -u) == 0 ]] || { echo "SKIP $suite: root is needed"; exit 0; }
  [[ -x $bin/wherry ]] || { echo "FAIL $suite: there is no $bin/wherry"; exit 1; }
  work=$(mktemp -d "${TMPDIR:-/tmp}/wherry-$suite.XXXXXX")
  export WHERRY_ROOT=$work/root WHERRY_STATE=$work/state WHERRY_CGROUP_PARENT=/wherry-test-$suite-$$
  W=$bin/wherry
  trap end_all EXIT
}

pass() { echo "PASS $suite:$1"; }
fail() { echo "FAIL $suite:$1: $2"; }
skip() { echo "SKIP $suite:$1: $2"; }

# check NAME EXPECTED ACTUAL
check() {
  if [[ $2 == "$3" ]]; then pass "$1"; else fail "$1" "wanted $(printf %q "$2"), got $(printf %q "$3")"; fi
}
# check_has NAME TEXT-PART TEXT
check_has() {
  if [[ $3 == *"$2"* ]]; then pass "$1"; else fail "$1" "$(printf %q "$2") is not in $(printf %q "$3")"; fi
}
# check_status NAME STATUS COMMAND...: the exit status; output goes to $work/out and $work/err.
check_status() {
  local name=$1 wanted=$2; shift 2
  "$@" >"$work/out" 2>"$work/err" </dev/null; local got=$?
  if ((got == wanted)); then pass "$name"; else
    fail "$name" "status $got, wanted $wanted: $(head -c 300 "$work/err" | tr '\n' ' ')"
  fi
}
# until_true SECONDS COMMAND...: again and again until it is true.
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || return 1
    read -r -t 0.05 <> <(:) || true
  done
}

# Makes the image, or takes the one that was made in WHERRY_TEST_IMAGE already.
import_image() {
  local made=${WHERRY_TEST_IMAGE:-$work/image}
  { [[ -e $made/oci/index.json ]] || "$top/tools/dev/make-image" "$made" >/dev/null 2>"$work/err"; } &&
    "$W" image import "$made/oci" "$image" >"$work/out" 2>>"$work/err" && return
  fail import "$(tail -n 3 "$work/err" | tr '\n' ' ')"
  exit 1
}

# What of this script's is on the host. Asks the kernel alone, nothing of the project.
leftovers() {
  grep -F "$work/" /proc/self/mountinfo
  local path
  for path in /sys/fs/cgroup"$WHERRY_CGROUP_PARENT" /sys/fs/cgroup/*"$WHERRY_CGROUP_PARENT"; do
    [[ -d $path ]] && find "$path" -mindepth 1 -type d
  done
  # An orphan that has ended is the host's init's to reap, which may take it a while.
  for path in $(grep -lF ":$WHERRY_CGROUP_PARENT/" /proc/[0-9]*/cgroup 2>/dev/null); do
    grep -qE '\) Z 1 ' "${path%cgroup}stat" 2>/dev/null || { [[ -e $path ]] && echo "$path"; }
  done
  losetup -a 2>/dev/null | grep -F "$work/"
  find "$work/state/pods" "$work/root/pods" -mindepth 1 -maxdepth 1 2>/dev/null
}

end_all() {
  local path
  "$W" rm -f $("$W" ps -aq 2>/dev/null) >/dev/null 2>&1
  for path in /sys/fs/cgroup"$WHERRY_CGROUP_PARENT" /sys/fs/cgroup/*"$WHERRY_CGROUP_PARENT"; do
    [[ -d $path ]] || continue
    [[ -e $path/cgroup.kill ]] && echo 1 >"$path/cgroup.kill"
    find "$path" -depth -type d -exec rmdir {} + 2>/dev/null
  done
  rm -rf "$work"
}

# Removes what is there in the proper way and then looks for what the proper way has left.
finish() {
  local pods; pods=$("$W" ps -aq)
  [[ -z $pods ]] || "$W" rm -f $pods >/dev/null 2>"$work/err" || fail remove "$(cat "$work/err")"
  local left; left=$(leftovers)
  check nothing_left '' "$left"
  check leaks_none 'leaks: none' "$("$W" leaks 2>&1)"
}
