#!/bin/bash
# Debian's podman with wherry-oci as its runtime: run, -it, exec, logs, stop, kill, pause, update, rm, pods. Its images,
# state and cgroups are this test's own, and no network is set up.
set -u
command -v podman >/dev/null && command -v conmon >/dev/null || { echo "SKIP podman: podman or conmon is not installed"; exit 0; }
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
# Not by --runtime-flag: what podman starts to clean up after an end does not pass it on.
printf '#!/bin/sh\nexec "%s" --root "%s" "$@"\n' "$WHERRY_BIN/wherry-oci" "$work/state" >"$work/wherry-oci"; chmod +x "$work/wherry-oci"
p=(podman --root "$work/store" --runroot "$work/run" --tmpdir "$work/tmp" --storage-driver vfs --cgroup-manager cgroupfs
  --events-backend file --runtime "$work/wherry-oci")
# podman asks for 1048576 descriptors, which takes CAP_SYS_RESOURCE when the caller's own limit is lower.
printf '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n' >"$work/containers.conf"
export CONTAINERS_CONF=$work/containers.conf
own=(--network none --cgroup-parent /$group/podman)
pod() { timeout 60 "${p[@]}" "$@" 2>&1; }
run() { pod run "${own[@]}" "$@"; }
nap() { read -rt "$1" <> <(:); }
wait_for() { local i; for ((i = 0; i < 100; i++)); do eval "$1" && return; nap 0.1; done; return 1; }
make_root "$work/rootfs"
got=$(tar -C "$work/rootfs" -c . | pod import -q - localhost/box) || { FAIL PODMAN_Import "$got"; exit 1; }

# ---- run
expect PODMAN_Run "hello 0" "$(run --rm localhost/box echo hello </dev/null) $?"
run --rm localhost/box sh -c 'exit 42' </dev/null; expect PODMAN_ExitCode 42 $?
expect PODMAN_Stdin from-outside "$(echo from-outside | run --rm -i localhost/box cat)"
expect PODMAN_User '1000:1000' "$(run --rm --user app localhost/box sh -c 'echo $(id -u):$(id -g)' </dev/null)"
expect PODMAN_Environment 'a=1 /tmp box' "$(run --rm -e a=1 -w /tmp --hostname box localhost/box sh -c 'echo a=$a $(pwd) $(cat /proc/sys/kernel/hostname)' </dev/null)"
mkdir "$work/volume"; echo kept >"$work/volume/file"
expect PODMAN_Volume "kept Read-only" "$(run --rm -v "$work/volume:/vol:ro" localhost/box sh -c 'cat /vol/file; touch /vol/x 2>&1 | grep -o Read-only' </dev/null | tr '\n' ' ' | sed 's/ $//')"
expect PODMAN_ReadOnlyRoot 1 "$(run --rm --read-only --read-only-tmpfs=false localhost/box touch /x </dev/null >/dev/null; echo $?)"
match PODMAN_NoSuchProgram '127$' "$(run --rm localhost/box /nonesuch </dev/null; echo $?)"
match PODMAN_NotExecutable '126$' "$(run --rm localhost/box /etc/passwd </dev/null; echo $?)"
# It stays a little: podman loses what a terminal says right before its end now and then, with runc too.
got=$(script -qec "${p[*]} run ${own[*]} --rm -it localhost/box sh -c 'test -t 0 && echo terminal; sleep 0.5'" /dev/null </dev/null 2>&1 | tr -d '\r')
match PODMAN_Terminal '(^|
)terminal' "$got"

