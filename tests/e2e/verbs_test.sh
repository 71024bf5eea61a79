#!/bin/bash
# runc's command line beyond create, start, kill, delete: ps, pause, resume, update, events, spec, features, and the
# flags that engines pass. And why a start failed, when a limit of the spec was the reason.
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
top=/sys/fs/cgroup; v2=$top; [[ -d $top/unified ]] && v2=$top/unified
nap() { read -rt "$1" <> <(:); }
wait_for() { local i; for ((i = 0; i < 100; i++)); do eval "$1" && return; nap 0.05; done; return 1; }
status() { oci state "$1" | jq -r .status; }
# where CONTROLLER: the directory with its files
where() { if [[ -d $top/$1/$group ]]; then echo "$top/$1/$group"; else echo "$v2/$group"; fi; }

# ---- --timing: the phases of a start are nearly all of its time (the end of the program itself is in none). The best
# of twenty: with a busy neighbour the time between two phases is the neighbour's.
b=$(bundle timed '.process.args=["true"]')
best=$(python3 -c '
import os, sys, time
def part():
    out = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 2, sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
    began = time.monotonic()
    os.waitpid(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=out), 0)
    took = time.monotonic() - began
    return float(open(sys.argv[1]).readlines()[-1].split()[0]) / 10 / took
print(int(max(part() for _ in range(20))))' "$work/times" "$WHERRY_BIN/wherry-oci" --root "$work/state" run --timing -b "$b" timed)
if ((best >= 80)); then PASS VERB_TimingAddsUp; else FAIL VERB_TimingAddsUp "the phases are $best % of the wall time at best: $(cat "$work/times")"; fi
expect VERB_TimingPhases "start of the program;config.json;clone;init, up to the gate;mounts;gate and execve;delete;in all" "$(sed -E 's/^ *[0-9.]+ ms  //' "$work/times" | grep -xE 'start of the program|config.json|clone|init, up to the gate|mounts|gate and execve|delete|in all' | tr '\n' ';' | sed 's/;$//')"
b=$(bundle timed2 '.process.args=["true"]'); oci create --timing -b "$b" timed2 </dev/null 2>"$work/times"; expect VERB_TimingOfCreate 1 "$(grep -c 'in all$' "$work/times")"
oci start --timing timed2 2>"$work/times"; expect VERB_TimingOfStart 1 "$(grep -c 'gate and execve$' "$work/times")"; oci delete -f timed2

# ---- pause, resume, ps, kill and exec of a paused one
b=$(bundle busy '.process.args=["sh","-c","while :; do date +%s%N >/tmp/now; sleep 0.02; done"]'); ln -sf busybox "$b/rootfs/bin/date"
oci run -d -b "$b" busy </dev/null >/dev/null 2>&1
wait_for '[[ -s $b/rootfs/tmp/now ]]'
init=$(oci state busy | jq .pid)
expect VERB_Resume_of_a_running_one 1 "$(oci resume busy 2>/dev/null; echo $?)"
oci pause busy; expect VERB_Pause "0 paused" "$? $(status busy)"
a=$(cat "$b/rootfs/tmp/now"); nap 0.3; expect VERB_PausedStandsStill "$a" "$(cat "$b/rootfs/tmp/now")"
got=$(oci pause busy 2>&1); match VERB_PauseTwice 'paused already' "$got"
got=$(timeout 10 "$WHERRY_BIN/wherry-oci" --root "$work/state" exec busy true 2>&1 </dev/null); rc=$?
match VERB_ExecIntoPausedRefused '^255 .*it is paused' "$rc $got"
match VERB_PsOfPaused "[[,]$init[],]" "$(oci ps -f json busy)"
oci resume busy; expect VERB_Resume "0 running" "$? $(status busy)"
wait_for '[[ $(cat "$b/rootfs/tmp/now") != "$a" ]]'; expect VERB_ResumedGoesOn 0 $?
match VERB_PsTable "PID.*$init" "$(oci ps busy | tr '\n' ' ')"
match VERB_PsOptions "^PID +COMMAND $init" "$(oci ps busy -eo pid,comm | tr -s ' \n' ' ' | sed 's/^ //')"
match VERB_PsWithoutPidColumn "no column 'PID'" "$(oci ps busy -eo comm 2>&1)"
oci pause busy; oci kill busy KILL; wait_for '[[ $(status busy) == stopped ]]'; expect VERB_KillOfPaused 0 $?
expect VERB_PsOfStopped '[]' "$(oci ps -f json busy)"
match VERB_PauseOfStopped 'it is not running' "$(oci pause busy 2>&1)"
oci delete busy
oci run -d -b "$b" busy </dev/null >/dev/null 2>&1; oci pause busy
oci delete --force busy; expect VERB_DeleteForceOfPaused "0 " "$? $(oci list -q)"

