#!/bin/bash
# The command line: exit codes, flags as seen from inside, listings, terminals, manifests, error texts.
. "$(dirname "$0")/lib.sh"
begin cli
import_image

r() { timeout 30 "$W" run --rm "$@" 2>&1 </dev/null; }
one() { jq -r "$1" <<<"$2"; }

# ---- exit codes
check_status exit_7 7 "$W" run --rm $image sh -c 'exit 7'
check_status exit_0 0 "$W" run --rm $image true
"$W" run -d --name victim $image sleep 1000 >/dev/null
"$W" kill victim >/dev/null
check killed_137 137 "$("$W" wait victim)"
check killed_signal 9 "$("$W" inspect victim/main | jq .signal)"
"$W" rm victim >/dev/null
check_status killed_by_itself_137 137 "$W" run --rm --name suicide $image sh -c 'sh -c "kill -9 \$\$"; exit $?'
check_status by_signal_143 143 "$W" run --rm $image sh -c 'trap - TERM; sh -c "kill -TERM \$\$"; exit $?'
check_status not_found_127 127 "$W" run --rm $image /nonesuch
check_has not_found_text "'/nonesuch'" "$(cat "$work/err")"
check_status not_in_path_127 127 "$W" run --rm $image nonesuch
check_status not_executable_126 126 "$W" run --rm $image /etc/passwd
check_status no_image_125 125 "$W" run --rm nonesuch true
check_status unknown_flag_125 125 "$W" run --nonesuch $image true
check_has unknown_flag_text nonesuch "$(cat "$work/err")"
check_status no_verb_125 125 "$W"
check_status wrong_verb_125 125 "$W" frobnicate
check nothing_of_failures '' "$("$W" ps -aq)"

# ---- output and input
check stdout hello "$(r $image echo hello)"
check stderr_apart e "$("$W" run --rm $image sh -c 'echo o; echo e >&2' 2>&1 >/dev/null </dev/null)"
check stdin hello "$(echo hello | timeout 30 "$W" run --rm -i $image cat)"
check no_stdin '' "$(echo hello | timeout 30 "$W" run --rm $image cat)"
head -c 3000000 /dev/urandom >"$work/blob"
check stdin_whole "$(sha256sum <"$work/blob")" "$(timeout 60 "$W" run --rm -i $image sha256sum <"$work/blob")"

# ---- flags, as seen from inside
check env 'b c' "$(r -e A='b c' $image sh -c 'echo "$A"')"
check env_taken mine "$(TAKEN=mine r -e TAKEN $image sh -c 'echo $TAKEN')"
check flags_end_at_image '--rm -d' "$(r $image echo --rm -d)"
check user_number 1000:1000 "$(r -u 1000 $image sh -c 'echo $(id -u):$(id -g)')"
check user_name 1000:50 "$(r -u app:staff $image sh -c 'echo $(id -u):$(id -g)')"
check workdir /tmp "$(r -w /tmp $image pwd)"
check hostname ship "$(r --hostname ship $image hostname)"
check hostname_is_name web1 "$(r --name web1 $image hostname)"
check read_only 'no' "$(r --read-only $image sh -c 'touch /x 2>/dev/null && echo yes || echo no')"
check writable 'yes' "$(r $image sh -c 'touch /x 2>/dev/null && echo yes || echo no')"
check no_new_privileges 1 "$(r $image sh -c 'grep NoNewPrivs /proc/self/status | tr -dc 0-9')"
check may_gain_privileges 0 "$(r --security-opt no-new-privileges=false $image sh -c 'grep NoNewPrivs /proc/self/status | tr -dc 0-9')"
check seccomp_filter 2 "$(r $image sh -c 'grep ^Seccomp: /proc/self/status | tr -dc 0-9')"
check seccomp_unconfined 0 "$(r --security-opt seccomp=unconfined $image sh -c 'grep ^Seccomp: /proc/self/status | tr -dc 0-9')"
# A profile of the user's own: what the runtime-spec calls linux.seccomp.
echo '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO","errnoRet":95}]}' >"$work/profile.json"
check_has seccomp_file 'Operation not supported' "$(r --security-opt "seccomp=$work/profile.json" $image mkdir /tmp/x)"
check seccomp_file_allows yes "$(cd "$work" && r --security-opt seccomp=profile.json $image sh -c 'touch /tmp/x && echo yes')"
check seccomp_file_in_config 95 "$("$W" run -d --name prof --security-opt "seccomp=$work/profile.json" $image true >/dev/null; "$W" inspect --all prof | jq '.configs.main.linux.seccomp.syscalls[0].errnoRet'; "$W" rm -f prof >/dev/null)"
echo '{"defaultAction":"SCMP_ACT_ERRNO","archMap":[],"syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW","includes":{"caps":["CAP_SYS_ADMIN"]}}]}' >"$work/docker.json"
caps() { r "$@" $image sh -c 'grep CapBnd /proc/self/status | cut -f2'; }
check caps_default 00000000a80425fb "$(caps)"
check caps_drop_all 0000000000000000 "$(caps --cap-drop ALL)"
check caps_drop_add 0000000000000400 "$(caps --cap-drop ALL --cap-add NET_BIND_SERVICE)"
check caps_privileged "$(grep CapBnd /proc/self/status | cut -f2)" "$(caps --privileged)"
check signals_default 0000000000000000 "$(r $image grep SigIgn /proc/self/status | cut -f2)"
check only_stdio '0 1 2 3' "$(r $image ls /proc/self/fd | tr '\n' ' ' | sed 's/ $//')"  # 3 is the directory itself

