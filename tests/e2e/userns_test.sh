#!/bin/bash
# User and time namespaces: made and joined, what belongs to whom in there, and what stays the host's.
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
maps='.linux.uidMappings=[{"containerID":0,"hostID":100000,"size":65536}] | .linux.gidMappings=[{"containerID":0,"hostID":200000,"size":65536}]'
new=".linux.namespaces += [{\"type\":\"user\"}] | $maps"
# inside NAME SCRIPT [EDIT]: in a container with a user namespace of its own whose ids own the root
inside() {
  local b; b=$(bundle "$1" "$new | ${3:-.} | .process.args=[\"sh\",\"-c\",\$s]" --arg s "$2")
  chown -R 100000:200000 "$b/rootfs"; oci run -b "$b" "$1" 2>&1 </dev/null
}
# started NAME [EDIT]: the same, left running; prints the pid
started() {
  local b; b=$(bundle "$1" "$new | ${2:-.} | .process.args=[\"sleep\",\"60\"]"); chown -R 100000:200000 "$b/rootfs"
  oci run -d -b "$b" "$1" >/dev/null 2>&1 </dev/null; oci state "$1" | jq .pid
}
own() { readlink "/proc/self/ns/$1"; }

expect Userns_Maps "0 100000 65536 0 200000 65536" "$(inside maps 'cat /proc/self/uid_map /proc/self/gid_map' | xargs)"
expect Userns_SetgroupsAllowed "allow 0 5 7" "$(inside groups 'cat /proc/self/setgroups; grep ^Groups /proc/self/status' '.process.user.additionalGids=[5,7]' | sed 's/Groups://' | xargs)"
expect Userns_UserOfTheRoot "1000 1000" "$(inside user 'id -u; id -g' '.process.user={"uid":1000,"gid":1000}' | xargs)"
pid=$(started life); ids=$(grep -E '^(Uid|Gid)' "/proc/$pid/status" | cut -f2 | xargs)
expect Userns_IdsOfTheHost "100000 200000" "$ids"
for ns in net ipc uts mnt pid cgroup; do # NS_GET_USERNS of each is the container's
  owner=$(python3 -c 'import fcntl,os,sys; f=os.open(sys.argv[1],os.O_RDONLY); o=fcntl.ioctl(f,0xb701); print(os.fstat(o).st_ino)' "/proc/$pid/ns/$ns")
  expect "Userns_Owns_$ns" "$(stat -Lc %i "/proc/$pid/ns/user")" "$owner"
done
expect SEC_38_Cgroup "/$group/life" "$(sed -n 's/^0:://p' "/proc/$pid/cgroup")"
# SEC-38 for the v1 hierarchies too
expect SEC_38_CgroupOfMemory "/$group/life" "$(sed -n 's/^[0-9]*:memory://p' "/proc/$pid/cgroup")"
expect Userns_ExecInside "0 0 $(readlink "/proc/$pid/ns/user")" "$(oci exec life sh -c 'id -u; id -g; readlink /proc/self/ns/user' </dev/null | xargs)"
expect SEC_30_ExecInside "CapInh:0000000000000000CapPrm:0000000000000021CapEff:0000000000000021CapBnd:0000000000000021CapAmb:0000000000000000" "$(oci exec life sh -c 'grep Cap /proc/self/status | tr -d "\n\t"' </dev/null)"
expect Userns_ExecAsUser "7 8" "$(oci exec -u 7:8 life sh -c 'id -u; id -g' </dev/null | xargs)"
jq -n '{args:["sh","-c","cat /proc/self/oom_score_adj; ulimit -n"],cwd:"/",user:{uid:0,gid:0},env:["PATH=/bin"],oomScoreAdj:7,rlimits:[{type:"RLIMIT_NOFILE",soft:300,hard:400}]}' >"$work/p.json"
expect Userns_ExecLimitsOfTheHost "7 300" "$(oci exec -p "$work/p.json" life </dev/null 2>&1 | xargs)"

