#!/bin/bash
# The commands of README.md, "First steps", as a reader would run them: the block as it stands.
. "$(dirname "$0")/lib.sh"
begin readme

sed -n '/^## First steps/,/^## /{/^    /s/^    //p}' "$top/README.md" >"$work/block"
check_has block_found 'wherry run' "$(cat "$work/block")"
# The programs under test, and a directory of our own for the image.
sed -i "s#\$PWD/build/release/bin#$bin#; s#/tmp/hello#$work/hello#g" "$work/block"
(cd "$top" && timeout 120 bash -euo pipefail "$work/block") >"$work/out" 2>"$work/err" </dev/null
check runs "status 0" "status $?$(head -c 300 "$work/err" | grep '^wherry: ')"
out=$(cat "$work/out")
check_has says_hello 'hello from ' "$out"
check_has serves $'\nit works\n' "$out"
check_has logs_the_request 'response:200' "$out$(cat "$work/err")"
check_has phase '"Running"' "$out"
check_has no_leaks 'leaks: none' "$(tail -n 1 "$work/out")"

usage=$("$top/tools/dev/make-image" --help 2>&1)
check make_image_help 0 $?
check_has make_image_usage 'usage: tools/dev/make-image [--tar] DIR' "$usage"
check_status make_image_flag 2 "$top/tools/dev/make-image" --nonesuch
check_status make_image_nothing 2 "$top/tools/dev/make-image"
finish
