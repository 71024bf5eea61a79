#!/bin/bash
# The worker dies by SIGKILL: logs whole, exit codes true, nothing of it needs a verb (REL-04, 23, 24, 28).
# WHERRY_SEED=N repeats a run.
. "$(dirname "$0")/../e2e/lib.sh"
begin worker_kill
import_image
SUITE=$suite WORK=$work WHERRY_BIN=$bin python3 "$(dirname "$0")/worker_kill.py" || fail driver "it ended with status $?"
finish
