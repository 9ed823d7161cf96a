#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A fault inside the diffusion tenant at each of its steps in turn: the picture has to be that of a run alone. For a machine with a GPU, root and MPS; some ten seconds a step.
#
#   tests/hardware/every-step.sh BIN RESULT.json      BIN: the folder with the programs; STEPS (30), SIZE (medium), PACE_MS (400: time for a standby), KIND (misaligned-store): of the tenant and its fault
#
# Writes what was claimed and whether it was observed, and after how many committed steps each standby took over; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2 steps=${STEPS:-30} size=${SIZE:-medium} kind=${KIND:-misaligned-store}
scratch=$(mktemp -d /tmp/fbe.XXXX)
export PACE_MS=${PACE_MS:-400} FIREBREAK_GPU=${FIREBREAK_GPU:-real} FIREBREAK_LOG=info FIREBREAK_ALLOW_INJECTION=1 FIREBREAK_SOCKET=$scratch/d/agent.sock
. "$(dirname "$(realpath "$0")")/claims.sh"
tenant=(--size "$size" --steps "$steps")
covered=()

of_status() { timeout 5 "$bin/firebreak" status --json | python3 -c "import json,sys; d=json.load(sys.stdin); print($1)" 2> /dev/null; }  # EXPRESSION
of_tenant() { of_status "next(t[$2] for t in d['tenants'] if t['name'] == '$1')"; }  # NAME FIELD
both_serve() { [ "$(of_status "all(x['state'] == 'serving' for x in d['domains'])")" = True ]; }
promoted_at() { sed -n "s/.* promote tenant=$1 .* step=\([0-9]*\) .*/\1/p" "$result.agent.log" | head -1; }
is_covered() { [[ " ${covered[*]} " = *" $1 "* ]]; }
# Only the first process of a pair is slow, so that there is time for its standby and for the fault.
slow_first='mkdir "$0" 2> /dev/null && pace=$PACE_MS; exec "$@" --pace-ms ${pace:-0}'
has_standby() { while kill -0 "$2" 2> /dev/null; do [[ "$(of_tenant "$1" "'standby_state'")" = @(joined|ready) ]] && return; done; return 1; }  # NAME PAIR
play() {  # NAME STEP: the fault comes at the commit of that step, or of the next that is possible
  local name=$1 pair committed
  claim "$name: both MPS domains serve" both_serve
  timeout 120 "$bin/firebreak" run --name "$name" --pair -- sh -c "$slow_first" "$scratch/$name.started" "$bin/firebreak-denoise" "${tenant[@]}" --output "$scratch/$name" > "$scratch/$name.out" 2>&1 &
  pair=$!
  looks=1 claim "$name: it has a standby" has_standby "$name" $pair
  committed=$(of_tenant "$name" "'committed_steps'")
  timeout 20 "$bin/firebreak-lab" inject "$kind" --into "$name" --at-launch $(($2 > ${committed:-0} ? $2 - ${committed:-0} : 1)) > /dev/null 2>> "$result.log"
  wait "$pair"
  looks=1 claim "$name: its picture is that of a run alone" cmp -s "$scratch/alone" "$scratch/$name"
  committed=$(promoted_at "$name")
  looks=1 claim "$name: its standby took over" [ -n "$committed" ]
  covered+=("$committed")
}

: > "$result.log"
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$result.agent.log" 2>&1 &
agent=$!
await_agent /dev/null
timeout 120 "$bin/firebreak" run --name alone -- "$bin/firebreak-denoise" "${tenant[@]}" --output "$scratch/alone" >> "$result.log" 2>&1
for round in 1 2 3; do  # the status is a moment old when the fault is asked for
  for step in $(seq "$steps"); do is_covered "$step" || play "step-$step-$round" "$step"; done
done
kill "$agent"; wait "$agent" 2> /dev/null
missing=$(for step in $(seq "$steps"); do is_covered "$step" || echo "$step"; done | paste -sd,)
echo "taken over after ${covered[*]} steps; never after ${missing:-none}"
write_result every-step "STEPS=$steps SIZE=$size KIND=$kind" \
  "\"taken_over_after_steps\": [$(IFS=,; echo "${covered[*]}")], \"never_after\": [$missing]"
rm -rf "$scratch"
exit $failed
