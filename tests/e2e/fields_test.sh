#!/bin/bash
# Fields of the process and of mounts that are the kernel's numbers: each is seen from inside, or refused by its name.
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
stat_field() { shell "$1" "cut -d' ' -f$2 /proc/self/stat" "$3"; } # of the payload itself: the shell's child inherits it

# process.rlimits: what cannot be raised is named (a root without CAP_SYS_RESOURCE)
b=$(bundle limits '.process.args=["true"] | .process.rlimits=[{"type":"RLIMIT_NOFILE","soft":500,"hard":16000}]')
match Rlimits_Named "prlimit 'RLIMIT_NOFILE = 500:16000'.*CAP_SYS_RESOURCE" "$(ulimit -n 1000; capsh --drop=cap_sys_resource -- -c '"$0" --root "$1" run -b "$2" limits 2>&1' "$WHERRY_BIN/wherry-oci" "$work/state" "$b" </dev/null)"
# process.scheduler (proc(5), stat: 19 nice, 40 rt_priority, 41 policy)
expect Scheduler_Nice 5 "$(stat_field nice 19 '.process.scheduler={"policy":"SCHED_OTHER","nice":5}')"
expect Scheduler_Batch 3 "$(stat_field batch 41 '.process.scheduler={"policy":"SCHED_BATCH"}')"
expect Scheduler_Idle 5 "$(stat_field idle 41 '.process.scheduler={"policy":"SCHED_IDLE"}')"
expect Scheduler_ResetOnFork 0 "$(shell reset "cut -d' ' -f19 /proc/self/stat; true" '.process.scheduler={"policy":"SCHED_OTHER","nice":-5,"flags":["SCHED_FLAG_RESET_ON_FORK"]}')"
match Scheduler_Unknown "sched_setattr 'process.scheduler" "$(stat_field iso 41 '.process.scheduler={"policy":"SCHED_ISO"}')"
got=$(stat_field fifo 41 '.process.scheduler={"policy":"SCHED_FIFO","priority":7}')
match Scheduler_Fifo "^1$|sched_setattr 'process.scheduler.*real-time budget" "$got"
# process.ioPriority
ioprio() { shell io "busybox ionice" "$1"; }
expect IoPriority_BestEffort "best-effort: prio 6" "$(ioprio '.process.ioPriority={"class":"IOPRIO_CLASS_BE","priority":6}')"
expect IoPriority_Idle "idle" "$(ioprio '.process.ioPriority={"class":"IOPRIO_CLASS_IDLE","priority":0}')"
expect IoPriority_None "none: prio 0" "$(ioprio .)"
# linux.personality, linux.memoryPolicy
expect Personality_32 i686 "$(shell pers 'uname -m' '.linux.personality={"domain":"LINUX32"}')"
expect Personality_64 x86_64 "$(shell pers 'uname -m' '.linux.personality={"domain":"LINUX"}')"
if [[ -e /proc/self/numa_maps ]]; then
  match MemoryPolicy_Bind ' bind:0 ' "$(shell mem 'head -1 /proc/self/numa_maps' '.linux.memoryPolicy={"mode":"MPOL_BIND","nodes":"0"}')"
  match MemoryPolicy_Flags ' interleave=static:0 ' "$(shell mem 'head -1 /proc/self/numa_maps' '.linux.memoryPolicy={"mode":"MPOL_INTERLEAVE","nodes":"0","flags":["MPOL_F_STATIC_NODES"]}')"
  match MemoryPolicy_NoSuchNode "set_mempolicy 'linux.memoryPolicy'" "$(shell mem true '.linux.memoryPolicy={"mode":"MPOL_BIND","nodes":"900"}')"
else
  SKIP MemoryPolicy "the kernel has no NUMA support"