mkdir -p "$work/share"; echo shared >"$work/share/file"
check volume shared "$(r -v "$work/share:/data" $image cat /data/file)"
r -v "$work/share:/data" $image sh -c 'echo written >/data/new' >/dev/null
check volume_written written "$(cat "$work/share/new" 2>&1)"
check volume_ro no "$(r -v "$work/share:/data:ro" $image sh -c 'touch /data/x 2>/dev/null && echo yes || echo no')"
check volume_relative shared "$(cd "$work" && r -v ./share:/data $image cat /data/file)"

# By what the kernel does, since not every driver shows its files inside.
check_status memory_limit 137 "$W" run --name eater --memory 32m $image sh -c 'x=$(head -c 200000000 /dev/zero | tr "\0" x); echo ${#x}; exit $?'
check oom_in_inspect true "$("$W" inspect eater | jq .oomKilled)"
"$W" rm eater >/dev/null
check_has pids_limit "can't fork" "$(r --pids-limit 6 $image sh -c 'for i in 1 2 3 4 5 6 7 8; do sleep 2 & done')"
quota=$("$W" run -d --cpus 0.25 --name slow $image sh -c 'while :; do :; done')
quota_file() { cat /sys/fs/cgroup/cpu"$WHERRY_CGROUP_PARENT/$quota"/main/cpu.cfs_quota_us 2>/dev/null ||
  cut -d' ' -f1 "/sys/fs/cgroup$WHERRY_CGROUP_PARENT/$quota/main/cpu.max"; }
check cpus 25000 "$(quota_file)"
"$W" rm -f slow >/dev/null

# The device filter sees the host's numbers; without the flag it refuses what a mknod made.
check device_given yes "$(r --device /dev/kmsg --cap-add SYSLOG $image sh -c '[ -c /dev/kmsg ] && head -c 1 /dev/kmsg >/dev/null && echo yes')"
check device_renamed yes "$(r --device /dev/kmsg:/dev/other:r $image sh -c '[ -c /dev/other ] && echo yes')"
check device_refused no "$(r $image sh -c 'mknod /tmp/kmsg c 1 11 && (head -c 1 /tmp/kmsg >/dev/null 2>&1 && echo yes || echo no)')"
check network_none lo "$(r --network none $image sh -c 'ls /sys/class/net')"
check network_pod_up up "$(r $image sh -c 'ip link show lo | grep -q ",UP" && echo up')"
check network_host "$(readlink /proc/self/ns/net)" "$(r --network host $image readlink /proc/self/ns/net)"
check entrypoint 'in sh' "$(r --entrypoint /bin/sh $image -c 'echo in sh')"
check entrypoint_json 'a b' "$(r --entrypoint '["echo","a"]' $image b)"
check rootfs "wherry" "$(r --rootfs "$work/image/rootfs" sh -c '. /etc/os-release; echo ${NAME%% *}')"

