#!/bin/bash
# Inside of the machine of v2_test.sh, as root: what must be as on the host, on pure cgroup v2.
set -uo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${WHERRY_BIN:?}" "${WHERRY_TEST_IMAGE:?}" "${WHERRY_PAYLOAD:?}"
PASS() { echo "PASS $1"; }
FAIL() { echo "FAIL $1: $2"; }
expect() { if [[ $3 == "$2" ]]; then PASS "$1"; else FAIL "$1" "wanted '$2', got '$3'"; fi; }
step() { echo "guest: $1, at ${SECONDS} s"; }

expect cgroup2 cgroup2fs "$(stat -fc %T /sys/fs/cgroup)"
expect no_hybrid '' "$(grep -w cgroup /proc/self/mountinfo | grep -v cgroup2)"

# The modules' own tests against this kernel
for program in kernel_cgroups kernel_bpf; do
  step $program
  [[ -x $WHERRY_BIN/$program ]] || { echo "SKIP $program: it is not built"; continue; }
  timeout 120 "$WHERRY_BIN/$program" --gtest_color=no >/run/tmp/log 2>&1; rc=$?
  sed -n "s/^\[       OK \] \([^ ]*\).*/PASS $program:\1/p; s/^\[  FAILED  \] \([^ ,]*\) (.*/FAIL $program:\1: see the log/p
    s/^SKIP \(.*\)/SKIP $program:\1/p" /run/tmp/log
  ((rc == 0)) || { grep -q '^\[  FAILED' /run/tmp/log || FAIL $program "status $rc"; grep -B20 FAILED /run/tmp/log | tail -n 40; }
done

step wherry-oci
oci() { "$WHERRY_BIN/wherry-oci" --root /run/tmp/oci "$@"; }
b=/run/tmp/bundle; mkdir -p $b; cp -a "$WHERRY_TEST_IMAGE/rootfs" $b/rootfs
config() {  # COMMAND, as a JSON array
  jq -n --argjson command "$1" '{ociVersion: "1.0.2", process: {user: {uid: 0, gid: 0}, args: $command, env: ["PATH=/bin:/usr/bin"], cwd: "/"},
    root: {path: "rootfs"}, mounts: [{destination: "/proc", type: "proc", source: "proc"},
      {destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"]},
      {destination: "/sys/fs/cgroup", type: "cgroup", source: "cgroup", options: ["ro", "nosuid", "noexec", "nodev"]}],
    linux: {cgroupsPath: "/wherry-v2/one", namespaces: [{type: "pid"}, {type: "mount"}, {type: "ipc"}, {type: "uts"}, {type: "cgroup"}, {type: "network"}],
      resources: {memory: {limit: 33554432}, pids: {limit: 20}, cpu: {quota: 50000, period: 100000}, devices: [{allow: false, access: "rwm"}]}}}' >$b/config.json
}
config '["sh", "-c", "cat /proc/self/cgroup; exit 7"]'
out=$(oci run -b $b one </dev/null); expect oci_run_status 7 $?
expect oci_cgroup_namespace 0::/ "$out"
config '["sleep", "1000"]'
oci create -b $b one </dev/null >/dev/null 2>&1; expect oci_create 0 $?
expect oci_created created "$(oci state one | jq -r .status)"
oci start one; expect oci_running running "$(oci state one | jq -r .status)"
expect oci_memory 33554432 "$(cat /sys/fs/cgroup/wherry-v2/one/memory.max)"
expect oci_pids 20 "$(cat /sys/fs/cgroup/wherry-v2/one/pids.max)"
expect oci_cpu '50000 100000' "$(cat /sys/fs/cgroup/wherry-v2/one/cpu.max)"
expect oci_device_program 1 "$(bpftool -j cgroup show /sys/fs/cgroup/wherry-v2/one 2>/dev/null | jq length)"
expect oci_exec inside "$(oci exec one sh -c 'echo inside; exit 3' </dev/null)"
oci exec one sh -c 'exit 3' </dev/null; expect oci_exec_status 3 $?
oci kill one KILL; for _ in {1..50}; do [[ $(oci state one | jq -r .status) == stopped ]] && break; sleep 0.1; done
expect oci_stopped stopped "$(oci state one | jq -r .status)"
oci delete one; expect oci_deleted 0 $?
rmdir /sys/fs/cgroup/wherry-v2 2>/dev/null
expect oci_nothing_left '' "$(find /sys/fs/cgroup -path '*wherry-v2/*'; oci list -q; ls /run/tmp/oci)"

# The whole road: what the same scripts say on the hybrid host. Emulation is slow, and a little unfair.
step limits
WHERRY_CPU_MARGIN=20 WHERRY_BOMB_MS=8000 timeout 200 "$top/tests/e2e/limits_test.sh"
step soak
WHERRY_SOAK_PODS=${WHERRY_VM_PODS:-6} WHERRY_SOAK_AT_ONCE=4 timeout 200 "$top/tests/e2e/soak_test.sh"
step end
