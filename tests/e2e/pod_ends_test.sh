#!/bin/bash
# How the life of a pod ends, as a user is told of it: waiting, stopping, phases, events, and workers that do not answer.
. "$(dirname "$0")/lib.sh"
begin pod_ends
import_image

pod_file() {  # NAME POLICY CONTAINER-LINES...: sets $file
  file=$work/$1.yaml
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s}\nspec:\n  restartPolicy: %s\n  terminationGracePeriodSeconds: 1\n' "$1" "$2" >"$file"
  shift 2
  printf '%s\n' "$@" >>"$file"
}
c() { printf '  - {name: %s, image: "%s", command: [sh, -c, %s]}' "$1" "$image" "'$2'"; }
events_of() { "$W" events -o json | jq -r --arg id "$1" 'select(.pod == $id) | .type'; }
reason_is() { [[ $("$W" inspect "$1" | jq -r .reason) == "$2" ]]; }
# took NAME MOST COMMAND...: within MOST seconds
took() {
  local name=$1 most=$2 start=$SECONDS; shift 2
  "$@" >"$work/out" 2>"$work/err" </dev/null; status=$?
  if ((SECONDS - start <= most)); then pass "$name"; else fail "$name" "it took $((SECONDS - start)) s"; fi
}

# ---- a container in back-off: stop and wait are answered without the end of a process
pod_file two Always '  containers:' "$(c a 'sleep 1000')" "$(c b 'exit 2')"
check_status two_run 0 "$W" pod run -f "$file"
until_true 10 reason_is two/b CrashLoopBackOff
check_has ps_back_off CrashLoopBackOff "$("$W" ps)"
check ps_back_off_json 'CrashLoopBackOff Running 1' "$("$W" ps -o json | jq -r '.[0] | "\(.reason) \(.phase) \(.containers[1].restarts)"')"
check_status wait_crashing 125 timeout 10 "$W" wait --timeout 1 two/b
check_has wait_crashing_text "container 'b' of pod 'two' still runs after 1 s" "$(cat "$work/err")"
timeout 60 "$W" wait two/b >"$work/b" & waiter=$!
took stop_back_off_soon 5 timeout 20 "$W" stop -t 1 two/b
check stop_back_off_status 0 "$status"
wait $waiter
check wait_back_off_ends 2 "$(cat "$work/b")"
check two_goes_on true "$("$W" inspect two/a | jq .ready)"
"$W" rm -f two >/dev/null

# ---- wait: until the pod has ended, not an attempt of it
pod_file twice OnFailure '  volumes: [{name: d, emptyDir: {}}]' '  containers:' \
  "  - {name: a, image: \"$image\", command: [sh, -c, 'sleep 0.3; [ -e /d/x ] && exit 0; : >/d/x; exit 3'], volumeMounts: [{name: d, mountPath: /d}]}"
"$W" pod run -f "$file" >/dev/null
check wait_over_restarts 0 "$(timeout 20 "$W" wait twice)"
check wait_restarts 1 "$("$W" inspect twice/a | jq .restarts)"
check restarts_phase Succeeded "$("$W" inspect twice | jq -r .phase)"
check_status wait_then_rm 0 "$W" rm twice
"$W" run -d --name w1 $image sleep 1000 >/dev/null
check_status wait_timeout 125 "$W" wait --timeout 1 w1
check_has wait_timeout_text "pod 'w1' still runs after 1 s" "$(cat "$work/err")"
check_status wait_timeout_0 125 "$W" wait --timeout 0 w1
check_has wait_timeout_0_text "pod 'w1' still runs after 0 s" "$(cat "$work/err")"
check_status wait_timeout_negative 125 "$W" wait --timeout -1 w1
"$W" rm -f w1 >/dev/null

# ---- an init container that fails
pod_file inits Never '  initContainers:' "$(c i 'echo from init; exit 3')" '  containers:' "$(c a 'sleep 1000')"
check_status init_fails 125 "$W" pod run -f "$file"
check_has init_fails_text "init container 'i' ended with status 3" "$(cat "$work/err")"
check_has init_fails_hint 'wherry logs inits/i' "$(cat "$work/err")"
check init_fails_wait 3 "$(timeout 5 "$W" wait inits)"
check_status init_fails_wait_main 125 timeout 5 "$W" wait inits/a
check_has init_fails_wait_main_text "container 'a' never started" "$(cat "$work/err")"
check_status init_fails_logs 125 "$W" logs inits
check_has init_fails_logs_text "container 'a' never started" "$(cat "$work/err")"
check_has init_fails_logs_hint 'wherry logs inits/i' "$(cat "$work/err")"
check init_fails_its_log 'from init' "$("$W" logs inits/i)"
check_status init_fails_rm 0 "$W" rm inits

