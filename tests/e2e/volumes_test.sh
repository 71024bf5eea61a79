#!/bin/bash
# Volumes: what a container sees at a mount is what the manifest names, by inode; a sub-path stays in its volume.
. "$(dirname "$0")/lib.sh"
begin volumes
import_image

inode() { stat -L -c %d:%i "$1" 2>&1; }
# pod NAME VOLUMES MOUNTS COMMAND: the output of a pod of one container.
manifest() {
  cat <<YAML
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  volumes: [$2]
  containers:
  - {name: main, image: $image, command: [sh, -c, "$4"], volumeMounts: [$3]}
YAML
}
pod() {
  manifest "$@" >"$work/pod.yaml"
  "$W" pod run -f "$work/pod.yaml" >"$work/id" 2>"$work/err" || { cat "$work/err"; "$W" rm -f "$1" >/dev/null 2>&1; return 1; }
  "$W" wait "$1" >/dev/null; "$W" logs "$1" 2>&1; "$W" rm -f "$1" >/dev/null
}
keep() {  # one that goes on, to be looked at
  manifest "$1" "$2" "$3" 'sleep 1000' >"$work/pod.yaml"
  "$W" pod run -f "$work/pod.yaml" >"$work/id" 2>"$work/err" || cat "$work/err"
}
see() { "$W" exec "$1" stat -L -c %d:%i "$2" 2>&1 </dev/null; }
# same NAME WANTED GOT: the same inode, which is one.
same() { [[ $2 == *:* && $2 != *' '* ]] && check "$1" "$2" "$3" || fail "$1" "no inode: $2"; }

h=$work/host
mkdir -p "$h/dd/deep" "$h/other" "$work/outside"; echo content >"$h/dd/file"; echo top >"$h/top"
host="{name: h, hostPath: {path: $h}}"

keep host "$host" '{name: h, mountPath: /whole}, {name: h, mountPath: /d, subPath: dd}, {name: h, mountPath: /deep, subPath: dd/deep, readOnly: true}, {name: h, mountPath: /f, subPath: dd/file}, {name: h, mountPath: /ro, subPath: top, readOnly: true}'
check host_whole "$(inode "$h")" "$(see host /whole)"
check host_dir "$(inode "$h/dd")" "$(see host /d)"
check host_deep "$(inode "$h/dd/deep")" "$(see host /deep)"
check host_file "$(inode "$h/dd/file")" "$(see host /f)"
check host_file_ro "$(inode "$h/top")" "$(see host /ro)"
check host_write written "$("$W" exec host sh -c 'echo written >/d/new' </dev/null; cat "$h/dd/new" 2>&1)"
check host_read_only no "$("$W" exec host sh -c 'touch /deep/x 2>/dev/null && echo yes || echo no' </dev/null)"
check host_file_read_only no "$("$W" exec host sh -c '(echo x >/ro) 2>/dev/null && echo yes || echo no' </dev/null)"
check host_source "$h/dd" "$("$W" inspect --all host | jq -r '.configs.main.mounts[] | select(.destination == "/d").source')"
"$W" rm -f host >/dev/null

for memory in '{}' '{medium: Memory}'; do
  n=${#memory}
  keep "empty$n" "{name: e, emptyDir: $memory}, $host" '{name: e, mountPath: /e}, {name: e, mountPath: /a, subPath: made/a}, {name: e, mountPath: /b, subPath: b, readOnly: true}, {name: h, mountPath: /d, subPath: dd}'
  same "empty_a_$n" "$(see "empty$n" /e/made/a)" "$(see "empty$n" /a)"
  same "empty_b_$n" "$(see "empty$n" /e/b)" "$(see "empty$n" /b)"
  check "empty_beside_host_$n" "$(inode "$h/dd")" "$(see "empty$n" /d)"
  check "empty_write_$n" in "$("$W" exec "empty$n" sh -c 'echo in >/a/x; cat /e/made/a/x' </dev/null 2>&1)"
  check "empty_read_only_$n" no "$("$W" exec "empty$n" sh -c 'touch /b/x 2>/dev/null && echo yes || echo no' </dev/null)"
  "$W" rm -f "empty$n" >/dev/null
done
check no_pod_left "" "$(ls -A "$work/root/pods")"

# A second start of the container resolves it anew, with other descriptors open.
manifest again "$host" '{name: h, mountPath: /d, subPath: dd}' 'stat -c %d:%i /d; [ -e /d/once ] || { touch /d/once; exit 1; }' |
  sed 's/Never/OnFailure/' >"$work/pod.yaml"
"$W" pod run -f "$work/pod.yaml" >/dev/null 2>&1; "$W" wait again >/dev/null
check again "$(inode "$h/dd")" "$("$W" logs again 2>&1 | sort -u)"
check again_restarts 1 "$("$W" inspect again | jq '.containers[0].restarts')"
"$W" rm -f again >/dev/null

# CVE-2017-1002101, CVE-2021-25741: a link in the volume leads nowhere else
ln -s "$work/outside" "$h/absolute"; ln -s ../outside "$h/up"; ln -s /etc/passwd "$h/passwd"
ln -s dd "$h/inside"; ln -s ../../outside "$h/dd/further"; ln -s loop "$h/loop"; ln -s /proc/self/root "$h/magic"
outside_before=$(find "$work/outside" | sort)
for sub in absolute up passwd dd/further absolute/new up/new magic/etc loop; do
  got=$(pod link "$host" "{name: h, mountPath: /m, subPath: $sub}" 'echo ran'); rc=$?
  if ((rc != 0)) && [[ $got != *ran* && $got == *"volume 'h'"* ]]; then pass "link_${sub//\//_}"; else
    fail "link_${sub//\//_}" "rc=$rc $got"; fi
done
check_has link_says 'leads out of the volume' "$(pod link "$host" '{name: h, mountPath: /m, subPath: up}' true)"
check link_inside "$(inode "$h/dd")" "$(pod link "$host" '{name: h, mountPath: /m, subPath: inside}' 'stat -c %d:%i /m')"
check nothing_made_outside "$outside_before" "$(find "$work/outside" | sort)"
got=$(pod twice "$host" '{name: h, mountPath: /m, subPath: dd}, {name: h, mountPath: /m/, subPath: other}' 'echo ran')
check_has same_path 'something is mounted at' "$got"
check_has same_path_flags 'another mount has this path' "$("$W" run --rm -v "$h:/m" -v "$h/dd:/m/" $image true 2>&1)"

# What is bound and what it is bound on are of one kind.
check_has dir_on_file "is a directory, but the target is a file" "$("$W" run --rm -v "$h:/etc/passwd" $image true 2>&1)"
check_has file_on_dir "is a file, but the target is a directory" "$("$W" run --rm -v "$h/top:/etc" $image true 2>&1)"
finish
