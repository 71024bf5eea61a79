#!/bin/bash
# Who owns an id, a state directory and a cgroup: nothing that belongs to another container or to a stranger is
# removed, killed or taken over (REL-06, REL-10, SEC-53).
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
top=/sys/fs/cgroup; v2=$top; [[ -d $top/unified ]] && v2=$top/unified
nap() { read -rt "$1" <> <(:); }
alive() { [[ -e /proc/$1 ]] && ! grep -q '^State:.Z' "/proc/$1/status" && echo alive; }
wait_for() { local i; for ((i = 0; i < 100; i++)); do eval "$1" && return; nap 0.05; done; return 1; }
pid_of() { oci state "$1" 2>/dev/null | jq -r .pid; }

# ---- an id that was deleted and made again while a foreground run of it did not look
b=$(bundle again '.process.args=["sleep","1000"]')
"$WHERRY_BIN/wherry-oci" --root "$work/state" run -b "$b" again </dev/null >/dev/null 2>&1 & run=$!
wait_for '[[ $(oci state again 2>/dev/null | jq -r .status) == running ]]'
kill -STOP $run
oci delete --force again
oci create -b "$b" again </dev/null >/dev/null 2>&1; oci start again
new=$(pid_of again)
kill -CONT $run; wait $run
expect OWN_RunLeavesTheNextOfItsId "running $new alive" "$(oci state again 2>/dev/null | jq -r .status) $new $(alive "$new")"
oci delete --force again
expect OWN_RunNothingLeft "" "$(alive "$new")$(ls -A "$work/state" | grep again)"

# ---- two containers of one cgroup path
b1=$(bundle one '.process.args=["sleep","1000"] | .linux.cgroupsPath="/'"$group"'/shared"')
b2=$(bundle two '.process.args=["sleep","1000"] | .linux.cgroupsPath="/'"$group"'/shared"')
oci run -d -b "$b1" one </dev/null >/dev/null 2>&1
got=$(oci run -d -b "$b2" two 2>&1 </dev/null); rc=$?
match OWN_CgroupOfALivingOneRefused "^1 .*'/$group/shared' is not empty: pid $(pid_of one) " "$rc $got"
expect OWN_RefusedLeftNothing "" "$(oci list -q | grep two)"
expect OWN_FirstUnharmed running "$(oci state one | jq -r .status)"
oci kill one KILL; wait_for '[[ $(oci state one | jq -r .status) == stopped ]]'
oci run -d -b "$b2" two </dev/null >/dev/null 2>&1; second=$(pid_of two)
oci kill --all one KILL 2>/dev/null; nap 0.2
expect OWN_KillAllOfAStoppedOne alive "$(alive "$second")"
oci delete one; expect OWN_DeleteOfAStoppedOne "0 alive running" "$? $(alive "$second") $(oci state two | jq -r .status)"
expect OWN_CgroupStays "$second" "$(cat "$v2/$group/shared/cgroup.procs")"
oci delete --force two
expect OWN_SharedGone "" "$(find "$top" -type d -path "*/$group/shared")"

# ---- groups in it that somebody else made
mkdir -p "$v2/$group/parent/of-others"
b=$(bundle above '.process.args=["true"] | .linux.cgroupsPath="/'"$group"'/parent"')
got=$(oci run -b "$b" above 2>&1 </dev/null); rc=$?
match OWN_GroupsOfOthersRefused "^1 .*'/$group/parent' is not empty: it has groups" "$rc $got"
expect OWN_GroupsOfOthersStay yes "$([[ -d $v2/$group/parent/of-others ]] && echo yes)"
rmdir "$v2/$group/parent/of-others" "$v2/$group/parent"

# ---- a v1 directory of the same path that is a stranger's, with a process in it
if [[ -d $top/cpuset && $top != "$v2" ]]; then
  b=$(bundle strange '.process.args=["sleep","1000"]'); foreign=$top/cpuset/$group/strange
  mkdir -p "$foreign"
  for dir in "$top/cpuset/$group" "$foreign"; do for file in cpus mems; do cat "$top/cpuset/cpuset.$file" >"$dir/cpuset.$file"; done; done
  sleep 1000 & stranger=$!
  echo $stranger >"$foreign/cgroup.procs"
  oci run -d -b "$b" strange </dev/null >/dev/null 2>&1
  oci exec strange sh -c 'cat /proc/self/cgroup' </dev/null >"$work/exec-cgroup"
  start=$SECONDS; got=$(timeout 30 "$WHERRY_BIN/wherry-oci" --root "$work/state" delete --force strange 2>&1); rc=$?
  expect OWN_DeleteBesideAStranger "0 " "$rc $got"
  if ((SECONDS - start < 5)); then PASS OWN_DeleteAtOnce; else FAIL OWN_DeleteAtOnce "after $((SECONDS - start)) s"; fi
  expect OWN_StrangerUntouched "alive $stranger" "$(alive $stranger) $(cat "$foreign/cgroup.procs")"
  expect OWN_ExecNotAmongStrangers "" "$(grep cpuset:.*strange "$work/exec-cgroup")"
  kill $stranger; wait $stranger 2>/dev/null; rmdir "$foreign"
else
  SKIP OWN_DeleteBesideAStranger "there is no v1 cpuset hierarchy"
fi

# ---- a record that cannot be read
b=$(bundle torn '.process.args=["sleep","1000"]'); oci run -d -b "$b" torn </dev/null >/dev/null 2>&1
init=$(pid_of torn); cp "$work/state/torn/record.json" "$work/record"; echo '{"v":1,' >"$work/state/torn/record.json"
for flag in '' --force; do
  got=$(oci delete $flag torn 2>&1); rc=$?
  match "OWN_TornRecordRefused$flag" "^1 .*whether it runs is not known: record.json" "$rc $got"
done
expect OWN_TornRecordHarmsNothing alive "$(alive "$init")"
cp "$work/record" "$work/state/torn/record.json"; oci delete --force torn
mkdir -m 700 "$work/state/half"
match OWN_HalfMadeWithoutForce 'not made to the end' "$(oci delete half 2>&1)"
oci delete --force half; expect OWN_HalfMadeWithForce "0 " "$? $(ls "$work/state" | grep half)"

finish_cgroups() { find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null; }
finish_cgroups
nothing_left OWN_NothingLeft "$before"
exit $failed