# What only the host may set is set, from outside
resource=$(capsh --decode="$(awk '/CapEff/{print $2}' /proc/self/status)" | grep -c cap_sys_resource)
if ((resource)); then
  expect Userns_LimitsOfTheHost "4000 -9" "$( (ulimit -n 1000; inside limits 'ulimit -Hn; cat /proc/self/oom_score_adj' '.process.rlimits=[{"type":"RLIMIT_NOFILE","soft":500,"hard":4000}] | .process.oomScoreAdj=-9') | xargs)"
else
  match Userns_LimitsOfTheHost 'oom_score_adj = -9.: Permission denied .*CAP_SYS_RESOURCE' "$(inside limits true '.process.oomScoreAdj=-9')"
fi
pid2=$(started nice '.process.scheduler={"policy":"SCHED_OTHER","nice":-7}')
expect Userns_NiceOfTheHost -7 "$(cut -d' ' -f19 "/proc/$pid2/stat")"
oci delete -f nice

# Devices are the host's own, bound; no other can be made or opened
match Userns_Devices 'ok' "$(inside devs 'echo x >/dev/null && head -c 4 /dev/zero | wc -c | grep -q 4 && echo ok')"
expect Userns_NoMknod "mknod EPERM" "$(inside devs 'attack mknod c 1 3' '.process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_MKNOD"]}]|add)' | tail -1)"
match Userns_DeviceThatTheHostLacks "device '/dev/none' 10:4711: in a user namespace it can only be the host's own, which cannot be had" "$(inside devs true '.linux.devices=[{"path":"/dev/none","type":"c","major":10,"minor":4711}]')"
match Userns_DeviceThatIsAnother "device '/dev/zero' 1:3: .* which is another one" "$(inside devs true '.linux.devices=[{"path":"/dev/zero","type":"c","major":1,"minor":3}]')"
match Userns_DeviceThatIsMoreOpen "device '/dev/null' 1:3: .* whose mode allows more" "$(inside devs true '.linux.devices=[{"path":"/dev/null","type":"c","major":1,"minor":3,"fileMode":384}]')"
match Userns_DeviceOfAnother "device '/dev/null' 1:3: .* which belongs to 0:0" "$(inside devs true '.linux.devices=[{"path":"/dev/null","type":"c","major":1,"minor":3,"uid":5}]')"
# No link of the image's is followed for a device, and nothing but a file or a node is covered
linked() { local b; b=$(bundle "$1" "$new | .mounts |= map(select(.destination == \"/proc\")) | .process.args=[\"true\"]"); ${2:?} "$b/rootfs"; chown -hR 100000:200000 "$b/rootfs"; oci run -b "$b" "$1" 2>&1 </dev/null; }
to_passwd() { ln -s /etc/passwd "$1/dev/null"; }; to_dir() { mkdir "$1/dev/zero"; }; dev_to_etc() { rmdir "$1/dev"; ln -s etc "$1/dev"; }
match Userns_DeviceIsALink "device '/dev/null': .*is a link" "$(linked devlink to_passwd)"
match Userns_DeviceIsADirectory "device '/dev/zero': .*neither a file nor a device" "$(linked devdir to_dir)"
match Userns_DevIsALink "'/dev' of the root: " "$(linked devdev dev_to_etc | head -1)"
expect Userns_Fifo "prw-r-----" "$(inside devs 'ls -l /dev/pipe | cut -d" " -f1' '.linux.devices=[{"path":"/dev/pipe","type":"p","fileMode":416}]')"

