#!/bin/bash
# A black-box test for each security row that the engine owes, named after it. Hostile payloads are in attack.c.
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)

# SEC-01 (CVE-2019-5736): the runtime's program cannot be overwritten from inside
sums=$(sha256sum "$WHERRY_BIN"/wherry-oci)
b=$(bundle exe '.process.args=["sleep","30"]'); oci run -d -b "$b" exe >/dev/null 2>&1 </dev/null
oci exec -d exe sh -c 'attack exe 4 >/tmp/exe.out' >/dev/null 2>&1 </dev/null
for ((i = 0; i < 100; i++)); do oci exec exe true </dev/null; done
for ((i = 0; i < 60; i++)); do [[ -s $b/rootfs/tmp/exe.out ]] && break; read -rt 0.1 <> <(:); done
match SEC_01_NoWriteToTheRuntime '^seen=[0-9]+ written=0$' "$(cat "$b/rootfs/tmp/exe.out" 2>/dev/null)"
printf '#!/proc/self/exe\n' >"$b/rootfs/bin/bad"; chmod +x "$b/rootfs/bin/bad"
oci exec exe /bin/bad >/dev/null 2>&1 </dev/null; oci exec exe /proc/self/exe >/dev/null 2>&1 </dev/null
expect SEC_01_ProgramUnchanged "$sums" "$(sha256sum "$WHERRY_BIN"/wherry-oci)"

# SEC-02 (CVE-2016-9962): a joining process leads nowhere, not even for who may trace it
b=$(bundle trace '.process.args=["sleep","60"] | .process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_SYS_PTRACE","CAP_KILL"]}]|add)')
oci run -d -b "$b" trace >/dev/null 2>&1 </dev/null
touch "$work/only-on-the-host"
oci exec -d trace sh -c "attack host $work/only-on-the-host 6 >/tmp/host.out" >/dev/null 2>&1 </dev/null
for ((i = 0; i < 200; i++)); do oci exec trace true </dev/null; done
for ((i = 0; i < 80; i++)); do grep -q seen "$b/rootfs/tmp/host.out" 2>/dev/null && break; read -rt 0.1 <> <(:); done
match SEC_02_NoWayToTheHostFromAJoiner '^seen=[1-9][0-9]* hits=0 fds=0$' "$(cat "$b/rootfs/tmp/host.out" 2>/dev/null)"

# SEC-02: a container that stops whatever appears in it holds up nobody but the one who asked
oci delete -f trace
worker() { WHERRY_ROOT=$work/w/root WHERRY_STATE=$work/w/state WHERRY_CGROUP_PARENT=/$group-worker timeout 40 "$WHERRY_BIN/wherry" "$@" </dev/null 2>&1; }
b=$(bundle stopper '.process.args=["true"]')
worker run -d --network none --name stopper --rootfs "$b/rootfs" sh -c 'while :; do for p in /proc/[0-9]*; do p=${p#/proc/}; [ $p -gt 1 ] && [ $p != $$ ] && kill -STOP $p 2>/dev/null; done; done' >/dev/null
for ((i = 0; i < 5; i++)); do worker exec stopper sleep 0 >/dev/null & done
slowest=0 answered=0; for ((i = 0; i < 10; i++)); do t=$(date +%s%N); worker shim call stopper ping | grep -q pid && answered=$((answered + 1)); t=$((($(date +%s%N) - t) / 1000000)); ((t > slowest)) && slowest=$t; done
worker rm -f stopper >/dev/null; wait
((slowest < 4000 && answered == 10)) && PASS SEC_02_AStoppedExecHoldsUpNobody || FAIL SEC_02_AStoppedExecHoldsUpNobody "a ping took $slowest ms, $answered of 10 were answered"

# SEC-03 (CVE-2024-21626): no descriptor of the caller's, no working directory outside
for fd in 3 7 8 9 10 20; do
  got=$( (exec 9</; for n in 10 11 12 13 14 15; do eval "exec $n</"; done; shell cwd 'cat /marker; attack fds' ".process.cwd=\"/proc/self/fd/$fd\"") )
  if [[ $got == *"wherry-oci:"* || $got == *"more=0 cwd=/"* ]]; then PASS "SEC_03_Cwd_fd_$fd"; else FAIL "SEC_03_Cwd_fd_$fd" "$got"; fi
