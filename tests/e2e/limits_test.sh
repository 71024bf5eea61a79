#!/bin/bash
# Limits, as the kernel counts them: memory, processes, CPU time. On v2 and on a hybrid host alike.
. "$(dirname "$0")/lib.sh"
begin limits
import_image

# What is unified has the usage of CPU time in it, also where a v1 hierarchy has the controller.
unified=/sys/fs/cgroup; [[ -d $unified/unified ]] && unified=$unified/unified
# group CONTROLLER NAME: the directory of a pod NAME, or of a container NAME/main, with this controller's files
group() {
  local top=/sys/fs/cgroup id; id=$("$W" inspect "${2%%/*}" | jq -r .id)
  [[ -d $top/$1$WHERRY_CGROUP_PARENT ]] && top+=/$1
  [[ $2 == */* ]] && id+=/${2#*/}
  echo "$top$WHERRY_CGROUP_PARENT/$id"
}
field() { "$W" inspect "$1" | jq -r "$2"; }
eater='dd if=/dev/zero of=/dev/null bs=200M count=1'  # one buffer, and all of it is written to

# ---- memory
check_status memory_eater_137 137 timeout 60 "$W" run --name eater --memory 32m $image $eater
check memory_eater_status 'Failed true 137 9 OOMKilled' \
  "$(field eater '"\(.phase) \(.oomKilled) \(.exitCode) \(.containers[0].signal) \(.containers[0].reason)"')"
check_status memory_eater_rm 0 "$W" rm eater
# Killed from outside is no OOM, and neither is one of the past: the count of a group begins anew.
timeout 30 "$W" run -d --name eater --memory 32m $image sleep 1000 >/dev/null; "$W" kill eater >/dev/null
check killed_137 137 "$("$W" wait eater)"
check killed_is_no_oom false "$(field eater .oomKilled)"
"$W" rm eater >/dev/null
# A child is killed, process 1 lives on and ends well.
timeout 60 "$W" run -d --name parent --memory 32m $image \
  sh -c "$eater 2>/dev/null; echo \"child \$?\"; while ! [ -e /end ]; do sleep 0.1; done; exit 4" >/dev/null
until_true 90 sh -c "$W logs parent | grep -q child"
check child_killed 'child 137' "$("$W" logs parent 2>/dev/null)"
check parent_runs Running "$(field parent .phase)"
"$W" exec parent touch /end </dev/null
check parent_code 4 "$(timeout 20 "$W" wait parent)"
check child_in_status true "$(field parent .containers[0].oomKilled)"
"$W" rm -f parent >/dev/null
# Within the limit nothing happens.
check memory_enough 1000000 "$(timeout 30 "$W" run --rm --memory 32m $image sh -c 'x=$(head -c 1000000 /dev/zero | tr "\0" x); echo ${#x}')"

# ---- processes
payload=${WHERRY_PAYLOAD:-$work/attack}
[[ -x $payload ]] || gcc -O1 -static -o "$payload" "$here/../payload/attack.c" || { fail payload "attack.c does not build"; exit 1; }
count_threads() { cat "$1"/cgroup.threads "$1"/tasks 2>/dev/null | wc -l; }
# bomb_check NAME LIMIT GROUP: the bomb in GROUP fills it and no more, and is gone at once.
bomb_check() {
  local name=$1 limit=$2 dir=$3 most=0 n start took
  until_true 15 sh -c "[ \$(cat '$dir/pids.current') -ge $((limit - 2)) ]" || fail "$name.fills" "$(cat "$dir/pids.current") processes"
  for ((n = 0; n < 20; n++)); do
    local now; now=$(cat "$dir/pids.current"); ((now > most)) && most=$now
    now=$(count_threads "$dir"); ((now > most)) && most=$now
  done
  if ((most <= limit && most > limit - 5)); then pass "$name.stops_at_limit"; else fail "$name.stops_at_limit" "$most processes, the limit is $limit"; fi
  # On v1 it is counted where the fork was asked for, on v2 where the limit is.
  check_has "$name.refused" max "$(grep -hvx 'max 0' "$dir"/pids.events "$dir"/*/pids.events 2>/dev/null)"
  start=$(date +%s%N)
  check_status "$name.removed" 0 timeout 20 "$W" rm -f "$name"
  took=$((($(date +%s%N) - start) / 1000000))
  if ((took < ${WHERRY_BOMB_MS:-2000})); then pass "$name.removed_at_once"; else fail "$name.removed_at_once" "after $took ms"; fi
  check "$name.nothing_left" '' "$(ls -d "$dir" 2>/dev/null; grep -lsxF -- "attack" /proc/[0-9]*/comm)"
}
timeout 30 "$W" run -d --name bomb --pids-limit 40 -v "$payload:/attack:ro" $image sh -c '/attack bomb & exec sleep 1000' >/dev/null
bomb_check bomb 40 "$(group pids bomb/main)"
# In the host's PID namespace no end of process 1 takes the others along: they are killed as a group.
# The pod has a limit when nobody asked for one. It is narrowed, since the host has other work to do.
cat >"$work/bomb.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: hostbomb}
spec:
  hostPID: true
  restartPolicy: Never
  volumes: [{name: attack, hostPath: {path: $payload}}]
  containers:
    - name: main
      image: $image
      command: [sh, -c, 'while ! [ -e /go ]; do sleep 0.1; done; /attack bomb & exec sleep 1000']
      volumeMounts: [{name: attack, mountPath: /attack, readOnly: true}]
YAML
if timeout 30 "$W" pod run -f "$work/bomb.yaml" >/dev/null 2>"$work/err"; then
  dir=$(group pids hostbomb)
  check pod_limit_of_its_own 4096 "$(cat "$dir/pids.max")"
  echo 60 >"$dir/pids.max"
  "$W" exec hostbomb touch /go </dev/null
  bomb_check hostbomb 60 "$dir"
else
  fail hostbomb "$(cat "$work/err")"
fi

# ---- CPU time
# Others' work on this machine must not take the share away: the parent of all pods here gets a weight that
# only a limit holds back.
weight() {  # V1 V2
  if [[ -d /sys/fs/cgroup/cpu ]]; then echo "$1" >/sys/fs/cgroup/cpu"$WHERRY_CGROUP_PARENT"/cpu.shares
  else echo "$2" >/sys/fs/cgroup"$WHERRY_CGROUP_PARENT"/cpu.weight; fi
}
usage() { awk '$1 == "usage_usec" {print $2}' "$unified$WHERRY_CGROUP_PARENT/$1/main/cpu.stat"; }
microseconds() { local t=${EPOCHREALTIME/[.,]/}; echo "$t"; }
# share ID SECONDS: thousandths of a CPU
share() {
  local t0 u0 t1 u1
  u0=$(usage "$1") t0=$(microseconds)
  read -r -t "$2" <> <(:)
  u1=$(usage "$1") t1=$(microseconds)
  echo $(((u1 - u0) * 1000 / (t1 - t0)))
}
spin='while :; do :; done'
margin=${WHERRY_CPU_MARGIN:-10}  # per cent
between() {  # NAME LEAST MOST GOT
  if (($4 >= $2 && $4 <= $3)); then pass "$1"; else fail "$1" "$4 thousandths of a CPU, wanted $2 to $3"; fi
}
for cpus in 300 150; do
  id=$(timeout 30 "$W" run -d --name spinner --cpus 0.$cpus $image sh -c "$spin")
  weight 262144 10000
  between "cpu_share_0.$cpus" $((cpus * (100 - margin) / 100)) $((cpus * (100 + margin) / 100)) "$(share "$id" 4)"
  check_has "cpu_throttled_0.$cpus" nr_throttled "$(grep -h nr_throttled "$(group cpu spinner/main)/cpu.stat" | grep -v ' 0$')"
  "$W" rm -f spinner >/dev/null
done
# Nothing holds this one back: on a machine of one CPU it has an ordinary weight, or nothing else would run.
if (($(nproc) == 1)); then weight 1024 100; fi
id=$(timeout 30 "$W" run -d --name spinner $image sh -c "$spin")
between cpu_no_limit 500 1050 "$(share "$id" 2)"
"$W" rm -f spinner >/dev/null
finish
