#!/bin/bash
# REL-10: SIGKILL of `wherry run` at one system call after the other, up to the moment at which the keeper has taken
# over. Afterwards the name can be freed and used, and what stays is gone with the next start.
. "$(dirname "$0")/../e2e/lib.sh"
begin start-kill
command -v strace >/dev/null || { skip all "no strace"; exit 0; }
import_image

# Kills the command line at the N-th call of a kind; false when it makes no N-th one.
killed_at() { # CALL N
  local rc
  {
    strace -qq -o /dev/null -e trace="$1" -e inject="$1:signal=KILL:when=$2" \
      "$W" run -d --name k1 --network none "$image" sleep 100 >"$work/out" </dev/null
    rc=$?
  } 2>"$work/err"  # where bash says that it was killed, too
  ((rc == 137))
}

points=0 stuck=""
for call in mkdirat renameat2 fsync write openat clone3 bind listen ftruncate sendfile; do
  most=12; [[ $call == openat ]] && most=90
  step=1; [[ $call == openat ]] && step=3
  for ((n = 1; n <= most; n += step)); do
    killed_at "$call" "$n" || { "$W" rm -f k1 >/dev/null 2>&1; break; }
    points=$((points + 1))
    "$W" rm -f k1 >/dev/null 2>"$work/rm"; rc=$?
    if ((rc != 0)) && ! grep -q "there is no pod" "$work/rm"; then stuck+=" $call:$n(rm: $(head -c 120 "$work/rm"))"; fi
    "$W" run -d --name k1 --network none "$image" true >/dev/null 2>"$work/again" || stuck+=" $call:$n(run: $(head -c 120 "$work/again"))"
    "$W" rm -f k1 >/dev/null 2>&1
  done
done
((points > 40)) && pass points || fail points "only $points calls were met"
check REL_10_the_name_is_free_again "" "$stuck"

# What is a minute old and nobody's goes with the next start.
find "$WHERRY_STATE/pods" -mindepth 1 -maxdepth 1 -exec touch -d '2 minutes ago' {} + 2>/dev/null
"$W" run --rm --network none "$image" true
check REL_10_no_directory_stays "" "$(ls -A "$WHERRY_STATE/pods" "$WHERRY_ROOT/pods" | grep -v : | grep . | tr '\n' ' ')"
check REL_10_no_name_stays "" "$(find "$WHERRY_ROOT" -path '*ledger*' -type f ! -name '*lock*' | tr '\n' ' ')"
check REL_10_leaks_none "leaks: none" "$("$W" leaks 2>&1 | tail -n 1)"

# A pod whose records are damaged is shown, told, and can be removed while it runs.
"$W" run -d --name damaged --network none "$image" sleep 100 >/dev/null
id=$(basename "$(ls -d "$WHERRY_ROOT"/pods/* | head -n 1)")
"$W" run -d --name second --network none "$image" sleep 100 >/dev/null
echo x >"$WHERRY_STATE/pods/$id/status"; echo x >"$WHERRY_ROOT/pods/$id/pod.json"; rm -f "$WHERRY_ROOT/pods/$id/status"
check_has REL_23_damaged_is_shown damaged "$("$W" ps -a 2>&1)"
check_status REL_23_damaged_is_removed 0 "$W" rm -f damaged
check_has REL_23_the_other_runs second "$("$W" ps 2>&1)"
"$W" rm -f second >/dev/null 2>&1
finish
