#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An active with a child of fork() is killed in mid-kernel, again and again: what of it lands after its standby's promotion? For a machine with a GPU, root and MPS; some five seconds a run.
#
#   tests/hardware/forked-children.sh BIN RESULT.json      BIN: the folder with the programs; RUNS (20), WATCH_MS (2000: how long the standby looks), SETTLE_S (0: between the domains' word that they serve and the next start). FIREBREAK_GPU=soft: without a GPU
#
# Writes what was claimed and whether it was observed, and a row for each run; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2 runs=${RUNS:-20} watch_ms=${WATCH_MS:-2000} settle_s=${SETTLE_S:-0}
scratch=$(mktemp -d /tmp/fbf.XXXX)
export FIREBREAK_GPU=${FIREBREAK_GPU:-real} FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
if [ "$FIREBREAK_GPU" = soft ]; then  # where a kernel that lost its process ends by itself otherwise
  export FIREBREAK_SOFTGPU_DIR=$scratch/gpu FIREBREAK_SOFTGPU_ORPHANED_WORK_MS=endless
fi
. "$(dirname "$(realpath "$0")")/claims.sh"
rows=()

of_tenant() { timeout 5 "$bin/firebreak" status --json | python3 -c "import json,sys; t={x['name']:x for x in json.load(sys.stdin)['tenants']}['$1']; print($2)" 2> /dev/null; }  # NAME EXPRESSION
is() { [ "$(of_tenant "$1" "$2")" = True ]; }
both_serve() { [ "$(timeout 5 "$bin/firebreak" status --json | python3 -c "import json,sys; print(all(x['state'] == 'serving' for x in json.load(sys.stdin)['domains']))")" = True ]; }
now_ms() { date +%s%3N; }
is_gone() { [ ! -e "/proc/$1" ] || grep -q "^State:.Z" "/proc/$1/status"; }
play() {  # NAME KIND OPTIONS...: KIND: what the child is
  local name=$1 kind=$2 child pid active standby killed stores promoted_ms failed_starts
  shift 2
  # The next client failed once before the agent replaced the server: it is counted, and another one comes.
  failed_starts=0
  while :; do
    claim "$name: both MPS domains serve" both_serve
    sleep "$settle_s"
    timeout 100 "$bin/firebreak" run --name "$name" -- "$bin/firebreak-forks" --child-s 60 "$@" > "$scratch/active.out" 2> "$scratch/active.err" &
    active=$!
    until grep -q "^storing, child " "$scratch/active.out" || ! kill -0 "$active" 2> /dev/null; do sleep 0.05; done
    grep -q "^storing, child " "$scratch/active.out" && break
    failed_starts=$((failed_starts + 1))
    [ "$failed_starts" -lt 5 ] || break
  done
  looks=1 claim "$name: the active stores, and has a child" grep -q "^storing, child " "$scratch/active.out"
  child=$(sed -n 's/^storing, child //p' "$scratch/active.out")
  timeout 100 "$bin/firebreak" run --standby --name "$name" -- "$bin/firebreak-forks" --watch-ms "$watch_ms" > "$scratch/standby.out" 2> "$scratch/standby.err" &
  standby=$!
  claim "$name: its standby is ready" is "$name" "t['standby_state'] == 'ready'"
  pid=$(of_tenant "$name" "t['active']['pid']")
  killed=$(now_ms)
  kill -9 "$pid"
  if [ "$kind" = stranger ]; then
    claim "$name: the agent says who has the descriptors" grep -q "not fenced tenant=$name .*process $child " "$result.agent.log"
    sleep 1
    looks=1 claim "$name: nobody is promoted beside it" is "$name" "t['phase'] == 'suspecting' and t['epoch'] == 0"
    killed=$(now_ms)
    kill -9 "$child"
  fi
  claim "$name: its standby is promoted" grep -q "^promoted" "$scratch/standby.out"
  promoted_ms=$(($(now_ms) - killed))
  looks=4 claim "$name: its child is gone" is_gone "$child"
  wait "$standby" "$active" 2> /dev/null
  stores=$(sed -n 's/^stores \([0-9]*\) in .*/\1/p' "$scratch/standby.out")
  looks=1 claim "$name: no store after the promotion" [ "$stores" = 0 ]
  rows+=("{\"child\": \"$kind\", \"stores_after_promotion\": ${stores:-null}, \"$(sed -n 's/^stores [0-9]* in \([0-9]*\) looks/looks\": \1/p' "$scratch/standby.out"), \"killed_to_promoted_seen_ms\": $promoted_ms, \"failed_starts\": $failed_starts, \"settled_s\": $settle_s}")
  { echo "== $name"; cat "$scratch"/{active,standby}.{out,err}; } >> "$result.log"
}

: > "$result.log"
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$result.agent.log" 2>&1 &
agent=$!
await_agent /dev/null
for run in $(seq "$runs"); do play "fork-$run" fork; done
play stranger-1 stranger --stranger
kill "$agent"; wait "$agent" 2> /dev/null
write_result forked-children "RUNS=$runs WATCH_MS=$watch_ms SETTLE_S=$settle_s" "$(rows_json)"
rm -rf "$scratch"
exit $failed
