#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A client that joined a domain by its pipe directory alone raises SM faults beside a tenant. Whom does the agent
# name? For a machine with a GPU, root and MPS; some ten seconds a run.
#
#   tests/hardware/foreign-clients.sh BIN RESULT.json
#
# BIN: the folder with the programs. RUNS (10). FIREBREAK_GPU=soft: without a GPU. Writes what was claimed and
# whether it was observed, and a row for each run; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2 runs=${RUNS:-10}
scratch=$(mktemp -d /tmp/fbx.XXXX)
export FIREBREAK_GPU=${FIREBREAK_GPU:-real} FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
softly=()
if [ "$FIREBREAK_GPU" = soft ]; then
  softly=(FIREBREAK_SOFTGPU_DIR="$scratch/d/softgpu")
fi
. "$(dirname "$(realpath "$0")")/claims.sh"
rows=() kinds=(misaligned-load trap misaligned-store illegal-instruction shared-out-of-bounds)

of_status() { # PYTHON EXPRESSION over s
  timeout 5 "$bin/firebreak" status --json 2> /dev/null |
    python3 -c "import json,sys; s=json.load(sys.stdin); print($1)" 2> /dev/null
}
is() { [ "$(of_status "$1")" = True ]; }
new_log() { tail -n +"$((seen + 1))" "$result.agent.log"; }
sm_incidents() { new_log | grep "incident " | grep "SM"; }
is_closed() { sm_incidents | grep -q closed; }
is_listed() { is "$1 in [c['pid'] for d in s['domains'] for c in d['foreign']]"; }

play() { # NAME KIND: one tenant, one foreign client beside it, one fault of the latter
  local name=$1 kind=$2 tenant domain stranger pid named
  claim "$name: both MPS domains serve" is "all(d['state'] == 'serving' for d in s['domains'])"
  seen=$(wc -l < "$result.agent.log")
  # Read and write: an input that stays open until the fault ends its reader.
  timeout 50 "$bin/firebreak" run --name "$name" -- "$bin/firebreak-lab" victim --pace-ms 5 \
    <> "$scratch/nothing" > "$scratch/tenant.out" 2>&1 &
  tenant=$!
  claim "$name: the tenant works" grep -q "^ready" "$scratch/tenant.out"
  pid=$(of_status "[t['active']['pid'] for t in s['tenants'] if t['name'] == '$name'][0]")
  domain=$(of_status "[t['active']['domain'] for t in s['tenants'] if t['name'] == '$name'][0]")
  mkfifo "$scratch/go.$name"
  timeout 50 env "${softly[@]}" CUDA_MPS_PIPE_DIRECTORY="$scratch/d/$domain/pipe" \
    "$bin/firebreak-lab" inject --wait "$kind" < "$scratch/go.$name" > "$scratch/stranger.out" 2>&1 &
  stranger=$!
  exec 9> "$scratch/go.$name"
  claim "$name: the foreign client is ready" grep -q "prepared" "$scratch/stranger.out"
  named=$(pgrep -P "$stranger" | head -1)
  claim "$name: status lists it" is_listed "$named"
  echo go >&9
  exec 9>&-
  wait "$stranger" 2> /dev/null
  claim "$name: the agent has closed the incident" is_closed
  looks=1 claim "$name: the tenant is not named" is_not_named "$pid"
  rows+=("{\"kind\": \"$kind\", \"tenant\": $pid, \"foreign\": $named, \"said\": $(sm_incidents | grep closed |
    tail -1 | python3 -c 'import json,sys; print(json.dumps(sys.stdin.read().strip()))')}")
  { echo "== $name $kind"; cat "$scratch/tenant.out" "$scratch/stranger.out"; new_log; } >> "$result.log"
  kill "$tenant" 2> /dev/null
  wait "$tenant" 2> /dev/null
}
is_not_named() { ! sm_incidents | grep -q "culprit process $1\b"; }

mkfifo "$scratch/nothing"
: > "$result.log"
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$result.agent.log" 2>&1 &
agent=$!
await_agent /dev/null
for run in $(seq "$runs"); do play "beside-$run" "${kinds[$(((run - 1) % ${#kinds[@]}))]}"; done
kill "$agent"
wait "$agent" 2> /dev/null
write_result foreign-clients "RUNS=$runs" "$(rows_json)"
rm -rf "$scratch"
exit $failed
