#!/bin/bash
# Debian's containerd and ctr with wherry-oci as the runtime's program: run, exec, -t, kill, pause, update, metrics,
# events, delete. The containerd is this test's own: root, state, socket.
set -u
command -v containerd >/dev/null && command -v ctr >/dev/null || { echo "SKIP ctr: containerd is not installed"; exit 0; }
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
nap() { read -rt "$1" <> <(:); }
wait_for() { local i; for ((i = 0; i < 100; i++)); do eval "$1" && return; nap 0.1; done; return 1; }
had_sockets=no; [[ -d /run/containerd ]] && had_sockets=yes
mkdir -p "$work/c"
cat >"$work/c/config.toml" <<TOML
version = 2
root = "$work/c/root"
state = "$work/c/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
address = "$work/c/sock"
TOML
containerd -c "$work/c/config.toml" >"$work/c/log" 2>&1 & daemon=$!
ctr() { timeout 60 ctr -a "$work/c/sock" -n e2e "$@" 2>&1; }
end_daemon() {
  [[ -n $daemon ]] || return
  local name; for name in $(ctr c ls -q 2>/dev/null); do ctr t kill -s KILL "$name"; ctr t delete -f "$name"; ctr c delete "$name"; done >/dev/null 2>&1
  kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; daemon=
  [[ $had_sockets == no ]] && rmdir /run/containerd/s /run/containerd 2>/dev/null
}
trap 'end_daemon; finish' EXIT
wait_for 'ctr version >/dev/null' || { FAIL CTR_Daemon "$(tail -n 3 "$work/c/log")"; exit 1; }
ctr events >"$work/c/events" & listener=$!

make_root "$work/rootfs"
own() { echo --runc-binary "$WHERRY_BIN/wherry-oci" --runc-root "$work/c/runc" --cgroup "/$group/ctr/$1" --rootfs; }
# run NAME [flag...] -- command...: the flags come before the operands
run() { local name=$1 flags=(); shift; while [[ $1 != -- ]]; do flags+=("$1"); shift; done; shift
  ctr run $(own "$name") "${flags[@]}" "$work/rootfs" "$name" "$@"; }

expect CTR_Run inside "$(run one --rm -- cat /marker </dev/null)"
run code --rm -- sh -c 'exit 9' </dev/null >/dev/null; expect CTR_ExitCode 9 $?
match CTR_Failure 'nonesuch' "$(run bad --rm -- /nonesuch </dev/null)"
match CTR_Terminal 'terminal' "$(script -qec "ctr -a $work/c/sock -n e2e run $(own tty) --rm -t $work/rootfs tty sh -c 'test -t 0 && echo terminal'" /dev/null </dev/null 2>&1)"

run web -d -- sh -c 'while :; do sleep 0.1; done' </dev/null
status() { ctr t ls | awk -v name="$1" '$1 == name {print $3}'; }
expect CTR_Running RUNNING "$(status web)"
init=$(ctr t ls | awk '$1 == "web" {print $2}')
expect CTR_Exec inside "$(ctr t exec --exec-id x1 web cat /marker </dev/null)"
ctr t exec --exec-id x2 web sh -c 'exit 3' </dev/null >/dev/null; expect CTR_ExecCode 3 $?
match CTR_ExecTerminal terminal "$(script -qec "ctr -a $work/c/sock -n e2e t exec -t --exec-id x3 web sh -c 'test -t 0 && echo terminal'" /dev/null </dev/null 2>&1)"
match CTR_Ps "^$init " "$(ctr t ps web | grep "^$init")"
match CTR_Metrics 'memory|cpu' "$(ctr t metrics web)"
ctr t pause web; expect CTR_Pause PAUSED "$(status web)"
match CTR_ExecPaused 'paused' "$(ctr t exec --exec-id x4 web true </dev/null)"
ctr t resume web; expect CTR_Resume RUNNING "$(status web)"
ctr t kill -s TERM web; nap 0.3; expect CTR_KillIgnoredByInit RUNNING "$(status web)"
ctr t kill -s KILL web; wait_for '[[ $(status web) == STOPPED ]]'; expect CTR_Kill 0 $?
ctr t delete web >/dev/null; ctr c delete web; expect CTR_Deleted "" "$(ctr t ls -q)$(ctr c ls -q)"
run forced -d -- sleep 1000 </dev/null; ctr t pause forced; ctr t delete -f forced >/dev/null; ctr c delete forced
expect CTR_DeleteForceOfPaused "" "$(ctr t ls -q)$(ctr c ls -q)"
nap 0.3
for topic in create start exec-added exec-started exit paused resumed delete; do
  match "CTR_Event_$topic" "/tasks/$topic" "$(grep -m1 "/tasks/$topic" "$work/c/events")"
done
kill $listener; wait $listener 2>/dev/null
expect CTR_NothingOfOurs "" "$(ls -A "$work/c/runc/e2e" 2>/dev/null)"
end_daemon
grep -F "$work/" /proc/self/mountinfo | awk '{print $5}' | sort -r | while read -r path; do umount "$path"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left CTR_NothingLeft "$before"
exit $failed