# SEC-16 and kin: nothing of the host's can be written
expect SEC_16_CgroupReadOnly "1" "$(inside cg 'mkdir /sys/fs/cgroup/unified/x 2>/dev/null; echo $?' '.mounts += [{"destination":"/sys/fs/cgroup","type":"cgroup","source":"cgroup","options":["ro","nosuid","nodev","noexec"]}]' | tail -1)"
expect SEC_16_CgroupNotOwned "1 1" "$(inside cg 'mkdir /sys/fs/cgroup/unified/x 2>/dev/null; echo $?; (echo 1 >/sys/fs/cgroup/memory/memory.limit_in_bytes) 2>/dev/null; echo $?' '.mounts += [{"destination":"/sys/fs/cgroup","type":"cgroup","source":"cgroup","options":["nosuid","nodev","noexec"]}]' | xargs)"
echo precious >"$work/of-root"; chmod 600 "$work/of-root"
match Userns_FileOfTheHostsRoot "Permission denied" "$(inside file 'cat /vol/f' ".mounts += [{\"destination\":\"/vol/f\",\"type\":\"bind\",\"source\":\"$work/of-root\",\"options\":[\"bind\"]}] | .process.capabilities=([[\"bounding\",\"effective\",\"permitted\"][] | {(.):[\"CAP_DAC_OVERRIDE\"]}]|add)")"
expect Userns_Masked "0" "$(inside mask 'cat /proc/keys | wc -c')"
expect Userns_Sysctl "1 61234" "$(inside ctl 'cat /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/msgmax' '.linux.sysctl={"net.ipv4.ip_forward":"1","kernel.msgmax":"61234"}' | xargs)"
b=$(bundle hook "$new | .hooks.createContainer=[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"exit \$((\$(id -u)+9))\"],\"env\":[\"PATH=/usr/bin:/bin\"]}]"); chown -R 100000:200000 "$b/rootfs"
match Userns_HookIsRootInside "createContainer\[0\] '/bin/sh': it ended with 9" "$(oci run -b "$b" hook 2>&1 </dev/null)"
expect Userns_MqueueIsOurs "0 0" "$(inside mq 'stat -c "%u %g" /dev/mqueue' '.mounts += [{"destination":"/dev/mqueue","type":"mqueue","source":"mqueue"}]')"
# A pipe of the caller's is the user's in there: /dev/stdout can be opened again (cat: stdin may be one too)
expect Userns_PipesAreTheUsers "1000 again" "$(inside pipes 'stat -Lc %u /proc/self/fd/1; echo again >/proc/self/fd/1' '.process.user={"uid":1000,"gid":1000}' | cat | xargs)"
expect Userns_PipesOfAnExec "7 again" "$(oci exec -u 7:8 life sh -c 'stat -Lc %u /proc/self/fd/1; echo again >/proc/self/fd/1' </dev/null | cat | xargs)"
match Userns_Terminal 'tty /dev/pts/0 0$' "$(b=$(bundle tty "$new | .process.terminal=true | .process.args=[\"sh\",\"-c\",\"echo tty \$(readlink /proc/self/fd/0) \$(stat -c %u /dev/pts/0)\"]"); chown -R 100000:200000 "$b/rootfs"; script -qec "$WHERRY_BIN/wherry-oci --root $work/state run -b $b tty" /dev/null </dev/null | tr -d '\r')"
expect Userns_WithoutNoNewPrivs "31" "$(inside seccomp 'mkdir /tmp/x 2>/dev/null; id -u >/dev/null; echo 31' '.process.noNewPrivileges=false | .linux.seccomp={"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir"],"action":"SCMP_ACT_ERRNO"}]}' | tail -1)"

