#!/bin/bash
# An error in a system call of a start of wherry-oci: the same container, or an error and nothing left (REL-21). A
# sample of the calls, all of them with each error with WHERRY_LONG=1. Words select of: run create start init.
. "$(dirname "$0")/../e2e/lib.sh"
begin syscall_error
SUITE=$suite WORK=$work WHERRY_BIN=$bin python3 "$(dirname "$0")/syscall_error.py" "$@" || fail driver "it ended with status $?"
finish
