#!/bin/bash
# wherry-oci dies or fails at every point of create, start and delete: `delete -f` leaves nothing (REL-10, REL-21).
# WHERRY_SEED=N repeats a run.
. "$(dirname "$0")/../e2e/lib.sh"
begin create_kill
"$top/tools/dev/make-image" "$work/image" >/dev/null 2>"$work/err" || { fail image "$(tail -n 1 "$work/err")"; exit 1; }
if ! grep -qF WHERRY_FAULT "$bin/wherry-oci"; then skip all "$bin/wherry-oci is built without fault points"; exit 0; fi
SUITE=$suite WORK=$work WHERRY_BIN=$bin python3 "$(dirname "$0")/create_kill.py" "$top" || fail driver "it ended with status $?"
finish