# Namespaces by path: the host's with a user namespace of one's own, and all of another container's
unshare --net --ipc --uts sleep 300 & helper=$!
for ((i = 0; i < 50; i++)); do [[ $(readlink /proc/$helper/ns/net) != "$(own net)" ]] && break; read -rt 0.1 <> <(:); done
got=$(inside joinhost 'for n in net ipc uts; do readlink /proc/self/ns/$n; done' ".linux.namespaces |= map(if .type==\"network\" then .path=\"/proc/$helper/ns/net\" elif .type==\"ipc\" then .path=\"/proc/$helper/ns/ipc\" elif .type==\"uts\" then .path=\"/proc/$helper/ns/uts\" else . end) | del(.hostname) | .mounts |= map(select(.destination != \"/sys\"))" | xargs)
expect Userns_JoinsOfTheHost "$(for n in net ipc uts; do readlink /proc/$helper/ns/$n; done | xargs)" "$got"
kill $helper; wait $helper 2>/dev/null
unshare --pid --fork --kill-child sleep 300 & helper=$! # a pid namespace that is the host's
for ((i = 0; i < 50; i++)); do pgrep -P $helper >/dev/null && break; read -rt 0.1 <> <(:); done
pid3=$(started hostpids ".linux.namespaces |= map(if .type==\"pid\" then .path=\"/proc/$helper/ns/pid_for_children\" else . end) | .mounts |= map(select(.destination != \"/proc\")) | .linux.maskedPaths=[] | .linux.readonlyPaths=[]")
expect Userns_PidsOfTheHost "$(readlink "/proc/$helper/ns/pid_for_children")" "$(readlink "/proc/$pid3/ns/pid")"
expect Userns_ExecWithPidsOfTheHost 0 "$(oci exec hostpids id -u </dev/null 2>&1)"
oci delete -f hostpids; kill -9 $helper; wait $helper 2>/dev/null
match Userns_SysfsNeedsItsNetwork "mount '/sys': .*bind the host's /sys" "$(inside sysfs true '.linux.namespaces |= map(select(.type != "network"))')"
b=$(bundle joined ".linux.namespaces = [{\"type\":\"mount\"},{\"type\":\"pid\"},{\"type\":\"cgroup\"},{\"type\":\"user\",\"path\":\"/proc/$pid/ns/user\"},{\"type\":\"network\",\"path\":\"/proc/$pid/ns/net\"},{\"type\":\"ipc\",\"path\":\"/proc/$pid/ns/ipc\"},{\"type\":\"uts\",\"path\":\"/proc/$pid/ns/uts\"}] | del(.hostname) | .process.args=[\"sh\",\"-c\",\"for n in user net ipc uts; do readlink /proc/self/ns/\$n; done; id -u; cat /proc/1/comm; cat /proc/self/oom_score_adj\"] | .process.oomScoreAdj=3")
chown -R 100000:200000 "$b/rootfs"
expect Userns_Joined "$(for n in user net ipc uts; do readlink "/proc/$pid/ns/$n"; done | xargs) 0 sh 3" "$(oci run -b "$b" joined 2>&1 </dev/null | xargs)"
b=$(bundle joined ".linux.namespaces = [{\"type\":\"mount\"},{\"type\":\"user\",\"path\":\"/proc/$pid/ns/user\"},{\"type\":\"pid\",\"path\":\"/proc/$pid/ns/pid\"},{\"type\":\"network\",\"path\":\"/proc/$pid/ns/net\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}] | .process.args=[\"sh\",\"-c\",\"readlink /proc/self/ns/pid; cat /proc/1/comm\"]")
expect Userns_JoinedWithItsPids "$(readlink "/proc/$pid/ns/pid") sleep" "$(oci run -b "$b" joined 2>&1 </dev/null | xargs)"
oci delete -f life

# SEC-02 in a user namespace: neither an exec nor a container that is made in there leads a tracer to the host
ptrace='.process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_SYS_PTRACE","CAP_KILL","CAP_DAC_OVERRIDE"]}]|add)'
pid=$(started trace "$ptrace"); touch "$work/only-on-the-host"; chmod 711 "$work"
b=$(bundle injoin ".linux.namespaces = [{\"type\":\"mount\"},{\"type\":\"user\",\"path\":\"/proc/$pid/ns/user\"},{\"type\":\"pid\",\"path\":\"/proc/$pid/ns/pid\"},{\"type\":\"network\",\"path\":\"/proc/$pid/ns/net\"},{\"type\":\"ipc\"},{\"type\":\"uts\"}]"); chown -R 100000:200000 "$b/rootfs"
attack() { # WHAT COMMAND...: the tracer's count of what it saw and reached meanwhile
  local what=$1; shift; oci exec -d trace sh -c "attack host $work/only-on-the-host 5 >/tmp/$what" >/dev/null 2>&1 </dev/null
  for ((i = 0; i < 100; i++)); do "$@"; done >/dev/null 2>&1 </dev/null
  for ((i = 0; i < 80; i++)); do grep -q seen "$work/trace/rootfs/tmp/$what" 2>/dev/null && break; read -rt 0.1 <> <(:); done
  cat "$work/trace/rootfs/tmp/$what"
}
match SEC_02_ExecIntoAUserNamespace '^seen=[1-9][0-9]* hits=0 fds=0$' "$(attack exec oci exec trace true)"
match SEC_02_MadeInAJoinedUserNamespace '^seen=[1-9][0-9]* hits=0 fds=0$' "$(attack join oci run -b "$b" injoin)"
oci delete -f trace