done
got=$( (exec 9</; for n in $(seq 10 200); do eval "exec $n</"; done 2>/dev/null; shell leak 'attack fds') )
match SEC_03_NoLeakedDescriptor 'more=0 cwd=/$' "$got"
ln -sfn /proc/self/fd/9 "$work/cwd/rootfs/link"
got=$( (exec 9</; shell cwd 'attack fds' '.process.cwd="/link"') ); match SEC_03_CwdBehindALink 'wherry-oci:|more=0 cwd=/' "$got"

# SEC-04: in state created only 0, 1, 2, the gate and the result are open
b=$(bundle created '.process.args=["sleep","9"]'); oci create -b "$b" created >/dev/null 2>&1 </dev/null
pid=$(oci state created | jq .pid)
expect SEC_04_DescriptorsWhenCreated "/dev/null /dev/null /dev/null gate result" \
  "$(for f in /proc/"$pid"/fd/*; do t=$(readlink "$f"); [[ $t == "$work"/state/* ]] && basename "$t" || echo "$t"; done | sort | tr '\n' ' ' | sed 's/ $//')"
oci delete -f created
count=$(ls /proc/self/fd | wc -l)
for ((i = 0; i < 20; i++)); do shell failing true '.process.args=["/nonesuch"] | .' >/dev/null; done
expect SEC_04_NoResidueOfFailedCreates "" "$(oci list -q | grep failing)"

# SEC-05 (CVE-2017-5226): no input pushed into the caller's terminal
got=$(script -qec "$WHERRY_BIN/wherry-oci --root $work/state run -b $(bundle tiocsti '.process.args=["attack","tiocsti"]') tiocsti" /dev/null </dev/null | tr -d '\r' | grep tty=)
match SEC_05_NoTiocsti '^tty=0 pushed=0 sid=1 pid=1$' "$got"

# SEC-06 (CVE-2019-14271): nothing of the root is loaded or run but process.args
b=$(bundle trap '.process.args=["/bin/true"]')
for f in bin/tar bin/gzip lib/x86_64-linux-gnu/libnss_files.so.2 etc/ld.so.preload usr/lib/gconv/gconv-modules; do
  mkdir -p "$(dirname "$b/rootfs/$f")"; printf '#!/bin/sh\ntouch /vol/marked\n' >"$b/rootfs/$f"; chmod +x "$b/rootfs/$f"; done
oci run -b "$b" trap </dev/null; expect SEC_06_NothingOfTheRootRuns "" "$(ls "$b/rootfs/vol")"

# SEC-10, SEC-11 (CVE-2021-30465, CVE-2024-45310): a name swapped for a link while mounts are made
b=$(bundle swap '.process.args=["true"] | .mounts += [{"destination":"/vol/target/deep","type":"bind","source":$s,"options":["rbind","ro"]}, {"destination":"/vol/target/made/by/us","type":"tmpfs","source":"tmpfs"}]' --arg s "$work/src")
mkdir -p "$work/src" "$work/outside"; host_before=$(find "$work/outside" | sort)
mkdir -p "$b/rootfs/vol/target"; ln -sfn "$work/outside" "$b/rootfs/vol/link"
"$work/attack" swap "$b/rootfs/vol/target" "$b/rootfs/vol/link" 20 >/dev/null & swapper=$!
mounts_before=$(wc -l </proc/self/mountinfo)
for ((i = 0; i < ${WHERRY_SWAPS:-150}; i++)); do oci run -b "$b" swap >/dev/null 2>&1 </dev/null; done
kill "$swapper" 2>/dev/null; wait "$swapper" 2>/dev/null
expect SEC_10_NoMountOutside "$mounts_before" "$(wc -l </proc/self/mountinfo)"
expect SEC_11_NothingMadeOutside "$host_before" "$(find "$work/outside" | sort)"