# ---- update
b=$(bundle upd '.process.args=["sleep","1000"] | .linux.resources.memory.limit=67108864')
oci run -d -b "$b" upd </dev/null >/dev/null 2>&1
memory=$(where memory)/upd; memory_file=memory.max; [[ -e $memory/$memory_file ]] || memory_file=memory.limit_in_bytes
oci update --memory 100m --pids-limit 77 upd
expect VERB_UpdateFlags "0 104857600 77" "$? $(cat "$memory/$memory_file") $(cat "$(where pids)/upd/pids.max")"
echo '{"memory":{"limit":134217728},"pids":{"limit":55}}' | oci update --resources - upd
expect VERB_UpdateStdin "0 134217728 55" "$? $(cat "$memory/$memory_file") $(cat "$(where pids)/upd/pids.max")"
oci update --cpu-quota 30000 --cpu-period 60000 upd; oci update --cpu-quota 20000 upd
cpu=$(where cpu)/upd; expect VERB_UpdateQuotaKeepsPeriod "20000 60000" "$(if [[ -e $cpu/cpu.max ]]; then cat "$cpu/cpu.max"; else echo "$(cat "$cpu/cpu.cfs_quota_us") $(cat "$cpu/cpu.cfs_period_us")"; fi)"
oci update --pids-limit -1 upd; expect VERB_UpdateUnlimited max "$(cat "$(where pids)/upd/pids.max")"
match VERB_UpdateBadNumber "^1 .*--memory: 'lots' is not" "$(got=$(oci update --memory lots upd 2>&1); echo "$? $got")"
match VERB_UpdateBadDocument "^1 .*standard input:.*limit" "$(got=$(echo '{"pids":{"limit":"x"}}' | oci update -r - upd 2>&1); echo "$? $got")"
match VERB_UpdateRefusedByName 'kernel-memory' "$(oci update --kernel-memory 1m upd 2>&1)"
# Device rules are replaced in one step: the running container sees them, and one program is there at any time.
mknod "$b/rootfs/tmp/node" c 10 200
opens() { oci exec upd sh -c ': </tmp/node' 2>&1 </dev/null | grep -o 'Operation not permitted'; }
expect VERB_DeviceDeniedBefore 'Operation not permitted' "$(opens)"
echo '{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":10,"minor":200,"access":"r"}]}' | oci update -r - upd
expect VERB_DeviceAllowedAfter '' "$(opens)"
expect VERB_OneDeviceProgram 1 "$(bpftool cgroup show "$v2/$group/upd" 2>/dev/null | grep -c wherry_devices)"

# ---- events
oci events --stats upd >"$work/stats"
expect VERB_EventsStats 'stats upd true true 134217728 true' "$(jq -r '"\(.type) \(.id) \(.data.cpu.usage.total>0) \(.data.memory.usage.usage>0) \(.data.memory.usage.limit) \(.data.pids.current>0)"' "$work/stats")"
"$WHERRY_BIN/wherry-oci" --root "$work/state" events --interval 100ms upd >"$work/events" & watcher=$!
wait_for '[[ $(grep -c stats "$work/events") -ge 3 ]]'; expect VERB_EventsGoOn 0 $?
oci update --memory 16m upd
oci exec upd sh -c 'dd if=/dev/zero of=/dev/null bs=64M count=1' </dev/null >/dev/null 2>&1; expect VERB_OomOfExec 137 $?
wait_for 'grep -q "\"type\":\"oom\"" "$work/events"'; expect VERB_EventsOom 0 $?
oci delete --force upd; wait_for '! [[ -e /proc/'$watcher' ]] || grep -q "^State:.Z" /proc/'$watcher'/status'
wait $watcher; expect VERB_EventsEndWithIt "0 1" "$? $(grep -c '"type":"oom"' "$work/events")"
match VERB_EventsBadInterval "is not a time" "$(oci events --interval 5 upd 2>&1)"

