#!/bin/bash
# Pure cgroup v2, on a kernel of another version: one boot of a QEMU machine that sees these programs.
# The lines of the guest's tests are this script's, with "v2." before each name.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(cd "$here/../.." && pwd)
: "${WHERRY_BIN:=$top/build/dev/bin}"
vmrun=${WHERRY_SHARED:-$top/../shared}/tools/vmrun.sh
[[ -x $vmrun ]] || { echo "SKIP v2: there is no ${vmrun##*/} in WHERRY_SHARED/tools"; exit 0; }
command -v qemu-system-x86_64 >/dev/null || { echo "SKIP v2: qemu-system-x86_64 is not installed"; exit 0; }
[[ $(id -u) == 0 ]] || { echo "SKIP v2: root is needed"; exit 0; }

# What takes long under emulation is made here: the guest reads this machine's files.
work=$(mktemp -d "${TMPDIR:-/tmp}/wherry-v2.XXXXXX"); trap 'rm -rf "$work"' EXIT
"$top/tools/dev/make-image" "$work/image" >/dev/null 2>"$work/err" || { echo "FAIL v2: make-image: $(tail -n 2 "$work/err")"; exit 1; }
gcc -O1 -static -o "$work/attack" "$top/tests/payload/attack.c" || { echo "FAIL v2: attack.c does not build"; exit 1; }

cd "$top" || exit 1
"$vmrun" --mem 1536 --timeout "${WHERRY_VM_SECONDS:-540}" --env WHERRY_BIN="$(realpath "$WHERRY_BIN")" --env WHERRY_LONG \
  --env WHERRY_TEST_IMAGE="$work/image" --env WHERRY_PAYLOAD="$work/attack" -- tests/vm/guest.sh >"$work/out" 2>"$work/err"
rc=$?
grep -E '^(PASS|FAIL|SKIP) ' "$work/out" | sed 's/^\([A-Z]*\) /\1 v2./'
grep -q '^guest: end' "$work/out" || { echo "FAIL v2: the guest ended early with status $rc"; tail -n 30 "$work/out" "$work/err"; exit 1; }
grep -vE '^(PASS|SKIP) ' "$work/out" | tail -n 60
! grep -q '^FAIL ' "$work/out"