# ---- -d, ps, inspect, logs, exec, wait, stop, rm
id=$("$W" run -d --name web -l app=web -l tier=front --stop-timeout 3 $image sh -c 'trap "exit 5" TERM; echo one; echo two >&2; echo three; sleep 1000 & wait')
check id_printed 64 "${#id}"
check ps_quiet "${id:0:12}" "$("$W" ps -q)"
check ps_json "$id web Running" "$("$W" ps -o json | jq -r '.[] | "\(.id) \(.name) \(.phase)"')"
check_has ps_table 'web' "$("$W" ps)"
check ps_label "${id:0:12}" "$("$W" ps -q -l app=web)"
check ps_other_label '' "$("$W" ps -q --filter label=app=db)"
check ps_name "${id:0:12}" "$("$W" ps -q --filter name=we)"
check ps_other_namespace '' "$("$W" ps -q -n elsewhere)"
check inspect_prefix "$id" "$("$W" inspect "${id:0:8}" | jq -r .id)"
check inspect_ready true "$("$W" inspect web | jq .ready)"
check inspect_shim wherry-shim "$(tr '\0' ' ' <"/proc/$("$W" inspect web | jq .shimPid)/cmdline" | grep -o wherry-shim | head -n 1)"
check inspect_container "running" "$("$W" inspect web/main | jq -r .state)"
check inspect_two "2" "$("$W" inspect web web/main | jq length)"
check_status name_taken 125 "$W" run -d --name web $image true
check_has name_taken_text "'web'" "$(cat "$work/err")"
until_true 5 sh -c "$W logs web 2>/dev/null | grep -q three"
check logs_stdout $'one\nthree' "$("$W" logs web 2>/dev/null)"
check logs_stderr two "$("$W" logs web 2>&1 >/dev/null)"
check logs_tail 2 "$("$W" logs --tail 2 web 2>&1 | wc -l)"  # the order of the two streams is the reader's
check logs_tail_0 '' "$("$W" logs --tail 0 web 2>&1)"
check logs_time 1 "$("$W" logs -t web 2>&1 | grep -cE '^20[0-9-]+T[0-9:.]+Z three$')"
check exec_output in "$("$W" exec web echo in </dev/null)"
check_status exec_status 9 "$W" exec web sh -c 'exit 9'
check_status exec_not_found 127 "$W" exec web /nonesuch
check_status exec_not_executable 126 "$W" exec web /etc/passwd
check exec_stdin hello "$(echo hello | "$W" exec -i web/main cat)"
check exec_user_dir_env '1000 /tmp x' "$("$W" exec -u 1000 -w /tmp -e V=x web sh -c 'echo $(id -u) $(pwd) $V' </dev/null)"
check exec_dashes in "$("$W" exec web -- echo in </dev/null)"
check run_dashes in "$(r $image -- echo in)"
check inspect_short '' "$("$W" inspect web | jq -r '.configs // empty')"
check inspect_container_short '' "$("$W" inspect web/main | jq -r '.config // empty')"
check inspect_all main "$("$W" inspect --all web | jq -r '.configs | keys[0]')"
check inspect_all_container string "$("$W" inspect -a web/main | jq -r '.config.ociVersion | type')"
check_status exec_no_command 125 "$W" exec web
check_status exec_no_pod 125 "$W" exec nonesuch true
check_has shim_ls web "$("$W" shim ls)"
check shim_ls_json web "$("$W" shim ls -o json | jq -r '.[0].name')"
check shim_call "$id" "$("$W" shim call web ping | jq -r .pod)"
check_status shim_call_unknown 125 "$W" shim call web frobnicate
check shim_inspect "$id" "$("$W" shim inspect web | jq -r .pod)"
check_status rm_running 125 "$W" rm web
"$W" wait web >"$work/waited" & waiter=$!
check_status stop 0 "$W" stop web
wait $waiter
check wait_prints 5 "$(cat "$work/waited")"
check stopped_code 5 "$("$W" inspect web | jq .exitCode)"
check ps_hides_ended '' "$("$W" ps -q)"
check ps_all "${id:0:12}" "$("$W" ps -aq)"
check wait_ended 5 "$("$W" wait web)"
check logs_of_ended $'one\nthree' "$("$W" logs web 2>/dev/null)"
check_status exec_in_ended 125 "$W" exec web true
check_status rm 0 "$W" rm web
check_status rm_twice 125 "$W" rm web
check_status rm_force_missing 0 "$W" rm -f web
"$W" run -d --name stubborn --stop-timeout 1 $image sh -c 'trap "" TERM; while :; do sleep 1; done' >/dev/null
check_status stop_kills 0 "$W" stop stubborn
check stubborn_137 137 "$("$W" inspect stubborn | jq .exitCode)"
"$W" rm stubborn >/dev/null
"$W" run -d --name hup $image sh -c 'trap "echo hup; exit 3" HUP; echo up; while :; do sleep 0.1; done' >/dev/null
until_true 5 sh -c "$W logs hup | grep -q up"
check_status kill_signal 0 "$W" kill -s HUP hup
check kill_waited 3 "$("$W" wait hup)"
check logs_follow_ends $'up\nhup' "$(timeout 10 "$W" logs -f hup)"
check_status kill_ended 125 "$W" kill hup
"$W" run -d -n other --name hup $image sleep 1000 >/dev/null
check namespaces 2 "$("$W" ps -aq --filter name=hup | wc -l)"
check_status rm_in_namespace 0 "$W" rm -f -n other hup
check_has events pod.removed "$("$W" events)"
check events_since 1 "$("$W" events -o json --since $(($("$W" events -o json | tail -n 1 | jq .seq) - 1)) | wc -l)"
check events_of_pod hup "$("$W" events -o json hup | jq -r .name | sort -u)"
check events_of_namespace other "$("$W" events -o json -n other hup | jq -r .namespace | sort -u)"
check events_of_id web "$("$W" events -o json "${id:0:12}" | jq -r .name | sort -u)"
check events_of_nobody '' "$("$W" events nonesuch)"
"$W" run --name fails $image /nonesuch >/dev/null 2>&1
check event_error 0 "$("$W" events fails | grep -c 'error={')"
check_has event_error_text "error='" "$("$W" events fails)"
"$W" rm hup >/dev/null