# Refused by name
match Userns_NoMaps "linux.uidMappings: a new user namespace needs them" "$(shell nomaps true '.linux.namespaces += [{"type":"user"}]')"
match Userns_NoRoot "linux.uidMappings: id 0 of the container is not mapped" "$(shell noroot true '.linux.namespaces += [{"type":"user"}] | .linux.uidMappings=[{"containerID":5,"hostID":100000,"size":10}] | .linux.gidMappings=[{"containerID":0,"hostID":100000,"size":10}]')"
match Userns_UserNotMapped "process.user.uid: 70000 is not mapped by linux.uidMappings" "$(inside nomap true '.process.user.uid=70000')"
match Userns_GroupNotMapped "process.user.gid: 65536 is not mapped by linux.gidMappings" "$(inside nomap true '.process.user.gid=65536')"
match Userns_MoreGroupsNotMapped "process.user.additionalGids: 99999 is not mapped" "$(inside nomap true '.process.user.additionalGids=[1,99999]')"
match Userns_MapsOfAJoined "linux.uidMappings: a user namespace that is joined" "$(shell both true ".linux.namespaces += [{\"type\":\"user\",\"path\":\"/proc/self/ns/user\"}] | $maps")"
# SEC-39: many lines
many=$(jq -nc '[range(300) | {containerID:., hostID:(100000+.*2), size:1}]')
expect SEC_39_ManyLines 300 "$(b=$(bundle many "$new | .linux.uidMappings=$many | .linux.gidMappings=$many | .process.args=[\"sh\",\"-c\",\"wc -l </proc/self/uid_map\"]"); chown -R 100000:100000 "$b/rootfs"; oci run -b "$b" many 2>&1 </dev/null)"
many=$(jq -nc '[range(341) | {containerID:., hostID:(100000+.*2), size:1}]')
match SEC_39_TooManyLines "linux.uidMappings: 341 lines" "$(shell many true ".linux.namespaces += [{\"type\":\"user\"}] | .linux.uidMappings=$many | .linux.gidMappings=$many")"

# What the host's mount forbids stays forbidden to a CAP_SYS_ADMIN of the user namespace's own; so does what the spec forbids
mkdir "$work/locked" "$work/open" "$work/locked/sub"; mount -t tmpfs -o nosuid,nodev,noexec tmpfs "$work/locked"; mkdir "$work/locked/sub"; mount -t tmpfs tmpfs "$work/locked/sub"; mount -o remount,ro "$work/locked"
admin='.process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_SYS_ADMIN"]}]|add)'
locks() { inside lock "for o in rw suid dev exec; do mount -o remount,bind,\$o /vol 2>/dev/null && echo \$o; done; umount /vol/sub 2>/dev/null && echo uncovered; grep -E ' /vol ' /proc/self/mountinfo | cut -d' ' -f6" "$admin | .mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/$1\",\"options\":[$2]}]"; }
expect Userns_LockedFlagsOfTheHost "ro,nosuid,nodev,noexec,relatime" "$(locks locked '"rbind"')"
expect Userns_LockedFlagsOfTheSpec "ro,nosuid,nodev,noexec,relatime" "$(locks open '"bind","ro","nosuid","nodev","noexec"')"
umount "$work/locked/sub" "$work/locked"
b=$(bundle slave "$new | .mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/open\",\"options\":[\"rbind\",\"rslave\"]}] | .process.args=[\"sh\",\"-c\",\"echo up; read x; ls /vol/sub\"]"); chown -R 100000:200000 "$b/rootfs"
mount -t tmpfs tmpfs "$work/open"; mount --make-shared "$work/open"; mkdir "$work/open/sub"
coproc slave { oci run -b "$b" slave 2>&1; }
read -r _ <&"${slave[0]}"; mount -t tmpfs tmpfs "$work/open/sub"; touch "$work/open/sub/arrived"; echo go >&"${slave[1]}"
expect Userns_SlavesStaySlaves arrived "$(cat <&"${slave[0]}")"
umount "$work/open/sub" "$work/open"
# Idmapped mounts
mkdir -p "$work/idmap"; echo hers >"$work/idmap/f"; chown 1234:1235 "$work/idmap/f"; chown 1234:1235 "$work/idmap"
expect Idmap_OwnMaps "5000 6000" "$(shell idmap 'stat -c "%u %g" /vol/f' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/idmap\",\"options\":[\"bind\"],\"uidMappings\":[{\"containerID\":1234,\"hostID\":5000,\"size\":1}],\"gidMappings\":[{\"containerID\":1235,\"hostID\":6000,\"size\":1}]}]")"
expect Idmap_OfTheContainer "1234 1235" "$(inside idmap 'stat -c "%u %g" /vol/f' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/idmap\",\"options\":[\"bind\",\"idmap\"]}]")"
expect Idmap_Writes "1234 1235" "$(inside idmap 'echo x >/vol/g' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/idmap\",\"options\":[\"bind\",\"ridmap\"]}] | .process.user={\"uid\":1234,\"gid\":1235}"; stat -c '%u %g' "$work/idmap/g")"
match Idmap_WithoutMaps "option 'idmap' needs 'uidMappings'" "$(shell idmap true ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/idmap\",\"options\":[\"bind\",\"idmap\"]}]")"
match Idmap_OfATmpfs "only a bind mount can have id mappings" "$(shell idmap true '.mounts += [{"destination":"/vol","type":"tmpfs","source":"tmpfs","options":["idmap"]}]')"

