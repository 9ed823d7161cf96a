#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a standby takes of a GPU's memory, and what its tenant does between its promotion and its full context. For a machine with a GPU, root and MPS; some four minutes.
#
#   tests/hardware/standby-memory.sh BIN RESULT.json      BIN: the folder with the programs; RUNS (3): of each
#
# Writes what was claimed and whether it was observed, and a row for each run; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2 runs=${RUNS:-3} size=${SIZE:-medium}
scratch=$(mktemp -d /tmp/fbs.XXXX)
export FIREBREAK_GPU=${FIREBREAK_GPU:-real} FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
. "$(dirname "$(realpath "$0")")/claims.sh"
declare -A steps=([decode]=${STEPS:-4000} [denoise]=${STEPS:-1500})
rows=()

status() { timeout 5 "$bin/firebreak" status --json; }
of_tenant() { status | python3 -c "import json,sys; t={x['name']:x for x in json.load(sys.stdin)['tenants']}['$1']; print($2)" 2> /dev/null; }  # NAME EXPRESSION
is() { [ "$(of_tenant "$1" "$2")" = True ]; }
process_mib() { nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits | awk -F', ' -v pid="$1" '$1 == pid { sum += $2 } END { print sum + 0 }'; }
gpu_mib() { nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | head -1; }
tenant() {  # LOG NAME WORKLOAD OPTIONS...: one process of tenant NAME; a standby where STANDBY is set
  local log=$1 name=$2 workload=$3
  shift 3
  timeout 240 "$bin/firebreak" run --name "$name" ${STANDBY:+--standby} -- "$bin/firebreak-$workload" --size "$size" --steps "${steps[$workload]}" "$@" > "$scratch/$log.out" 2> "$scratch/$log.err" &
  started+=($!)
}
row() { python3 - "$scratch/standby.out" "$@" << 'CODE'
import json, statistics, sys
path, workload, sms, waiting_mib, waiting_gpu_mib, moved_mib = sys.argv[1:]
at, steps = {}, []
for line in open(path):
    words = line.split()
    if words[0] == "step":
        steps.append(int(words[2]))
    elif len(words) == 2:
        at[words[0]] = int(words[1])
moved = at.get("moved")
begin = moved or at["resumed"]
times = [(later, (later - earlier) / 1e6) for earlier, later in zip([at["resumed"], *steps], steps)]
def summary(values):
    ordered = sorted(values)
    return {"steps": len(ordered), "median": statistics.median(ordered), "p99": ordered[int(len(ordered) * 0.99)], "longest": ordered[-1]} if ordered else None
print(json.dumps({
    "workload": workload, "standby_sms": int(sms), "waiting_process_mib": int(waiting_mib), "waiting_gpu_mib": int(waiting_gpu_mib),
    "moved_process_mib": int(moved_mib) if moved else None,
    "promoted_to_first_kernel_ms": (at["resumed"] - at["promoted"]) / 1e6,
    "promoted_to_moved_ms": (moved - at["promoted"]) / 1e6 if moved else None,
    "step_ms_before_moved": summary([ms for done, ms in times if moved and done <= moved]),
    "longest_of_5_steps_at_the_move_ms": max([ms for done, ms in times if moved and done > moved][:5], default=None),
    "step_ms_afterwards": summary([ms for done, ms in times if done > begin][5:]),
}))
CODE
}
play() {  # WORKLOAD SMS RUN
  local name=$1-$2-$3 before pid waiting moved=0 alone
  started=()
  tenant active "$name" "$1" --pace-ms 20
  claim "$name: the active serves" is "$name" "t['phase'] == 'serving' and t['committed_steps'] > 5"
  before=$(gpu_mib)
  STANDBY=yes tenant standby "$name" "$1" --standby-sms "$2" --progress
  claim "$name: its standby is ready" is "$name" "t['standby_state'] == 'ready'"
  sleep 1
  pid=$(of_tenant "$name" "t['standby']['pid']")
  waiting=$(process_mib "$pid") waiting_gpu=$(($(gpu_mib) - before))
  [ "$2" = 0 ] || looks=1 claim "$name: the standby takes at most 80 MiB" [ "$waiting" -gt 0 -a "$waiting" -le 80 ]
  kill -9 "$(of_tenant "$name" "t['active']['pid']")"
  if [ "$2" != 0 ]; then
    claim "$name: it has a full context soon" grep -q "^moved " "$scratch/standby.out"
    moved=$(process_mib "$pid")
  fi
  for pid in "${started[@]}"; do wait "$pid"; done
  alone=${alone_of[$1]}
  looks=1 claim "$name: the output is that of a run alone" grep -qxF "$alone" "$scratch/standby.out"
  rows+=("$(row "$1" "$2" "$waiting" "$waiting_gpu" "$moved")")
  echo "${rows[-1]}"
  { echo "== $name"; cat "$scratch"/{active,standby}.err; } >> "$result.log"
}

: > "$result.log"
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$result.agent.log" 2>&1 &
agent=$!
await_agent /dev/null
declare -A alone_of
for workload in decode denoise; do
  started=()
  tenant alone alone "$workload"
  wait "${started[0]}"
  alone_of[$workload]=$(tail -1 "$scratch/alone.out")
  for sms in 8 2 0; do
    for run in $(seq "$runs"); do play "$workload" "$sms" "$run"; done
  done
done
kill "$agent"; wait "$agent" 2> /dev/null
write_result standby-memory "RUNS=$runs SIZE=$size" "$(rows_json)"
rm -rf "$scratch"
exit $failed