fi
# process.execCPUAffinity: of an exec alone
b=$(bundle cpus '.process.args=["sleep","30"] | .process.execCPUAffinity={"initial":"1","final":"1"}'); oci run -d -b "$b" cpus >/dev/null 2>&1 </dev/null
pid=$(oci state cpus | jq .pid)
expect Affinity_NotOfInit "$(sed -n 's/^Cpus_allowed_list:\t//p' /proc/self/status)" "$(sed -n 's/^Cpus_allowed_list:\t//p' "/proc/$pid/status")"
affinity() { jq -n --argjson a "$1" '{args:["grep","Cpus_allowed_list","/proc/self/status"],cwd:"/",user:{uid:0,gid:0},env:["PATH=/bin"],execCPUAffinity:$a}' >"$work/p.json"; oci exec -p "$work/p.json" cpus </dev/null 2>&1 | sed 's/.*:\t//'; }
expect Affinity_Initial 0 "$(affinity '{"initial":"0"}')"
expect Affinity_Final 1 "$(affinity '{"initial":"0","final":"1"}')"
match Affinity_NoSuchCpu "sched_setaffinity 'process.execCPUAffinity.final'" "$(affinity '{"final":"900"}')"
oci delete -f cpus
# Labels: this kernel has them or it says so
if [[ $(cat /sys/module/apparmor/parameters/enabled 2>/dev/null) != Y ]]; then
  match AppArmor_Absent "process.apparmorProfile: 'mine' cannot be had: AppArmor is not enabled" "$(shell aa true '.process.apparmorProfile="mine"')"
  expect AppArmor_Unconfined fine "$(shell aa 'echo fine' '.process.apparmorProfile="unconfined"')"
fi
if ! grep -q selinuxfs /proc/filesystems; then
  match SELinux_Absent "process.selinuxLabel: 'a:b:c' cannot be had: SELinux is not enabled" "$(shell se true '.process.selinuxLabel="a:b:c"')"
  match SELinux_AbsentForMounts "linux.mountLabel: 'a:b:c' cannot be had" "$(shell se true '.linux.mountLabel="a:b:c"')"
fi
match Rdt_Absent "linux.intelRdt" "$(shell rdt true '.linux.intelRdt={"closID":"x"}')"
match NetDevices_Refused "linux.netDevices" "$(shell nd true '.linux.netDevices={"eth9":{}}')"
# The document: a newer 1.x runs with a note, and all that is wrong is told at once, each at its place
match Version_Newer "/ociVersion: version 1.9.7 is newer than 1.3: what it added is ignored.*newer-runs" "$(shell newer 'echo newer-runs' '.ociVersion="1.9.7"' | xargs)"
match Version_Other "/ociVersion: version 2.0.0 is not supported" "$(shell newer true '.ociVersion="2.0.0"')"
got=$(shell wrong true '.process.cwd="x" | .process.user.uid=-1 | .linux.namespaces += [{"type":"pid"}] | .mounts[0].destination=""')
for at in process/cwd process/user/uid linux/namespaces/6 mounts/0/destination; do match "AllProblems_${at//\//_}" "config.json:[0-9]+:[0-9]+: /$at: " "$got"; done
match Features_NetDevices false "$(oci features | jq .linux.netDevices.enabled)"
# umask, oom_score_adj
expect Umask 77 "$(shell umask 'umask' '.process.user.umask=63' | sed 's/^0*//')"
expect Oom_Raise 900 "$(shell oom 'cat /proc/self/oom_score_adj' '.process.oomScoreAdj=900')"

