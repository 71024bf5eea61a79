#!/bin/bash
# The same bundles through wherry-oci, crun and runc. In a mount namespace of its own: its mounts end with it.
#   tests/e2e/differential_test.sh [CASE...]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${WHERRY_BIN:-$here/../../build/dev/bin}
[[ $(id -u) == 0 ]] || { echo "SKIP differential: root is needed"; exit 0; }
for peer in crun runc; do
  command -v $peer >/dev/null || { echo "SKIP differential: $peer is not installed"; exit 0; }
done
exec unshare --mount --propagation private /usr/bin/python3 -B "$here/differential.py" --bin "$bin" "$@"
