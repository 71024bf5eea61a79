#!/bin/bash
# The six kinds of hooks (runtime-spec, config.md): when and where each runs, what it gets, and what its failure does.
set -u
. "$(dirname "$0")/oci_lib.sh"
before=$(snapshot)
log=$work/hook.log
cat >"$work/hook" <<'EOS'
#!/bin/bash
# hook NAME LOG: one line of what can be seen from here.
state=$(cat)
get() { jq -r "$1" <<<"$state"; }
echo "$1 status=$(get .status) id=$(get .id) note=$(get '.annotations.note') pid=$(get '.pid // "none"') self=$$ net=$(readlink /proc/self/ns/net) uts=$(hostname) cwd=$PWD umask=$(umask) root=$(ls -d "$(get .bundle)"/rootfs/proc/1 2>/dev/null)" >>"$2"
EOS
# In the container there is a busybox only, and the state goes to a file as it is.
cat >"$work/inner" <<'EOS'
#!/bin/sh
cat >/vol/state; env >/vol/env; echo "startContainer host=$(cat /proc/sys/kernel/hostname) args=$0 $* marker=$(cat /marker)" >>/vol/log
EOS
chmod +x "$work/hook" "$work/inner"
all='.annotations={"note":"kept"} | .hooks=([["prestart","createRuntime","createContainer","poststart","poststop"][] | {(.):[{"path":$h,"args":["hook",.,$log],"env":["PATH=/usr/sbin:/usr/bin:/sbin:/bin"],"timeout":20}]}]|add)'
hooked() { # NAME JQ-EDIT
  bundle "$1" "$all | $2" --arg h "$work/hook" --arg log "$log"
}
field() { sed -n "s/^$1 .*\\b$2=\\([^ ]*\\).*/\\1/p" "$log"; }

# Order, namespaces, state
b=$(hooked order '.hooks.startContainer=[{"path":"/bin/inner","args":["inner","x"],"env":["A=b"]}] | .process.args=["sh","-c","echo payload >>/vol/log; sleep 20"]')
cp "$work/inner" "$b/rootfs/bin/inner"
LD_PRELOAD='' SECRET=1 oci create -b "$b" order >/dev/null 2>&1 </dev/null
expect Hooks_OfCreate "prestart createRuntime createContainer" "$(cut -d' ' -f1 "$log" | xargs)"
expect Hooks_StatusOfCreate "creating creating creating" "$(for h in prestart createRuntime createContainer; do field $h status; done | xargs)"
expect Hooks_Annotations "kept kept kept" "$(for h in prestart createRuntime createContainer; do field $h note; done | xargs)"
pid=$(oci state order | jq .pid)
expect Hooks_PidOfTheHost "$pid $pid" "$(field prestart pid) $(field createRuntime pid)"
expect Hooks_PidOfTheContainer 1 "$(field createContainer pid)"
own=$(readlink /proc/self/ns/net); inside=$(readlink "/proc/$pid/ns/net")
expect Hooks_RuntimeNamespace "$own $own" "$(field prestart net) $(field createRuntime net)"
expect Hooks_ContainerNamespace "$inside" "$(readlink "/proc/$pid/ns/net")"
expect Hooks_RootIsWhereTheBundleSays "$b/rootfs/proc/1" "$(field createContainer root)"
expect SEC_56_WorkingDirectory "$b $b /" "$(for h in prestart createRuntime createContainer; do field $h cwd; done | xargs)"
expect SEC_56_Umask "0022 0022 0022" "$(for h in prestart createRuntime createContainer; do field $h umask; done | xargs)"
expect Hooks_NothingBeforeStart "" "$(cat "$b/rootfs/vol/log" 2>/dev/null)"
oci start order
expect Hooks_StartContainerFirst "startContainer host=e2e args=/bin/inner x marker=inside" "$(head -1 "$b/rootfs/vol/log")"
expect Hooks_StartContainerState "created 1" "$(jq -r '"\(.status) \(.pid)"' "$b/rootfs/vol/state")"
expect SEC_56_Environment "A=b" "$(grep -vxE '(PWD|SHLVL|_|OLDPWD)=.*|PATH=/sbin:/usr/sbin:/bin:/usr/bin' "$b/rootfs/vol/env" | xargs)"
expect Hooks_Poststart "running $pid" "$(field poststart status) $(field poststart pid)"
expect Hooks_NoPoststopYet "" "$(field poststop status)"
oci delete -f order
expect Hooks_Poststop "stopped none" "$(field poststop status) $(field poststop pid)"
expect Hooks_Once "1" "$(grep -c ^poststop "$log")"

# A mount that a hook makes at root.path is there
b=$(bundle mounted '.process.args=["cat","/vol/seen"] | .hooks={"createContainer":[{"path":"/bin/sh","args":["sh","-c","mkdir -p /tmp/x; mount -t tmpfs t \"$0\"; echo by-a-hook >\"$0/seen\"",$d],"env":["PATH=/usr/bin:/bin"]}]}' --arg d "$work/mounted/rootfs/vol")
expect Hooks_MountOfAHook "by-a-hook" "$(oci run -b "$b" mounted 2>&1 </dev/null)"