# ---- one that stays: ps, exec, logs, pause, update, stop
run -d --name web --memory 64m --pids-limit 50 localhost/box sh -c 'trap "echo ended; exit 0" TERM; echo started; while :; do sleep 0.1; done' </dev/null >/dev/null
expect PODMAN_Running running "$(pod inspect -f '{{.State.Status}}' web)"
wait_for '[[ $(pod logs web) == started ]]'; expect PODMAN_Logs started "$(pod logs web)"
expect PODMAN_Exec "inside 7" "$(pod exec web cat /marker </dev/null) $(pod exec web sh -c 'exit 7' </dev/null >/dev/null; echo $?)"
expect PODMAN_ExecStdin piped "$(echo piped | pod exec -i web cat)"
match PODMAN_ExecTerminal 'terminal' "$(script -qec "${p[*]} exec -it web sh -c 'test -t 0 && echo terminal; sleep 0.5'" /dev/null </dev/null 2>&1)"
expect PODMAN_ExecUser 1000 "$(pod exec --user 1000 web id -u </dev/null)"
match PODMAN_Top 'sh -c' "$(pod top web args 2>&1; pod top web)"
match PODMAN_Stats '"mem_limit"|MemLimit|64MB|67' "$(pod stats --no-stream --format json web)"
pod pause web >/dev/null; expect PODMAN_Paused paused "$(pod inspect -f '{{.State.Status}}' web)"
pod unpause web >/dev/null; expect PODMAN_Unpaused running "$(pod inspect -f '{{.State.Status}}' web)"
start=$SECONDS; pod stop -t 10 web >/dev/null
expect PODMAN_Stop "exited 0" "$(pod inspect -f '{{.State.Status}} {{.State.ExitCode}}' web)"
if ((SECONDS - start < 9)); then PASS PODMAN_StopIsGraceful; else FAIL PODMAN_StopIsGraceful "$((SECONDS - start)) s"; fi
match PODMAN_LogsAfter 'started
ended' "$(pod logs web)"
pod start web >/dev/null; wait_for '[[ $(pod inspect -f "{{.State.Status}}" web) == running ]]'; expect PODMAN_StartAgain 0 $?
pod kill -s KILL web >/dev/null; wait_for '[[ $(pod inspect -f "{{.State.Status}} {{.State.ExitCode}}" web) == "exited 137" ]]'; expect PODMAN_Kill 0 $?
pod rm web >/dev/null; expect PODMAN_Removed "" "$(pod ps -aq)"
run -d --name gone localhost/box sleep 1000 </dev/null >/dev/null; pod rm -f -t 0 gone >/dev/null; expect PODMAN_RemoveForce "" "$(pod ps -aq)"

# ---- a pod: its containers share what the infra container holds
got=$(pod pod create --name two --network none --cgroup-parent /$group/podman --infra-image localhost/box --infra-command /bin/sleep\ 1000); rc=$?
if ((rc == 0)); then
  pod run -d --pod two --name a localhost/box sh -c 'sleep 1000' </dev/null >/dev/null
  pod run -d --pod two --name b localhost/box sleep 1000 </dev/null >/dev/null
  ns() { readlink "/proc/$(pod inspect -f '{{.State.Pid}}' "$1")/ns/$2"; }
  for kind in net ipc uts; do expect "PODMAN_PodShares_$kind" "$(ns a $kind)" "$(ns b $kind)"; done
  expect PODMAN_PodRunning Running "$(pod pod inspect two | jq -r .State)"
  pod pod pause two >/dev/null; expect PODMAN_PodPaused paused "$(pod inspect -f '{{.State.Status}}' a)"
  pod pod unpause two >/dev/null; pod pod stop -t 1 two >/dev/null
  pod pod rm -f two >/dev/null; expect PODMAN_PodRemoved "" "$(pod pod ps -q)$(pod ps -aq)"
else
  FAIL PODMAN_PodCreate "$got"
fi

pod rm -fa -t 0 >/dev/null; pod pod rm -fa >/dev/null
expect PODMAN_NothingOfOurs "" "$(oci list -q)"
grep -F "$work/" /proc/self/mountinfo | awk '{print $5}' | sort -r | while read -r path; do umount "$path"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left PODMAN_NothingLeft "$before"
exit $failed