# SEC-12 (CVE-2026-41579): what the image has in /dev is not followed
echo precious >"$work/host-file"; chmod 600 "$work/host-file"; stat_before=$(stat -c '%a %u %g %s' "$work/host-file")
for name in null ptmx console; do for kind in link dangling dir fifo regular; do for tmpfs in yes no; do for tty in yes no; do
  edit='.process.args=["true"]'
  [[ $tmpfs == no ]] && edit+=' | .mounts |= map(select(.destination|startswith("/dev")|not))'
  [[ $tty == yes ]] && edit+=' | .process.terminal=true'
  b=$(bundle dev "$edit"); rm -rf "$b/rootfs/dev"; mkdir "$b/rootfs/dev"
  case $kind in
    link) ln -s "$work/host-file" "$b/rootfs/dev/$name" ;;
    dangling) ln -s "$work/outside/new" "$b/rootfs/dev/$name" ;;
    dir) mkdir "$b/rootfs/dev/$name" ;;
    fifo) mkfifo "$b/rootfs/dev/$name" ;;
    regular) touch "$b/rootfs/dev/$name" ;;
  esac
  if [[ $tty == yes ]]; then timeout 10 script -qec "$WHERRY_BIN/wherry-oci --root $work/state run -b $b dev" /dev/null </dev/null >/dev/null 2>&1
  else timeout 10 "$WHERRY_BIN/wherry-oci" --root "$work/state" run -b "$b" dev </dev/null >/dev/null 2>&1; fi
  (($? == 124)) && FAIL "SEC_12_${name}_${kind}_${tmpfs}_$tty" "it hangs"
done; done; done; done
expect SEC_12_HostFileUntouched "precious $stat_before" "$(cat "$work/host-file") $(stat -c '%a %u %g %s' "$work/host-file")"
expect SEC_12_NothingMade "$host_before" "$(find "$work/outside" | sort)"

# SEC-13 (CVE-2023-27561): /proc or /sys of the root is a link
for name in proc sys; do for to in /tmp / ..; do
  b=$(bundle link '.process.args=["true"]'); rm -rf "$b/rootfs/$name"; ln -s "$to" "$b/rootfs/$name"
  got=$(oci run -b "$b" link 2>&1 </dev/null); rc=$?
  if ((rc != 0)) && [[ $got == *"$name"* ]]; then PASS "SEC_13_${name}_to_$to"; else FAIL "SEC_13_${name}_to_$to" "rc=$rc $got"; fi
  rm "$b/rootfs/$name"; mkdir "$b/rootfs/$name"
done; done

# SEC-14 (CVE-2025-31133): masks are objects of ours, whatever /dev/null of the root is
core=$(cat /proc/sys/kernel/core_pattern)
b=$(bundle mask '.mounts |= map(select(.destination|startswith("/dev")|not)) | .process.args=["true"]')
ln -sfn /proc/sys/kernel/core_pattern "$b/rootfs/dev/null"; oci run -b "$b" mask >/dev/null 2>&1 </dev/null
expect SEC_14_MaskSource "1" "$?"
expect SEC_14_Masked "0" "$(shell masked 'cat /proc/keys | wc -c' | tail -1)"
expect SEC_14_HostValue "$core" "$(cat /proc/sys/kernel/core_pattern)"

# SEC-15 (CVE-2019-16884): nothing is mounted inside /proc
for dest in /proc/self/attr /proc/sys /proc/thread-self /proc/net/dev /proc/../proc/sys; do
  got=$(shell inproc true ".mounts += [{\"destination\":\"$dest\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}]"); match "SEC_15_$dest" "inside /proc|must be|\\.\\." "$got"
done

# ... also when a link or '..' leads there, and by bind; and what may be covered can be covered, once (lxcfs)
b=$(bundle inproc); ln -sfn proc "$b/rootfs/p"; ln -sfn ../proc "$b/rootfs/tmp/up"; echo covered >"$work/cover"
for dest in /p/sys/kernel /tmp/../proc/sys /sys/../proc/sys/kernel /p/1 /tmp/up/self/attr /p /tmp/up; do for how in tmpfs bind; do
  mount="{\"destination\":\"$dest\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}"
  [[ $how == bind ]] && mount="{\"destination\":\"$dest\",\"type\":\"bind\",\"source\":\"$work/src\",\"options\":[\"bind\"]}"
  got=$(shell inproc 'echo started' ".mounts += [$mount]"); match "SEC_15_${how}_$dest" "inside (a procfs|/proc)" "$got"