# Time
time='.linux.namespaces += [{"type":"time"}] | .linux.timeOffsets={"monotonic":{"secs":-5,"nanosecs":7},"boottime":{"secs":864000}}'
expect Time_Offsets "monotonic -5 7 boottime 864000 0" "$(shell time 'cat /proc/self/timens_offsets' "$time" | xargs)"
up=$(cut -d. -f1 /proc/uptime); inup=$(shell time 'cut -d. -f1 /proc/uptime' "$time")
if ((inup - up >= 864000 && inup - up < 864060)); then PASS Time_Passes; else FAIL Time_Passes "$up $inup"; fi
expect Time_InAUserNamespace "boottime 3600 0" "$(inside time 'grep boottime /proc/self/timens_offsets' '.linux.namespaces += [{"type":"time"}] | .linux.timeOffsets={"boottime":{"secs":3600}}' | xargs)"
b=$(bundle timex "$time | .process.args=[\"sleep\",\"30\"]"); oci run -d -b "$b" timex >/dev/null 2>&1 </dev/null; pid=$(oci state timex | jq .pid)
expect Time_Exec "$(readlink "/proc/$pid/ns/time")" "$(oci exec timex busybox readlink /proc/self/ns/time </dev/null)"
if [[ $(readlink "/proc/$pid/ns/time") != "$(own time)" ]]; then PASS Time_IsNew; else FAIL Time_IsNew "it is the host's"; fi
expect Time_ByPath "$(readlink "/proc/$pid/ns/time")" "$(shell timep 'readlink /proc/self/ns/time' ".linux.namespaces += [{\"type\":\"time\",\"path\":\"/proc/$pid/ns/time\"}]")"
oci delete -f timex
match Time_TooFarBack "linux.timeOffsets: .*(Numerical result out of range|ERANGE)" "$(shell time true '.linux.namespaces += [{"type":"time"}] | .linux.timeOffsets={"boottime":{"secs":-99999999}}')"

for id in $(oci list -q); do oci delete -f "$id"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left NothingLeft "$before"
exit $failed
