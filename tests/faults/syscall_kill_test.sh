#!/bin/bash
# The command line of wherry-oci dies at one of its system calls: `delete -f` leaves nothing (REL-10). A sample of the
# calls, all of them with WHERRY_LONG=1.
. "$(dirname "$0")/../e2e/lib.sh"
begin syscall_kill
"$top/tools/dev/make-image" "$work/image" >/dev/null 2>"$work/err" || { fail image "$(tail -n 1 "$work/err")"; exit 1; }
SUITE=$suite WORK=$work WHERRY_BIN=$bin python3 "$(dirname "$0")/syscall_kill.py" || fail driver "it ended with status $?"
finish