done; done
for dest in /p/1/environ /p/self/environ /tmp/../proc/version /p/net/dev /proc/net/dev; do
  got=$(shell inproc 'echo started' ".mounts += [{\"destination\":\"$dest\",\"type\":\"bind\",\"source\":\"$work/cover\",\"options\":[\"bind\"]}]")
  match "SEC_15_bind_$dest" "inside (a procfs|/proc)|magic|Too many levels" "$got"
done
expect SEC_15_Coverable covered "$(shell inproc 'cat /proc/uptime' ".mounts += [{\"destination\":\"/proc/uptime\",\"type\":\"bind\",\"source\":\"$work/cover\",\"options\":[\"bind\"]}]")"
rm "$b/rootfs/p" "$b/rootfs/tmp/up"

# SEC-18: flags are there, on the whole tree where it was asked for
mkdir -p "$work/ro/sub"; mount -t tmpfs tmpfs "$work/ro/sub" 2>/dev/null
got=$(shell flags 'touch /vol/a 2>&1; touch /vol/sub/b 2>&1; grep /vol /proc/self/mountinfo' ".mounts += [{\"destination\":\"/vol\",\"type\":\"bind\",\"source\":\"$work/ro\",\"options\":[\"rbind\",\"rro\",\"nosuid\",\"nodev\",\"noexec\"]}]")
umount "$work/ro/sub"
expect SEC_18_RecursiveReadOnly 2 "$(grep -c 'Read-only file system' <<<"$got")"
match SEC_18_Flags ' /vol ro,nosuid,nodev,noexec' "$got"

# SEC-19: no way to the old root
match SEC_19_NoEscape '^inside$' "$(shell escape 'attack escape' '.process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_SYS_CHROOT","CAP_DAC_READ_SEARCH"]}]|add)' | tail -1)"
expect SEC_19_OnlyItsMounts "/ /dev /dev/pts /proc /proc/keys /proc/sys /sys" "$(shell mounts 'cut -d" " -f5 /proc/self/mountinfo' | sort | tr '\n' ' ' | sed 's/ $//')"

# SEC-20: devices are denied by default, before the payload runs and while rules change
caps='.process.capabilities=([["bounding","effective","permitted"][] | {(.):["CAP_MKNOD"]}]|add)'
expect SEC_20_Allowed "mknod ok open ok" "$(shell devs 'attack mknod c 1 3' "$caps" | tail -1)"
expect SEC_20_Denied "mknod EPERM" "$(shell devs 'attack mknod b 254 0' "$caps" | tail -1)"
expect SEC_20_DeniedKmsg "mknod EPERM" "$(shell devs 'attack mknod c 1 11' "$caps" | tail -1)"
expect SEC_20_NoListAtAll "mknod EPERM" "$(shell devs 'attack mknod c 1 11' "$caps | del(.linux.resources)" | tail -1)"

# SEC-30 (CVE-2022-29162): five exact sets at start and exec
caps=$(shell caps 'grep Cap /proc/self/status | tr -d "\n\t"'); expect SEC_30_Start "CapInh:0000000000000000CapPrm:0000000000000021CapEff:0000000000000021CapBnd:0000000000000021CapAmb:0000000000000000" "$caps"
b=$(bundle capsx '.process.args=["sleep","20"]'); oci run -d -b "$b" capsx >/dev/null 2>&1 </dev/null
expect SEC_30_Exec "CapInh:0000000000000000CapPrm:0000000000000021CapEff:0000000000000021CapBnd:0000000000000021CapAmb:0000000000000000" "$(oci exec capsx sh -c 'grep Cap /proc/self/status | tr -d "\n\t"' </dev/null)"
expect SEC_30_ExecOneMore "CapInh:0000000000000000CapPrm:0000000000000421CapEff:0000000000000421CapBnd:0000000000000421CapAmb:0000000000000000" "$(oci exec --cap CAP_NET_BIND_SERVICE capsx sh -c 'grep Cap /proc/self/status | tr -d "\n\t"' </dev/null)"
expect SEC_30_User "CapInh:0000000000000000CapPrm:0000000000000000CapEff:0000000000000000CapBnd:0000000000000021CapAmb:0000000000000000" "$(oci exec -u 1000:1000 capsx sh -c 'grep Cap /proc/self/status | tr -d "\n\t"' </dev/null)"

