#!/bin/bash
# The keeper, or keeper and worker together, end by SIGKILL: the pod is told as not ready, containers live on, and
# `rm -f` takes everything away. No socket or file is open to others (SEC-60, SEC-62).
. "$(dirname "$0")/../e2e/lib.sh"
begin keeper_kill
umask 022  # what a careless caller has
import_image

pid_alive() { [[ -e /proc/$1 ]] && ! grep -qE '\) [ZX] ' "/proc/$1/stat"; }
gone() { ! pid_alive "$1"; }
of() { "$W" inspect "$1" | jq -r "$2"; }
start() {  # NAME: sets $keeper, $worker, $init
  "$W" run -d --name "$1" $image sh -c 'while :; do echo tick; sleep 0.2; done' >/dev/null
  keeper=$(of "$1" .keeperPid) worker=$(of "$1" .shimPid) init=$(of "$1" .containers[0].pid)
}
# removed_whole NAME WHAT: rm -f within 10 s, and nothing is left of processes, cgroups, files
removed_whole() {
  check_status "$2_rm_force" 0 timeout 10 "$W" rm -f "$1"
  until_true 2 gone "$init"
  check "$2_init_gone" gone "$(gone "$init" && echo gone)"
  check "$2_nothing_left" '' "$(leftovers)"
  check "$2_name_free" 0 "$("$W" run --rm --name "$1" $image true >/dev/null 2>&1; echo $?)"
}

start k
kill -9 "$keeper"; until_true 5 gone "$keeper"
check keeper_container_lives alive "$(pid_alive "$init" && echo alive)"
until_true 5 sh -c "[ \"\$($W inspect k | jq -r .sandbox)\" = NOTREADY ]"
check keeper_not_ready NOTREADY "$(of k .sandbox)"
check keeper_ready_false false "$(of k .ready)"
check keeper_ps_told yes "$("$W" ps -a -o json | jq -r '.[] | if .sandbox == "NOTREADY" then "yes" else "no" end')"
check_status keeper_shim_ls 0 timeout 10 "$W" shim ls
check_status keeper_shim_inspect 0 timeout 10 "$W" shim inspect k
removed_whole k keeper

# On Linux 6.15 and later the worker still learns how the container ended; before it, nobody can know.
start x
kill -9 "$keeper"; until_true 5 gone "$keeper"; kill -9 "$init"
until_true 5 sh -c "[ \"\$($W inspect x/main | jq -r .state)\" = exited ]"
code=$(of x/main '.exitCode | tostring')
if [[ $code == 137 || $code == null ]]; then pass keeper_exit_true_or_unknown; else fail keeper_exit_true_or_unknown "$code"; fi
removed_whole x keeper_exit

start b
kill -9 "$keeper" "$worker"; until_true 5 gone "$keeper"; until_true 5 gone "$worker"
check both_container_lives alive "$(pid_alive "$init" && echo alive)"
check both_not_ready NOTREADY "$(of b .sandbox)"
check_status both_exec_refused 125 timeout 5 "$W" exec b true
check_status both_wait_ends 125 timeout 5 "$W" wait b
check_status both_rm_without_force 125 timeout 10 "$W" rm b
check_has both_rm_told "$init" "$(cat "$work/err")"
removed_whole b both

start w  # a worker that hangs stops nobody
kill -STOP "$worker"
check_status hung_ps 0 timeout 5 "$W" ps
check_status hung_inspect 0 timeout 5 "$W" inspect w
check_status hung_shim_inspect 0 timeout 5 "$W" shim inspect w
check_status hung_logs 0 timeout 5 "$W" logs w
removed_whole w hung

# ---- A worker that cannot run: an error, soon, and nothing stays
cp "$bin"/wherry "$bin"/wherry-keep "$work/"
head -c 200000 "$bin/wherry-shim" >"$work/wherry-shim"; chmod +x "$work/wherry-shim"
check_status broken_worker_told 125 timeout 10 "$work/wherry" run -d --name broken $image true
check broken_worker_nothing_left '' "$(leftovers)"