# Mounts: tmpcopyup
copy='.mounts += [{"destination":"/vol","type":"tmpfs","source":"tmpfs","options":["tmpcopyup","nosuid"]}]'
b=$(bundle copy "$copy | .process.args=[\"sh\",\"-c\",\"cd /vol; stat -c '%n %a %u:%g %F %Y' . d d/e d/e/f l p; readlink l; cat d/e/f; echo more >d/new; ls /vol/sock 2>/dev/null; grep -c ' /vol ' /proc/self/mountinfo\"]")
mkdir -p "$b/rootfs/vol/d/e"; echo text >"$b/rootfs/vol/d/e/f"; chmod 644 "$b/rootfs/vol/d/e/f"; chown 5:6 "$b/rootfs/vol/d/e/f"; ln -s /marker "$b/rootfs/vol/l"; mkfifo -m 600 "$b/rootfs/vol/p"
chmod 1770 "$b/rootfs/vol/d"; touch -d @1000 "$b/rootfs/vol/d/e/f" "$b/rootfs/vol/d/e" "$b/rootfs/vol/d"; chown 7:8 "$b/rootfs/vol"; touch -d @2000 "$b/rootfs/vol"
expect CopyUp_Content ". 755 7:8 directory 2000|d 1770 0:0 directory 1000|d/e 755 0:0 directory 1000|d/e/f 644 5:6 regular file 1000|l|p 600|/marker|text|1" \
  "$(oci run -b "$b" copy 2>&1 </dev/null | sed -E 's/^l 777.*/l/; s/^p 600.*/p 600/' | paste -sd'|')"
expect CopyUp_OriginalUntouched "" "$(ls "$b/rootfs/vol/d/new" 2>/dev/null)"
# Links of a hostile root lead nowhere outside of it: neither the destination nor what is copied
b=$(bundle hostile "$copy | .process.args=[\"sh\",\"-c\",\"cat /vol/in; cat /vol/secret /vol/dir/secret 2>/dev/null; readlink /vol/dir\"]")
mkdir -p "$b/outside" "$b/rootfs$b/outside"; echo host >"$b/outside/secret"; echo image >"$b/rootfs$b/outside/in"
rmdir "$b/rootfs/vol"; ln -s "$b/outside" "$b/rootfs/vol"; ln -s "../../../../../..$b/outside" "$b/rootfs$b/outside/dir"; ln -s "$b/outside/secret" "$b/rootfs$b/outside/secret"
expect CopyUp_HostileLinks "image|../../../../../..$b/outside" "$(oci run -b "$b" hostile 2>&1 </dev/null | paste -sd'|')"
expect CopyUp_HostUntouched "secret" "$(ls "$b/outside")"
expect CopyUp_OptionsWin "750 9 10" "$(shell copyopt 'stat -c "%a %u %g" /vol' '.mounts += [{"destination":"/vol","type":"tmpfs","source":"tmpfs","options":["tmpcopyup","mode=0750","uid=9","gid=10"]}]')"
match CopyUp_ReadOnly "Read-only file system" "$(shell copyro 'touch /vol/x' '.mounts += [{"destination":"/vol","type":"tmpfs","source":"tmpfs","options":["tmpcopyup","ro"]}]')"
match CopyUp_OnlyTmpfs "option 'tmpcopyup' is for a tmpfs" "$(shell copyb true ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work\",\"options\":[\"bind\",\"tmpcopyup\"]}]")"
# The recursive words: each on the mount and on what is mounted below
mkdir -p "$work/tree/sub"; mount -t tmpfs tmpfs "$work/tree/sub"
recursive() { shell rec 'grep -E " /vol(/sub)? " /proc/self/mountinfo | cut -d" " -f6 | xargs' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/tree\",\"options\":[\"rbind\",\"$1\"]}]"; }
for pair in rro:ro rnosuid:nosuid rnodev:nodev rnoexec:noexec rnoatime:noatime rnodiratime:nodiratime rnosymfollow:nosymfollow; do
  expect "Recursive_${pair%:*}" 2 "$(recursive "${pair%:*}" | tr ' ' '\n' | grep -cE "(^|,)${pair#*:}(,|\$)")"
done
expect Recursive_rstrictatime 0 "$(recursive rstrictatime | grep -c relatime)"
umount "$work/tree/sub"; mount -t tmpfs -o ro,noexec tmpfs "$work/tree/sub"
expect Recursive_rrw_rexec "rw rw" "$(shell rec 'grep -E " /vol(/sub)? " /proc/self/mountinfo | cut -d" " -f6 | sed "s/,relatime//" | xargs' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/tree\",\"options\":[\"rbind\",\"rrw\",\"rexec\"]}]")"
umount "$work/tree/sub"

for id in $(oci list -q); do oci delete -f "$id"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left NothingLeft "$before"
exit $failed