# SEC-31 (CVE-2022-36109): the primary group is in the list
expect SEC_31_Groups "1000 2000" "$(shell groups 'grep ^Groups /proc/self/status | cut -f2' '.process.user={"uid":1000,"gid":1000,"additionalGids":[2000]}' | tr -s ' ' | sed 's/ $//')"
b=$(bundle negative '.process.user={"uid":1000,"gid":1000} | .process.args=["cat","/secret"]'); echo x >"$b/rootfs/secret"; chown 0:1000 "$b/rootfs/secret"; chmod 0705 "$b/rootfs/secret"
match SEC_31_NegativeGroup 'Permission denied' "$(oci run -b "$b" negative 2>&1 </dev/null)"

# SEC-35: a profile that allows next to nothing starts a static payload; without no-new-privileges the order is another
profile='.linux.seccomp={"defaultAction":"SCMP_ACT_KILL_PROCESS","architectures":["SCMP_ARCH_X86_64"],"syscalls":[{"names":["execve","exit_group","write","brk","arch_prctl","set_tid_address","set_robust_list","prctl","rseq","prlimit64","readlink","getrandom","mprotect","newfstatat","uname","readlinkat","ioctl","fstat","getuid","getpid","geteuid","getgid","getegid","rt_sigaction","rt_sigprocmask","open","openat","read","close"],"action":"SCMP_ACT_ALLOW"}]}'
b=$(bundle tiny "$profile | .process.args=[\"/bin/true\"]"); oci run -b "$b" tiny </dev/null; expect SEC_35_FilterLast 0 $?
b=$(bundle tiny "$profile | .process.args=[\"/bin/true\"] | .process.noNewPrivileges=false"); oci run -b "$b" tiny </dev/null >/dev/null 2>&1; rc=$?
if ((rc != 0)); then PASS SEC_35_WithoutNnpUnderTheFilter; else FAIL SEC_35_WithoutNnpUnderTheFilter "credentials were set outside of the filter"; fi

# SEC-55: documents that are not what they seem
deep=$(printf '[%.0s' $(seq 100)); n=0
for text in '' '{' '[]' 'null' '{"ociVersion":1}' '{"ociVersion":"1.0.2","ociVersion":"1.0.2"}' "$deep" '{"ociVersion":"1.0.2","process":{"args":"x"}}' $'{"ociVersion":"1.0.2","hostname":"\xff"}' '{"ociVersion":"1.0.2","linux":{"resources":{"pids":{"limit":1e99}}}}' '{"ociVersion":"1.0.2","process":{"user":{"uid":4294967296}}}'; do
  mkdir -p "$work/bad"; printf '%s' "$text" >"$work/bad/config.json"; n=$((n + 1)); got=$(oci run -b "$work/bad" "bad$n" 2>&1 </dev/null); rc=$?
  if ((rc == 1)) && [[ $got == *config.json* && -z $(oci list -q | grep bad) ]]; then PASS "SEC_55_BadDocument_$n"; else FAIL "SEC_55_BadDocument_$n" "rc=$rc $got"; fi
done

# SEC-62: the state directory is private, and refused when it is not
expect SEC_62_Mode 700 "$(stat -c %a "$work/state")"
mkdir -m 777 "$work/open"; got=$("$WHERRY_BIN/wherry-oci" --root "$work/open" list 2>&1); match SEC_62_OpenStateRefused 'writable by nobody else' "$got"

for id in $(oci list -q); do oci delete -f "$id"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left NothingLeft "$before"
exit $failed