"$W" run -d --rm --name brief $image sleep 0.2 >/dev/null
gone() { [[ -z $("$W" ps -aq --filter name=brief) ]]; }
until_true 5 gone && pass detached_rm || fail detached_rm 'it is still there'
"$W" run --rm --name signalled $image sh -c 'trap "exit 4" TERM; echo up; while :; do sleep 0.1; done' >"$work/up" 2>&1 </dev/null & runner=$!
until_true 5 grep -q up "$work/up"
builtin kill -TERM $runner; wait $runner
check run_passes_signals 4 $?

# ---- terminals
cat >"$work/tty.exp" <<'TCL'
set timeout 20
set stty_init "rows 33 columns 77"
spawn -noecho {*}$argv
expect -re {[#$] } {} timeout { puts "NO PROMPT"; exit 1 }
send "stty size; tty\r"
expect "33 77" { puts "\nSIZE OK" } timeout { puts "\nSIZE WRONG" }
expect -re {/dev/\S+} {} timeout { puts "\nNO TTY" }
stty rows 44 columns 99 < $spawn_out(slave,name)
send "sleep 0.2; stty size\r"
expect "44 99" { puts "\nRESIZE OK" } timeout { puts "\nRESIZE WRONG" }
send "exit 6\r"
expect eof
puts "STATUS [lindex [wait] 3]"
TCL
out=$(expect "$work/tty.exp" "$W" run --rm -it -e 'PS1=# ' $image sh 2>&1)
check_has tty_size 'SIZE OK' "$out"
check_has tty_resize 'RESIZE OK' "$out"
check_has tty_status 'STATUS 6' "$out"
"$W" run -d --name term $image sleep 1000 >/dev/null
out=$(expect "$work/tty.exp" "$W" exec -it -e 'PS1=# ' term sh 2>&1)
check_has exec_tty_size 'SIZE OK' "$out"
check_has exec_tty_resize 'RESIZE OK' "$out"
check_has exec_tty_status 'STATUS 6' "$out"
"$W" rm -f term >/dev/null
check_has script_tty /dev/pts/0 "$(script -qec "$W run --rm -it $image tty" /dev/null </dev/null)"

# ---- manifests
check_status pod_check 0 "$W" pod check -f "$top/examples/hello-pod.yaml"
check pod_check_ok ok "$(tail -n 1 "$work/out")"
check pod_check_plan 'pod hello/namespace: default/container web/container client' \
  "$("$W" pod check -f "$top/examples/hello-pod.yaml" | grep -E '^(pod|container)|namespace' | sed 's/^ *//' | paste -sd/)"
check_has pod_check_image "$image (in the store)" "$("$W" pod check -f "$top/examples/hello-pod.yaml")"
check pod_check_json 'hello default prepare' "$("$W" pod check -o json -f "$top/examples/hello-pod.yaml" | jq -r '"\(.name) \(.namespace) \(.containers[0].name)"')"
check pod_check_mount /site "$("$W" pod check -o json -f "$top/examples/hello-pod.yaml" | jq -r '.containers[] | select(.name == "web").mounts[0].path')"
check pod_check_makes_nothing no "$("$W" --root "$work/none" --state "$work/none" pod check -f "$top/examples/hello-pod.yaml" >/dev/null; [[ -e $work/none ]] && echo yes || echo no)"
check_status pod_check_missing 125 "$W" pod check -f "$work/nonesuch.yaml"
check_status pod_run 0 "$W" pod run -f "$top/examples/hello-pod.yaml"
until_true 10 sh -c "$W logs hello/client | grep -q got"
check_has pod_talks 'prepared by the init container' "$("$W" logs hello/client 2>&1)"
check_has pod_shares 20 "$("$W" exec hello/web cat /site/seen 2>&1 </dev/null)"
check pod_read_only no "$("$W" exec hello/web sh -c 'touch /site/x 2>/dev/null && echo yes || echo no' </dev/null)"
check pod_containers 'prepare web client' "$("$W" inspect hello | jq -r '[.containers[].name] | join(" ")')"
check_status pod_stop 0 "$W" stop hello
check_status pod_rm 0 "$W" rm hello
check pod_stdin ok "$("$W" pod check -f - <"$top/examples/hello-pod.yaml" | tail -n 1)"
printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec:\n  hostPID: maybe\n  containers: []\n' >"$work/bad.yaml"
check_status pod_check_bad 1 "$W" pod check -f "$work/bad.yaml"
check_has pod_check_where 'bad.yaml:5:' "$(cat "$work/err")"
check_status pod_run_missing 125 "$W" pod run -f "$work/nonesuch.yaml"

# ---- images
check image_ls "localhost/hello:latest" "$("$W" image ls -o json | jq -r '.[0].names[0]')"
check_has image_ls_table localhost/hello "$("$W" image ls)"
digest=$("$W" image import "$work/image/rootfs" second 2>"$work/err")
check_has image_digest sha256: "$digest"
check_has image_progress importing "$(cat "$work/err")"
check by_digest second "$(r "$digest" echo second)"
"$W" run -d --name user second sleep 1000 >/dev/null
check_status image_rm_used 125 "$W" image rm second
check_has image_rm_user "'user'" "$(cat "$work/err")"
"$W" rm -f user >/dev/null
check_status image_rm 0 "$W" image rm second
check image_rm_prints localhost/second:latest "$(cat "$work/out")"
"$W" image import "$work/image/rootfs" third >/dev/null 2>&1; "$W" image import "$work/image/rootfs" fourth >/dev/null 2>&1
check image_rm_digest $'localhost/fourth:latest\nlocalhost/third:latest' "$("$W" image rm "$("$W" image ls -o json | jq -r '.[] | select(.names[] | contains("third")).digest')" | sort)"
mkdir -p "$work/any/oci" "$work/any/tmp" "$work/any/home"; echo '{}' >"$work/any/oci/oci-layout"
check_status import_any_directory 125 "$W" image import "$work/any"
check_has import_any_directory_text 'neither an OCI layout' "$(cat "$work/err")"
check_has import_did_you_mean "did you mean '$work/any/oci'?" "$(cat "$work/err")"
check_status image_rm_twice 125 "$W" image rm second

# ---- what is refused is refused by name
refused() {  # NAME PART FLAGS...
  local name=$1 part=$2; shift 2
  check_status "refuse_$name" 125 "$W" run --rm "$@" $image true
  check_has "refuse_${name}_text" "$part" "$(cat "$work/err")"
}
refused volume_label SELinux -v /tmp:/tmp:z
refused volume_name ./data -v data:/data
refused volume_missing nonesuch -v /nonesuch:/x
refused network bridge --network bridge
refused security_opt apparmor --security-opt apparmor=x
refused seccomp_missing nonesuch --security-opt seccomp=/nonesuch
refused seccomp_docker includes --security-opt "seccomp=$work/docker.json"
refused seccomp_action "SCMP_ACT_FLY" --security-opt "seccomp=$(echo '{"defaultAction":"SCMP_ACT_FLY"}' >"$work/fly.json"; echo "$work/fly.json")"
refused cpus_negative "--cpus: '-1' must be positive" --cpus -1
refused entrypoint "--entrypoint at line 1, column 6: unexpected end of input" --entrypoint '["sh"'
refused twice 'it is given more than once' --name a --name b
refused capability_prefix "'main': create: capabilities.add: 'FLY'" --cap-add FLY
refused restart 'on-failure:3' --restart on-failure:3
refused rm_restart --restart --restart always
refused memory lots --memory lots
refused memory_little '1k' --memory 1k
refused cpus '0' --cpus 0
refused capability NONESUCH --cap-add NONESUCH
refused device '/dev/nonesuch' --device /dev/nonesuch
refused no_device '/etc' --device /etc
refused user nonesuch -u nonesuch
refused name "'a/b'" --name a/b
check_has no_raw_json 'PARAMS at line 1, column 2: ' "$("$W" shim call web ping '{x' 2>&1)"
check raw_json_nowhere 0 "$("$W" shim call web ping '{"a": 1' 2>&1 | grep -c exception)"
check_status filter_status 125 "$W" ps --filter status=bogus
check_has filter_status_text 'pending, running, succeeded' "$(cat "$work/err")"
check_has stop_nothing 'stop: POD is required' "$("$W" stop 2>&1)"
check_has did_you_mean "did you mean 'wherry image ls'?" "$("$W" images 2>&1)"
check_has pod_alone "'pod' needs a verb: run, check" "$("$W" pod 2>&1)"
for group in pod image shim; do
  check_status "help_$group" 0 "$W" $group --help
  check_has "help_${group}_verbs" "wherry $group " "$(cat "$work/out")"
done
# Whoever is not root is told so, whatever the verb; help and checking are for everybody.
cp "$bin/wherry" "$work/wherry-for-all"; chmod 755 "$work" "$work/wherry-for-all"
user() { setpriv --reuid 1000 --regid 1000 --clear-groups "$work/wherry-for-all" "$@"; }
for verb in ps 'run x' 'image ls' 'rm x' info 'pod run -f x' leaks 'shim ls'; do
  check_status "not_root_${verb// /_}" 125 user $verb
  check_has "not_root_${verb// /_}_text" 'this needs root' "$(cat "$work/err")"
done
check_status not_root_help 0 user --help
check_has help_says_root 'needs root' "$(cat "$work/out")"
check_status not_root_version 0 user version
cp "$top/examples/hello-pod.yaml" "$work/for-all.yaml"; chmod 644 "$work/for-all.yaml"
check_status not_root_check 0 user pod check -f "$work/for-all.yaml"
oci_says=$("$bin/wherry-oci" --root "$work/oci" start 2>&1)
check oci_one_line 1 "$(wc -l <<<"$oci_says")"
check_has oci_hint 'usage: wherry-oci start' "$oci_says"
check one_line_and_hint 2 "$("$W" frobnicate 2>&1 | wc -l)"

# ---- help, version, info
for verb in run 'pod run' 'pod check' ps inspect logs exec attach wait stop kill rm events 'image import' 'image ls' \
  'image rm' 'shim ls' 'shim inspect' 'shim call' leaks info version; do
  check_has "help_${verb// /_}" Examples: "$("$W" $verb --help 2>&1)"
done
check_has version "wherry " "$("$W" version)"
check version_json wherry "$("$W" version -o json | jq -r 'if .version then "wherry" else "" end')"
check info_paths "$work/root" "$("$W" info -o json | jq -r .paths.root)"
check info_lacking '' "$("$W" info -o json | jq -r '.lackingCapabilities[]' | grep -v '^CAP_[A-Z_]*$')"
check_has info_table 'kernel: ' "$("$W" info)"
check root_flag "$work/elsewhere" "$("$W" --root "$work/elsewhere" info -o json | jq -r .paths.root)"
check_status log_level 125 "$W" --log-level loud ps
check_status stdout_full 125 bash -c "$W version >/dev/full"
check_has stdout_full_text 'No space left' "$(cat "$work/err")"

# ---- text of a container's choice does not steer the terminal
"$W" run -d --name evil -l "x=$(printf '\033[31m\302\233')" $image true >/dev/null 2>&1
check no_escapes '' "$("$W" ps -a | tr -d '\n' | tr -d '[:print:]')"
check no_escapes_json '' "$("$W" inspect evil | tr -d '\n' | tr -d '[:print:]')"
finish