# ---- SEC-60: no abstract socket, also where a container shares the host's network namespace
start s
"$W" run -d --name hostnet --network host $image sleep 1000 >/dev/null
check SEC_60_no_abstract_socket '' "$("$W" exec hostnet cat /proc/net/unix </dev/null | awk '{print $8}' | grep -iE '^@.*(wherry|shim)')"
socket=$(echo "$WHERRY_STATE"/pods/"$(of s .id)"/shim.sock)
check SEC_60_socket_mode '600 0 socket' "$(stat -c '%a %u %F' "$socket")"
check SEC_60_directory_mode '700 0' "$(stat -c '%a %u' "$(dirname "$socket")")"
# Its path is too long for sun_path, so by the directory's name; unless that cannot be entered.
connect='import os,socket,sys
try: os.chdir(os.path.dirname(sys.argv[1])); socket.socket(socket.AF_UNIX).connect("shim.sock"); print("connected")
except OSError as e: print(e.strerror)'
check SEC_60_root_connects connected "$(python3 -c "$connect" "$socket")"
chmod 755 "$work"
check SEC_60_user_cannot_connect 'Permission denied' "$(setpriv --reuid 1000 --regid 1000 --clear-groups /usr/bin/python3 -c "$connect" "$socket")"
# One that gets as far as the socket, by CAP_DAC_OVERRIDE, is refused by its uid (SO_PEERCRED).
check SEC_60_user_refused refused "$(python3 - "$socket" <<'PY'
import ctypes, os, socket, sys
libc = ctypes.CDLL(None)
os.chdir(os.path.dirname(sys.argv[1]))
libc.prctl(8, 1, 0, 0, 0)  # PR_SET_KEEPCAPS
os.setresuid(1000, 1000, 1000)
libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(2, 2, 0, 0, 0, 0))  # CAP_DAC_OVERRIDE
try:
    client = socket.socket(socket.AF_UNIX)
    client.connect('shim.sock')
    client.settimeout(5)
    client.sendall(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    print('answered' if b'"result"' in client.recv(4096) else 'refused')
except ConnectionError:
    print('refused')
PY
)"

# ---- SEC-62: nothing of state and store is open to others, whatever the umask of the caller
for dir in "$WHERRY_STATE" "$WHERRY_STATE/pods" "$WHERRY_ROOT" "$WHERRY_ROOT/pods" "$WHERRY_ROOT"/pods/*; do
  check "SEC_62_mode_${dir#"$work"/}" '700 0:0' "$(stat -c '%a %u:%g' "$dir")"
done
for dir in "$WHERRY_STATE" "$WHERRY_ROOT"; do
  check "SEC_62_user_cannot_list_${dir##*/}" '' "$(setpriv --reuid 1000 --regid 1000 --clear-groups ls "$dir" 2>/dev/null)"
  check "SEC_62_user_cannot_pass_${dir##*/}" no "$(setpriv --reuid 1000 --regid 1000 --clear-groups test -e "$dir/pods" && echo yes || echo no)"
done
check SEC_62_files_of_state_private '' "$(find "$WHERRY_STATE" \( -type f -o -type s -o -type p \) -perm /077)"
check SEC_62_logs_and_records_private '' "$(find "$WHERRY_ROOT" -type f \( -name '*.log' -o -name '*.json*' -o -name '*.lock' \) -not -path '*/upper/*' -not -path '*/layers/*' -perm /077)"
check SEC_62_umask_of_shims '0077 0077' "$(for pid in $keeper $worker; do awk '/^Umask/{print $2}' "/proc/$pid/status"; done | xargs)"
check SEC_62_umask_inside 0022 "$("$W" exec s sh -c umask </dev/null)"
chmod 755 "$WHERRY_STATE"
for dir in "$WHERRY_STATE" "$WHERRY_ROOT"; do
  chmod 711 "$dir"
  check_status "SEC_62_open_${dir##*/}_refused" 125 timeout 5 "$W" run --rm $image true
  check_has "SEC_62_open_${dir##*/}_told" "chmod 0700 $dir" "$(cat "$work/err")"
  chmod 700 "$dir"
done
"$W" rm -f s hostnet >/dev/null
finish
