#!/bin/bash
# Many pods, one after another and at once. What is on the host before and after is compared by the system's own
# programs, none of ours. Then the other way round: `wherry leaks` finds what was planted, and blames nothing else.
. "$(dirname "$0")/lib.sh"
begin soak
import_image
one_by_one=${WHERRY_SOAK_PODS:-300} at_once=${WHERRY_SOAK_AT_ONCE:-20}
[[ ${WHERRY_LONG:-0} == 1 ]] && one_by_one=3000

unified=/sys/fs/cgroup; [[ -d $unified/unified ]] && unified=$unified/unified
parents() { local p; for p in /sys/fs/cgroup /sys/fs/cgroup/*; do [[ -e $p/cgroup.procs ]] && echo "$p$WHERRY_CGROUP_PARENT"; done; }

# Processes of ours: in a cgroup of ours, or with anything of this script's directory open or mapped.
our_processes() {
  local p
  for p in /proc/[0-9]*; do
    { grep -qsF "$WHERRY_CGROUP_PARENT/" "$p/cgroup" ||
      [[ $(readlink "$p/cwd" "$p/root" "$p/exe" "$p"/fd/* 2>/dev/null) == *"$work/"[rs]* ]]; } && echo "${p#/proc/}"
  done
}
# snapshot DIR: a sorted list for every kind of thing that can be left behind.
snapshot() {
  mkdir -p "$1"
  awk '{print $3, $4, $5, $9}' /proc/self/mountinfo | sort >"$1/mounts"
  parents | xargs -I{} find {} -mindepth 1 -type d 2>/dev/null | sort >"$1/cgroups"
  our_processes | while read -r pid; do echo "$pid $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline")"; done | sort >"$1/processes"
  # Those of process 1 are the host's to reap: a keeper is its child.
  ps -e -o stat=,ppid=,comm= | awk '$1 ~ /^Z/ && $2 != 1 && $3 ~ /wherry|^sh$|^true$|^sleep$/' | sort >"$1/zombies"
  losetup -a 2>/dev/null | sort >"$1/loops"
  # Others may use this machine too: a namespace counts with a process of ours in it or with none at all, and a
  # program when it is on no cgroup but ours.
  lsns -n -o NS,TYPE,PID | while read -r ns type pid; do
    if [[ -z $pid || ! -d /proc/$pid ]] || grep -qx "$pid.*" "$1/processes"; then echo "$ns $type"; fi
  done | sort >"$1/namespaces"
  foreign=$(bpftool cgroup tree "$unified" 2>/dev/null |
    awk -v ours="$unified$WHERRY_CGROUP_PARENT/" '/^\// {path = $1} /^ +[0-9]/ && index(path, ours) != 1 {print $1}')
  bpftool prog show 2>/dev/null | awk -F: '/^[0-9]+: cgroup/ {print $1}' | grep -vxF "${foreign:-none}" | sort >"$1/programs"
  find "$work/state" "$work/root" -mindepth 1 \( -path '*/pods/*' -o -path '*/names/*/*' \) | sort >"$1/files"
}
kinds='mounts cgroups processes zombies loops namespaces programs files'
more_than_before() {  # KIND: what is there now and was not
  comm -13 "$work/before/$1" "$work/after/$1"
}
same_again() { snapshot "$work/after"; local k; for k in $kinds; do [[ -z $(more_than_before $k) ]] || return 1; done; }
compare() {  # NAME: the kernel lets go of some things a moment later than of the process
  until_true 15 same_again
  local k; for k in $kinds; do check "$1.$k" '' "$(more_than_before $k)"; done
}

"$W" run --rm $image true </dev/null  # the caches and the parents' cgroups are there from now on
snapshot "$work/before"

# ---- one after another: every exit code, and the shortest of processes on one CPU
wrong=() began=$SECONDS
for ((i = 0; i < one_by_one; i++)); do
  case $((i % 3)) in
    0) wanted=0; timeout 60 "$W" run --rm $image true </dev/null >/dev/null 2>"$work/err" ;;
    1) wanted=0; timeout 60 taskset -c 0 "$W" run --rm $image true </dev/null >/dev/null 2>"$work/err" ;;
    2) wanted=$((i / 3 % 125)); timeout 60 "$W" run --rm $image sh -c "exit $wanted" </dev/null >/dev/null 2>"$work/err" ;;
  esac
  got=$?
  ((got == wanted)) || wrong+=("run $i: $got, wanted $wanted: $(head -c 200 "$work/err" | tr '\n' ' ');")
done
check exit_codes '' "${wrong[*]:0:3}"
echo "$one_by_one pods in $((SECONDS - began)) s"
compare one_by_one

# ---- at once
for round in 1 2; do
  pids=() wrong=()
  for ((i = 0; i < at_once; i++)); do
    (timeout 120 "$W" run --rm --name "many$i" $image sh -c "echo $i; exit $((i + 1))" </dev/null >"$work/many.$i" 2>"$work/many.err.$i") & pids+=($!)
  done
  for ((i = 0; i < at_once; i++)); do
    wait "${pids[i]}"; got=$?
    ((got == i + 1)) || wrong+=("pod $i: $got, wanted $((i + 1)): $(head -c 200 "$work/many.err.$i" | tr '\n' ' ');")
    [[ $(cat "$work/many.$i") == "$i" ]] || wrong+=("pod $i said '$(cat "$work/many.$i")';")
  done
  check "at_once_$round" '' "${wrong[*]:0:3}"
done
compare at_once
pids=()
for ((i = 0; i < at_once; i++)); do (timeout 120 "$W" run -d --name "long$i" $image sleep 1000 >/dev/null 2>&1 </dev/null) & pids+=($!); done
wait "${pids[@]}"
check all_run "$at_once" "$("$W" ps -q | wc -l)"
check leaks_none_of_many 'leaks: none' "$("$W" leaks 2>&1)"
check_status all_removed 0 timeout 120 "$W" rm -f $("$W" ps -aq)
compare together_removed

# ---- orphans in the host's PID namespace come to the keeper, which reaps them
cat >"$work/orphans.yaml" <<YAML
apiVersion: v1
kind: Pod
metadata: {name: orphans}
spec:
  hostPID: true
  restartPolicy: Never
  containers:
    - name: main
      image: $image
      command: [sh, -c, 'for i in \$(seq 30); do sh -c "sh -c \"sleep 0.2\" &"; done; echo made; exec sleep 1000']
YAML
timeout 60 "$W" pod run -f "$work/orphans.yaml" >/dev/null 2>"$work/err" || fail orphans "$(cat "$work/err")"
until_true 20 sh -c "$W logs orphans | grep -q made"
keeper=$("$W" inspect orphans | jq .keeperPid)
children() { ps -o stat= --ppid "$keeper" | grep -c "$1"; }
few() { (($(children .) <= 2)); }
until_true 10 few
check orphans_reaped '2 0' "$(children .) $(children '^Z')"
timeout 30 "$W" rm -f orphans >/dev/null
compare orphans

# ---- planted leaks
id() { printf "$1%.0s" $(seq 64) | head -c 64; }
base=$(basename "$WHERRY_CGROUP_PARENT") plants=() mounted=()
wanted=()  # KIND WHAT-PART
plant() { wanted+=("$1 $2"); }
v1=$(parents | grep -v "^$unified/$base$" | head -n 1)

mkdir "$unified/$base/planted"; plant cgroup "$unified/$base/planted"
mkdir -p "$unified/$base/planted/deep"
if [[ -n $v1 ]]; then mkdir -p "$v1/planted-too"; plant cgroup "$v1/planted-too"; fi
mkdir -p "$work/state/pods/$(id a)"; plant state "$work/state/pods/$(id a)"
mkdir -p "$work/root/pods/$(id b)"; plant store "$work/root/pods/$(id b)"
mkdir -p "$work/root/pods/$(id c)"; echo '{"v":' >"$work/root/pods/$(id c)/pod.json"; plant store "$work/root/pods/$(id c)"
mkdir -p "$work/root/ledger/names/default"; id d >"$work/root/ledger/names/default/ghost"; plant name ghost
mkdir "$unified/$base/orphan"; sleep 1000 & orphan=$!; plants+=($orphan)
echo $orphan >"$unified/$base/orphan/cgroup.procs"; plant process "pid $orphan"; plant cgroup "$unified/$base/orphan"
mount -t tmpfs planted "$work/root/pods/$(id b)"; mounted+=("$work/root/pods/$(id b)"); plant mount "$work/root/pods/$(id b)"
mkdir -p "$work/low" "$work/root/up" "$work/root/wk" "$work/merged"
if mount -t overlay planted -o "lowerdir=$work/low,upperdir=$work/root/up,workdir=$work/root/wk" "$work/merged" 2>/dev/null; then
  mounted+=("$work/merged"); plant mount "$work/merged"
fi
: >"$work/state/net"; unshare --net="$work/state/net" true; mounted+=("$work/state/net"); plant mount "$work/state/net"
truncate -s 1M "$work/root/disk"; loop=$(losetup -f --show "$work/root/disk" 2>/dev/null)
if [[ -n $loop ]]; then plant loop "$loop"; else skip planted_loop "no loop device here"; fi
# A device program whose cgroup is gone: pinned while its pod lived.
mkdir "$work/bpf"; mount -t bpf planted "$work/bpf"; mounted+=("$work/bpf")
device_program() {  # POD PIN
  local cg; cg=$unified/$base/$("$W" inspect "$1" | jq -r .id)/main
  local number; number=$(bpftool -j cgroup show "$cg" | jq '.[0].id'); bpftool prog pin id "$number" "$work/bpf/$2"; echo "$number"
}
timeout 30 "$W" run -d --name donor $image sleep 1000 >/dev/null
program=$(device_program donor left); plant bpf "program $program"
"$W" rm -f donor >/dev/null
# And one that is attached, to the cgroup of no pod.
timeout 30 "$W" run -d --name donor2 -v "$work:/data:ro" --cap-add SYS_TIME --device /dev/kmsg $image sleep 1000 >/dev/null
attached=$(device_program donor2 attached)
"$W" rm -f donor2 >/dev/null
mkdir "$unified/$base/attached"; bpftool cgroup attach "$unified/$base/attached" device pinned "$work/bpf/attached" multi
plant cgroup "$unified/$base/attached"; plant bpf "program $attached"
# A pod whose keeper and worker were killed: its container lives, and nobody will say when it ends.
lost=$(timeout 30 "$W" run -d --name lost $image sleep 1000)
keeper=$("$W" inspect lost | jq .keeperPid) worker=$("$W" inspect lost | jq .shimPid)
kill -STOP "$keeper"; kill -9 "$worker" "$keeper"
lost_process=$(cat "$unified/$base/$lost/main/cgroup.procs" | head -n 1)
plant pod "$lost"; plant bpf "program $(bpftool -j cgroup show "$unified/$base/$lost/main" | jq '.[0].id')"; plant process "pid $lost_process"

# What is not ours, and looks a little like it
foreign=()
innocent() { foreign+=("$1"); }
mkdir "$unified/$base-foreign" "$unified/$base-foreign/pod"; innocent "$base-foreign"
sleep 1000 & stranger=$!; plants+=($stranger); echo $stranger >"$unified/$base-foreign/pod/cgroup.procs"; innocent "pid $stranger"
mkdir -p "$work/rootless/pods"; mount -t tmpfs foreign "$work/rootless/pods"; mounted+=("$work/rootless/pods"); innocent rootless
truncate -s 1M "$work/state.img"; other_loop=$(losetup -f --show "$work/state.img" 2>/dev/null); innocent state.img
healthy=$(timeout 30 "$W" run -d --name healthy -v "$work:/data:ro" $image sleep 1000); innocent "$healthy"
innocent "pid $("$W" inspect healthy | jq .keeperPid)"; innocent "pid $("$W" inspect healthy | jq .shimPid)"
ended=$(timeout 30 "$W" run -d --name ended $image true); "$W" wait ended >/dev/null; innocent "$ended"
other() { WHERRY_ROOT=$work/other/root WHERRY_STATE=$work/other/state WHERRY_CGROUP_PARENT=$WHERRY_CGROUP_PARENT-foreign "$W" "$@"; }
mkdir -p "$work/other"
neighbour=$(other run -d --name neighbour --rootfs "${WHERRY_TEST_IMAGE:-$work/image}/rootfs" sleep 1000 2>"$work/err") || fail neighbour "$(cat "$work/err")"
innocent "$neighbour"; innocent "pid $(other inspect neighbour | jq .keeperPid)"
innocent "program $(bpftool -j cgroup show "$unified$WHERRY_CGROUP_PARENT-foreign/$neighbour/main" | jq '.[0].id')"

check_status leaks_status 1 "$W" leaks
"$W" leaks -o json --exit-code 0 >"$work/leaks" 2>"$work/err" || fail leaks "$(cat "$work/err")"
jq -r '.[] | "\(.kind) \(.what)"' "$work/leaks" >"$work/found"
for one in "${wanted[@]}"; do
  kind=${one%% *} what=${one#* } name=${one//$work/}
  name=planted.${kind}_$(basename "${what// /_}" | cut -c1-20)
  if grep -E "^$kind " "$work/found" | grep -qF -- "$what"; then pass "$name"; else fail "$name" "not found: $one"; fi
done
if ((${#wanted[@]} >= 10)); then pass planted.ten; else fail planted.ten "only ${#wanted[@]} planted"; fi
for one in "${foreign[@]}"; do check "innocent.$(basename "${one// /_}" | cut -c1-20)" '' "$(grep -wF -- "$one" "$work/found")"; done
# Nothing that was not planted, but what belongs to the lost pod.
rest=$(cat "$work/found"); for one in "${wanted[@]}"; do rest=$(grep -vF -- "${one#* }" <<<"$rest"); done
check planted.nothing_else '' "$(grep -vF -- "$lost" <<<"$rest")"
check_has leaks_count "leaks: $(jq length "$work/leaks")" "$("$W" leaks)"

# ---- away with it
other rm -f neighbour >/dev/null 2>&1
check_status lost_removed 0 timeout 30 "$W" rm -f lost
"$W" rm -f healthy ended >/dev/null
kill "${plants[@]}"; wait "${plants[@]}" 2>/dev/null
rm -f "$work"/bpf/{left,attached}
for ((i = ${#mounted[@]} - 1; i >= 0; i--)); do umount "${mounted[i]}"; done
for l in "$loop" "$other_loop"; do [[ -n $l ]] && losetup -d "$l"; done
for p in $(parents); do find "$p-foreign" "$p"/{planted,planted-too,orphan,attached} -depth -type d -exec rmdir {} + 2>/dev/null; done
rm -rf "$work/state/pods/$(id a)" "$work"/root/pods/{"$(id b)","$(id c)"} "$work/root/ledger/names/default/ghost" "$work/root/disk" "$work"/root/{up,wk}
compare plants_gone
finish