# ---- phases
phase_after_stop() { "$W" stop -t 1 "$1" >/dev/null; "$W" inspect "$1" | jq -r '"\(.phase) \(.exitCode)"'; "$W" rm "$1" >/dev/null; }
"$W" run -d --name p1 $image sh -c 'trap "exit 0" TERM; echo up; while :; do sleep 0.1; done' >/dev/null
until_true 5 sh -c "$W logs p1 | grep -q up"
check stopped_well 'Succeeded 0' "$(phase_after_stop p1)"
"$W" run -d --name p2 $image sh -c 'trap "exit 5" TERM; echo up; while :; do sleep 0.1; done' >/dev/null
until_true 5 sh -c "$W logs p2 | grep -q up"
check stopped_5 'Failed 5' "$(phase_after_stop p2)"
"$W" run -d --name p3 $image sleep 1000 >/dev/null
check stopped_137 'Failed 137' "$(phase_after_stop p3)"

# ---- the same code everywhere
for program in /nonesuch nonesuch /etc/passwd; do
  wanted=127; [[ $program == /etc/passwd ]] && wanted=126
  check_status "code_of_${program##*/}" $wanted "$W" run --name code $image "$program"
  check "code_of_${program##*/}_in_events" $wanted "$("$W" events -o json | jq 'select(.type == "pod.ended") | .exitCode' | tail -n 1)"
done

# ---- every beginning has its end in the events
ended_whole() {  # TEST ID: pod.started has its pod.ended and pod.removed, each container.created its end; none twice
  local told; told=$(events_of "$2" | sort | uniq -c | awk '{print $2 "=" $1}' | tr '\n' ' ')
  check_has "$1_started" 'pod.started=1 ' "$told"
  check_has "$1_ended" 'pod.ended=1 ' "$told"
  check_has "$1_removed" 'pod.removed=1 ' "$told"
  check "$1_containers" '' "$("$W" events -o json | jq -rs --arg id "$2" '
    map(select(.pod == $id)) | (map(select(.type == "container.created") | .container)) -
    (map(select(.type == "container.exited" or .type == "container.failed") | .container)) | .[]')"
}
last_pod() { "$W" events -o json | jq -r 'select(.type == "pod.started") | .pod' | tail -n 1; }
ended_whole events_failed_create "$(last_pod)"
"$W" run --rm $image true; ended_whole events_rm "$(last_pod)"
pod_file slow Never '  initContainers:' "$(c i 'sleep 1000')" '  containers:' "$(c a true)"
took timeout_soon 12 timeout 30 "$W" pod run --timeout 1 -f "$file"
check timeout_status 125 "$status"
ended_whole events_timeout "$(last_pod)"
check timeout_exit_known 137 "$("$W" events -o json | jq -r --arg id "$(last_pod)" 'select(.pod == $id and .type == "container.exited") | .exitCode')"
id=$("$W" run -d --name forced $image sleep 1000); "$W" rm -f forced >/dev/null; ended_whole events_rm_force "$id"
shims_die() { local pids; pids=$("$W" inspect "$1" | jq -r '"\(.keeperPid) \(.shimPid)"'); builtin kill -9 $pids; until_true 5 sh -c "[ \$($W inspect $1 | jq -r .phase) = Unknown ]"; }
id=$("$W" run -d --name orphan $image sleep 1000); shims_die orphan
check_status exec_in_orphan 125 "$W" exec orphan true
check_has exec_in_orphan_text "pod 'orphan' is not running" "$(cat "$work/err")"
"$W" rm -f orphan >/dev/null; ended_whole events_killed_shims "$id"
id=$("$W" run -d --name orphan $image sleep 1000); shims_die orphan
check_status stop_orphan 0 "$W" stop orphan
check_status rm_orphan 0 "$W" rm orphan
ended_whole events_killed_shims_stopped "$id"