# Failures: create
for kind in prestart createRuntime createContainer; do
  : >"$log"
  b=$(hooked failing ".hooks.$kind += [{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"echo no such luck >&2; exit 3\"]}]")
  got=$(oci create -b "$b" failing 2>&1 </dev/null); rc=$?
  match "Hooks_Failing_${kind}" "^1 wherry-oci: create container 'failing': .*hooks.$kind\[1\] '/bin/sh': it ended with 3: no such luck$" "$rc $(head -1 <<<"$got")"
  expect "Hooks_Failing_${kind}_IsGone" "" "$(oci list -q)$(find /sys/fs/cgroup -type d -path '*wherry-e2e/failing*')"
  expect "Hooks_Failing_${kind}_Poststop" 1 "$(grep -c ^poststop "$log")"
done
for kind in createRuntime createContainer; do # 3 is the directory that is listed
  b=$(bundle fds ".hooks={\"$kind\":[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"ls /proc/self/fd >&2; exit 1\"],\"env\":[\"PATH=/bin\"]}]}")
  match "SEC_56_Descriptors_$kind" 'it ended with 1: 0 1 2 3$' "$( (exec 9</; oci create -b "$b" fds 2>&1 </dev/null) | head -1)"
done
b=$(bundle nothere '.hooks={"createRuntime":[{"path":"/none/such"}]}')
match Hooks_NoSuchProgram "hooks.createRuntime\[0\] '/none/such': it ended with 127 \(there is no such program\)" "$(oci create -b "$b" nothere 2>&1 </dev/null)"

# Failures: start
for kind in startContainer poststart; do
  : >"$log"
  b=$(hooked failing ".process.args=[\"sleep\",\"30\"] | .hooks.$kind = [{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"echo not today; exit 4\"]}]")
  oci create -b "$b" failing >/dev/null 2>&1 </dev/null; pid=$(oci state failing | jq .pid)
  got=$(oci start failing 2>&1); rc=$?
  match "Hooks_Failing_$kind" "^1 wherry-oci: start container 'failing': .*hooks.$kind\[0\] '/bin/sh': it ended with 4: not today$" "$rc $(head -1 <<<"$got")"
  expect "Hooks_Failing_${kind}_IsGone" "" "$(oci list -q)$(grep -sE '^State:[[:space:]]+[^Z[:space:]]' "/proc/$pid/status")$(find /sys/fs/cgroup -type d -path '*wherry-e2e/failing*')"
  expect "Hooks_Failing_${kind}_Poststop" 1 "$(grep -c ^poststop "$log")"
done
# Failures: poststop only warns, and the next one runs
: >"$log"
b=$(hooked failing '.hooks.poststop = [{"path":"/bin/false"}] + .hooks.poststop')
got=$(oci run -b "$b" failing 2>&1 </dev/null); rc=$?
match Hooks_FailingPoststopIsAWarning "^0 .*hooks.poststop\[0\] '/bin/false': it ended with 1" "$rc $got"
expect Hooks_NextPoststopRuns 1 "$(grep -c ^poststop "$log")"

# Time: the whole group is killed; one that leaves a process behind is not waited for
for kind in createRuntime createContainer; do
  b=$(bundle slow ".hooks={\"$kind\":[{\"path\":\"/bin/sh\",\"args\":[\"sh\",\"-c\",\"sleep 4321 & sleep 4321\"],\"env\":[\"PATH=/bin\"],\"timeout\":1}]}")
  start=$SECONDS; got=$(oci create -b "$b" slow 2>&1 </dev/null)
  match "SEC_56_Timeout_$kind" "hooks.$kind\[0\] '/bin/sh': it did not end within 1 s" "$got"
  if ((SECONDS - start < 8)); then PASS "SEC_56_TimeoutHolds_$kind"; else FAIL "SEC_56_TimeoutHolds_$kind" "$((SECONDS - start)) s"; fi
  expect "SEC_56_GroupKilled_$kind" "" "$(pgrep -f 'sleep 4321')"
done
b=$(bundle behind '.hooks={"createRuntime":[{"path":"/bin/sh","args":["sh","-c","sleep 7 & exit 0"],"env":["PATH=/bin"]}]}')
start=$SECONDS; oci run -b "$b" behind >/dev/null 2>&1 </dev/null; rc=$?
if ((rc == 0 && SECONDS - start < 5)); then PASS SEC_56_NotWaitedFor; else FAIL SEC_56_NotWaitedFor "rc=$rc after $((SECONDS - start)) s"; fi
# A state that is not read, and a lot of output
b=$(bundle loud '.annotations={"big":("x"*200000)} | .hooks={"createRuntime":[{"path":"/bin/sh","args":["sh","-c","head -c 1000000 /dev/zero"],"env":["PATH=/bin:/usr/bin"]}],"startContainer":[{"path":"/bin/true"}]}')
oci run -b "$b" loud >/dev/null 2>&1 </dev/null; expect Hooks_LoudAndDeaf 0 $?

for ((i = 0; i < 80; i++)); do [[ -z $(pgrep -f 'sleep 7$') ]] && break; read -rt 0.1 <> <(:); done
for id in $(oci list -q); do oci delete -f "$id"; done
find /sys/fs/cgroup -depth -type d -path "*/$group*" -exec rmdir {} + 2>/dev/null
nothing_left NothingLeft "$before"
exit $failed