# ---- spec, features
mkdir "$work/new"; make_root "$work/new/rootfs"; (cd "$work/new" && oci spec)
expect VERB_SpecRuns "inside /" "$(script -qec "cd $work/new && echo 'cat /marker; pwd; exit' | $WHERRY_BIN/wherry-oci --root $work/state run new" /dev/null </dev/null 2>&1 | tr -d '\r' | grep -xE 'inside|/' | tr '\n' ' ' | sed 's/ $//')"
jq '.process.terminal=false | .process.args=["cat","/marker"]' "$work/new/config.json" >"$work/c" && mv "$work/c" "$work/new/config.json"
expect VERB_SpecRunsWithoutTerminal inside "$(oci run -b "$work/new" new </dev/null)"
command -v runc >/dev/null && expect VERB_SpecRunsUnderRunc inside "$(runc --root "$work/runc" run -b "$work/new" new-runc </dev/null 2>&1)"
match VERB_SpecDoesNotOverwrite 'not overwritten' "$(cd "$work/new" && oci spec 2>&1)"
oci features >"$work/features"
expect VERB_FeaturesRequired '1.0.0 true true true' "$(jq -r '"\(.ociVersionMin) \(.ociVersionMax|startswith("1.")) \(.mountOptions|index("rbind")!=null) \(.linux.namespaces|index("pid")!=null)"' "$work/features")"
# What it says of hooks is what create does.
for hook in prestart createRuntime createContainer startContainer poststart poststop; do
  b=$(bundle hooked ".hooks.$hook=[{\"path\":\"/bin/true\"}]"); oci run -b "$b" hooked </dev/null >/dev/null 2>&1; works=$?
  if jq -e ".hooks|index(\"$hook\")!=null" "$work/features" >/dev/null; then expect "VERB_FeaturesHook_$hook" 0 $works; else expect "VERB_FeaturesNoHook_$hook" 1 $works; fi
done

# ---- what engines pass
b=$(bundle eng '.process.args=["sh","-c","echo from-3 $(cat <&3)"]')
expect VERB_PreserveFds "from-3 hello" "$(oci run --preserve-fds 1 -b "$b" eng 3< <(echo hello) </dev/null)"
oci create --pid-file "$work/pid" -b "$b" eng </dev/null >/dev/null 2>&1
expect VERB_PidFile "$(oci state eng | jq -r .pid)" "$(cat "$work/pid")"; oci delete -f eng
"$WHERRY_BIN/wherry-oci" --root "$work/state" --log "$work/log" --log-format json run -b "$work/nothing" eng >/dev/null 2>&1
expect VERB_LogJson 'error true true' "$(jq -r '"\(.level) \(.msg|test("nothing")) \(.time|length>0)"' "$work/log")"
match VERB_NoPivotRefused 'pivot_root' "$(oci run --no-pivot -b "$b" eng 2>&1 </dev/null)"
b=$(bundle con '.process.terminal=true | .process.args=["sh","-c","test -t 0 && echo terminal; stty size"] | .process.consoleSize={"height":7,"width":33}')
python3 - "$work/console" "$work/console-out" <<'PY' & receiver=$!
import array, os, socket, sys
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1]); server.listen(1); server.settimeout(20)
peer, _ = server.accept()
_, ancillary, _, _ = peer.recvmsg(64, socket.CMSG_LEN(4))
fd = array.array('i', ancillary[0][2])[0]
out = b''
try:
    while chunk := os.read(fd, 4096): out += chunk
except OSError: pass
open(sys.argv[2], 'wb').write(out)
PY
wait_for '[[ -S $work/console ]]'
oci create --console-socket "$work/console" -b "$b" con && oci start con; wait $receiver
expect VERB_ConsoleSocket "terminal 7 33" "$(tr -d '\r' <"$work/console-out" | tr '\n' ' ' | sed 's/ $//')"
oci delete -f con

# ---- why a start failed
fails() { local b; b=$(bundle "$1" "$2"); oci run -b "$b" "$1" 2>&1 </dev/null; echo "rc=$?"; }
match WHY_TinyMemory 'lack of memory|memory\.limit = 4096' "$(fails tiny '.linux.resources.memory.limit=4096')"
match WHY_TinyMemoryNamed 'linux.resources.memory.limit = 4096' "$(fails tiny '.linux.resources.memory.limit=4096')"
match WHY_Nofile 'RLIMIT_NOFILE = 2' "$(fails nofile '.process.rlimits=[{"type":"RLIMIT_NOFILE","soft":2,"hard":2}]')"
match WHY_AddressSpace 'RLIMIT_AS = 4096|rc=1(37|39)' "$(fails as '.process.rlimits=[{"type":"RLIMIT_AS","soft":4096,"hard":4096}]')"
match WHY_Stack 'RLIMIT_STACK = 4096|rc=1(37|39)|rc=0' "$(fails stack '.process.rlimits=[{"type":"RLIMIT_STACK","soft":4096,"hard":4096}]')"
if [[ $(fails plain '.process.args=["/nonesuch"]') == *probably* ]]; then FAIL WHY_NoGuessWithoutLimits "it blames a limit"; else PASS WHY_NoGuessWithoutLimits; fi
expect WHY_NothingLeft "" "$(oci list -q)"

find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left VERB_NothingLeft "$before"
exit $failed