# ---- what has ended is not running
"$W" run --name over $image true
for verb in "exec over true" "attach over" "kill over"; do
  check_status "${verb%% *}_of_ended" 125 "$W" $verb
  check_has "${verb%% *}_of_ended_text" "'over' is not running" "$(cat "$work/err")"
done
"$W" rm over >/dev/null

# ---- a worker that is stopped: every verb that needs it says so in time
"$W" run -d --name mute $image sleep 1000 >/dev/null
worker=$("$W" inspect mute | jq .shimPid)
builtin kill -STOP "$worker"
n=0
for verb in "exec mute true" "exec -t mute true" "attach mute" "wait mute" "kill mute" "stop mute" "stop mute/main" "shim call mute ping"; do
  { start=$SECONDS; timeout 30 "$W" $verb >/dev/null 2>"$work/mute.$n" </dev/null; echo "$? $((SECONDS - start))" >"$work/mute.$n.status"; } &
  verbs[n++]=$verb
done
check logs_of_mute '' "$(timeout 5 "$W" logs mute)"
wait
for ((i = 0; i < n; i++)); do
  read -r status seconds <"$work/mute.$i.status"
  name=mute_$(tr -c 'a-z\n' _ <<<"${verbs[i]}")
  check "${name}_status" 125 "$status"
  ((seconds <= 13)) && pass "${name}_bounded" || fail "${name}_bounded" "$seconds s"
  check_has "${name}_text" "the worker of pod 'mute' does not answer within 10 s: pid $worker is in state 'T' (stopped)" "$(cat "$work/mute.$i")"
  check_has "${name}_hint" 'wherry shim inspect mute' "$(cat "$work/mute.$i")"
  [[ $(cat "$work/mute.$i") == *'rm -f'* ]] && fail "${name}_harmless" 'it advises rm -f' || pass "${name}_harmless"
done
builtin kill -CONT "$worker"
check mute_goes_on on "$(timeout 10 "$W" exec mute echo on </dev/null)"
check mute_nothing_done Running "$("$W" inspect mute | jq -r .phase)"  # what was given up is not done later

# ---- a frozen container
freezer=/sys/fs/cgroup$WHERRY_CGROUP_PARENT/$("$W" inspect mute | jq -r .id)/main
[[ -e $freezer/cgroup.freeze ]] || freezer=/sys/fs/cgroup/unified${freezer#/sys/fs/cgroup}
timeout 60 "$W" exec mute sleep 1000 </dev/null >/dev/null 2>&1 & executed=$!
until_true 5 sh -c "ls $freezer | grep -q exec-"
echo 1 >"$freezer/cgroup.freeze"
took exec_in_frozen 5 timeout 20 "$W" exec mute true
check exec_in_frozen_status 125 "$status"
check_has exec_in_frozen_text paused "$(cat "$work/err")"
took stop_frozen 8 timeout 20 "$W" stop -t 1 mute
check stop_frozen_status 0 "$status"
took exec_of_frozen_ends 2 wait $executed
"$W" rm mute >/dev/null
timeout 30 "$W" run --rm --name ice $image sleep 1000 >/dev/null 2>&1 </dev/null & runner=$!
until_true 5 sh -c "[ \"\$($W inspect ice 2>/dev/null | jq -r .ready)\" = true ]"
freezer=${freezer%/*/main}/$("$W" inspect ice | jq -r .id)/main
echo 1 >"$freezer/cgroup.freeze"
took kill_frozen 5 timeout 20 "$W" kill ice
took run_of_frozen_ends 8 wait $runner
check run_of_frozen_code 137 "$status"

# ---- hints that help
"$W" run -d --name web $image sleep 1000 >/dev/null
check_status taken 125 "$W" run -d --name web $image true
check_has taken_by_living '(wherry rm -f web)' "$(cat "$work/err")"
"$W" stop -t 0 web >/dev/null
check_status taken_ended 125 "$W" run -d --name web $image true
check_has taken_by_ended '(wherry rm web)' "$(cat "$work/err")"
"$W" rm web >/dev/null
"$W" run -d -n ns1 --name always $image sleep 1000 >/dev/null
check_status elsewhere 125 "$W" inspect always
check_has elsewhere_hint '(-n ns1)' "$(cat "$work/err")"
"$W" rm -f -n ns1 always >/dev/null
check_status rm_force_none 0 "$W" rm -f
check_status rm_none 125 "$W" rm
finish
