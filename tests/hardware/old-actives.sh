#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An SM fault in a domain of many pairs: when is each standby promoted, and when has each old active ended? For a
# machine with a GPU, root and MPS; about a minute a run.
#
#   tests/hardware/old-actives.sh BIN RESULT.json
#
# BIN: the folder with the programs. TENANTS (20), RUNS (3). FIREBREAK_GPU=soft: without a GPU. Writes what was
# claimed and whether it was observed, and a row for each run; exit 1 where something was not. Ends everything that
# it started.
set -u
bin=$(realpath "$1") result=$2 tenants=${TENANTS:-20} runs=${RUNS:-3}
scratch=$(mktemp -d /tmp/fbo.XXXX)
export FIREBREAK_GPU=${FIREBREAK_GPU:-real} FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
softly=() size=medium
if [ "$FIREBREAK_GPU" = soft ]; then
  softly=(FIREBREAK_SOFTGPU_DIR="$scratch/d/softgpu") size=small
fi
. "$(dirname "$(realpath "$0")")/claims.sh"
rows=() pairs=()

of_status() { # PYTHON EXPRESSION over s
  timeout 5 "$bin/firebreak" status --json 2> /dev/null |
    python3 -c "import json,sys; s=json.load(sys.stdin); print($1)" 2> /dev/null
}
all_ready() {
  [ "$(of_status "sum(t['standby_state'] == 'ready' for t in s['tenants']) == $tenants and
    all(d['state'] == 'serving' for d in s['domains'])")" = True ]
}
let_go() { # GO LIMIT_S PIDS...: writes to GO; a JSON list, the milliseconds from there to each end; null: none
  python3 - "$@" <<'PY'
import json, sys, time

go, limit_s, pids = sys.argv[1], float(sys.argv[2]), sys.argv[3:]


def has_ended(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


ends = {}
with open(go, "w") as told:
    began = time.monotonic()
    told.write("go\n")
while len(ends) < len(pids) and time.monotonic() - began < limit_s:
    for pid in pids:
        if pid not in ends and has_ended(pid):
            ends[pid] = round((time.monotonic() - began) * 1e3, 1)
    time.sleep(0.005)
print(json.dumps(sorted(ends.values()) + [None] * (len(pids) - len(ends))))
PY
}

play() { # RUN: one SM fault of a foreign client, in the domain where most actives are
  local run=$1 domain actives stranger ends promoted
  claim "run $run: all $tenants tenants have a standby" all_ready
  domain=$(of_status "max('ab', key=lambda d: sum(t['active']['domain'] == d for t in s['tenants']))")
  mapfile -t actives < <(of_status "'\n'.join(str(t['active']['pid']) for t in s['tenants']
    if t['active']['domain'] == '$domain')")
  rm -f "$scratch/go"
  mkfifo "$scratch/go"
  timeout 100 env "${softly[@]}" CUDA_MPS_PIPE_DIRECTORY="$scratch/d/$domain/pipe" \
    "$bin/firebreak-lab" inject --wait misaligned-load < "$scratch/go" > "$scratch/stranger.out" 2>&1 &
  stranger=$!
  exec 9> "$scratch/go"
  claim "run $run: the foreign client is ready" grep -q "prepared" "$scratch/stranger.out"
  seen=$(wc -l < "$result.agent.log")
  ends=$(let_go "$scratch/go" 60 "${actives[@]}")
  exec 9>&-
  wait "$stranger" 2> /dev/null
  promoted=$(tail -n +"$((seen + 1))" "$result.agent.log" | grep -c " promote tenant=")
  looks=1 claim "run $run: every old active has ended" [ "${ends/null/}" = "$ends" ]
  rows+=("{\"old_actives\": ${#actives[@]}, \"ended_after_ms\": $ends, \"promoted\": $promoted}")
}

: > "$result.log"
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$result.agent.log" 2>&1 &
agent=$!
await_agent /dev/null
for each in $(seq "$tenants"); do
  timeout 400 "$bin/firebreak" run --pair --name "t$each" -- "$bin/firebreak-decode" --size "$size" \
    --steps 100000 --pace-ms 50 >> "$result.log" 2>&1 &
  pairs+=($!)
  sleep 0.3
done
for run in $(seq "$runs"); do play "$run"; done
for each in "${pairs[@]}"; do kill "$each" 2> /dev/null; done
for each in "${pairs[@]}"; do wait "$each" 2> /dev/null; done
kill "$agent"
wait "$agent" 2> /dev/null
write_result old-actives "TENANTS=$tenants RUNS=$runs" "$(rows_json)"
rm -rf "$scratch"
exit $failed
