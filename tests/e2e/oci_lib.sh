# Shared by the scripts over wherry-oci: a root, bundles by jq, and what must be the same afterwards.
: "${WHERRY_BIN:?is set by tools/test}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/wherry-e2e.XXXXXX") failed=0
group=wherry-e2e-$$  # the cgroup parent of this run: others may run beside it
oci() { "$WHERRY_BIN/wherry-oci" --root "$work/state" "$@"; }
PASS() { echo "PASS $1"; }
FAIL() { echo "FAIL $1: $2"; failed=1; }
SKIP() { echo "SKIP $1: $2"; }
# expect NAME WANTED GOT
expect() { if [[ $3 == "$2" ]]; then PASS "$1"; else FAIL "$1" "wanted '$2', got '$3'"; fi; }
match() { if [[ $3 =~ $2 ]]; then PASS "$1"; else FAIL "$1" "wanted a match of '$2', got '$3'"; fi; }

# The state of the host that no container may change, told by nothing of ours, an item a line. Of processes only ours
# count, which the cgroup or a mount tells; who ends elsewhere in the meantime changes nothing.
snapshot() {
  awk '{print "mount", $3, $4, $5}' /proc/self/mountinfo
  find /sys/fs/cgroup -type d -path "*/$group*"
  local mine; mine=$(readlink /proc/self/ns/mnt)
  grep -ls -e "$work" -e "/$group" /proc/[0-9]*/{cgroup,mountinfo} | cut -d / -f 3 | sort -u | while read -r pid; do
    [[ $(readlink "/proc/$pid/ns/mnt") == "$mine" ]] || echo "process $pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"
  done
  ls -d /sys/class/block/loop*/loop 2>/dev/null
  bpftool prog show 2>/dev/null | grep cgroup_device | cut -d : -f 1 | sed 's/^/program /'
}
# nothing_left NAME SNAPSHOT: within five seconds nothing is there that the snapshot does not have.
nothing_left() {
  local left i
  for ((i = 0; i < 50; i++)); do
    left=$(comm -13 <(sort <<<"$2") <(snapshot | sort)); [[ -z $left ]] && break; read -rt 0.1 <> <(:)
  done
  expect "$1" '' "$left"
}
make_root() { # DIR
  mkdir -p "$1"/{bin,etc,tmp,proc,sys,dev,vol,root}
  cp /bin/busybox "$1/bin/"; for a in sh ls cat id env sleep true mount umount grep ps stty echo touch mkdir ln rm head tail wc seq dd kill yes tr cut test stat chmod; do ln -sf busybox "$1/bin/$a"; done
  cp "$work/attack" "$1/bin/"; echo inside >"$1/marker"
  printf 'root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n' >"$1/etc/passwd"
  printf 'root:x:0:\napp:x:1000:\nextra:x:2000:app\n' >"$1/etc/group"
}
base_config='{"ociVersion":"1.0.2","process":{"user":{"uid":0,"gid":0},"args":["true"],"env":["PATH=/bin"],"cwd":"/","noNewPrivileges":true,
 "capabilities":{"bounding":["CAP_KILL","CAP_CHOWN"],"effective":["CAP_KILL","CAP_CHOWN"],"permitted":["CAP_KILL","CAP_CHOWN"]}},
 "root":{"path":"rootfs"},"hostname":"e2e","mounts":[{"destination":"/proc","type":"proc","source":"proc"},
 {"destination":"/dev","type":"tmpfs","source":"tmpfs","options":["nosuid","mode=755","size=65536k"]},
 {"destination":"/dev/pts","type":"devpts","source":"devpts","options":["nosuid","noexec","newinstance","ptmxmode=0666","mode=0620","gid=5"]},
 {"destination":"/sys","type":"sysfs","source":"sysfs","options":["nosuid","noexec","nodev","ro"]}],
 "linux":{"namespaces":[{"type":"pid"},{"type":"network"},{"type":"ipc"},{"type":"uts"},{"type":"mount"},{"type":"cgroup"}],
 "resources":{"devices":[{"allow":false,"access":"rwm"}]},"maskedPaths":["/proc/kcore","/proc/keys"],"readonlyPaths":["/proc/sys"]}}'
# bundle NAME [JQ-EDIT [jq args...]]: a bundle with a root of its own; prints its directory
bundle() {
  local dir=$work/$1; shift
  mkdir -p "$dir"; [[ -d $dir/rootfs ]] || make_root "$dir/rootfs"
  local edit=${1:-.}; shift || true
  jq ".linux.cgroupsPath=\"/$group/$(basename "$dir")\" | $edit" "$@" <<<"$base_config" >"$dir/config.json"
  echo "$dir"
}
# shell NAME SCRIPT [JQ-EDIT]: runs a shell script in a container; its output
shell() { local b; b=$(bundle "$1" "${3:-.} | .process.args=[\"sh\",\"-c\",\$s]" --arg s "$2"); oci run -b "$b" "$1" 2>&1 </dev/null; }
finish() {
  local id
  for id in $(oci list -q 2>/dev/null); do oci delete -f "$id"; done
  find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
  rm -rf "$work"
}
trap finish EXIT
gcc -O1 -static -o "$work/attack" "$here/../payload/attack.c" || { echo "FAIL payload: attack.c does not build"; exit 1; }
