#!/bin/bash
# Races and wrong states (REL-06, 07, 09, 12, 13, 16, 20, 21, 30, 32, 35, 39, 42). Words select tests of states.py;
# WHERRY_SEED=N repeats a run.
. "$(dirname "$0")/../e2e/lib.sh"
begin states
import_image
SUITE=$suite WORK=$work WHERRY_BIN=$bin python3 "$(dirname "$0")/states.py" "$@" || fail driver "it ended with status $?"
finish
