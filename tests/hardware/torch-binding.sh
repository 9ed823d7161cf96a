#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch's memory in the vault: an active that is killed, and its standby. For a machine with a GPU, MPS, root and PyTorch 2.5 or newer; about two minutes.
#
#   tests/hardware/torch-binding.sh BIN RESULT.json      BIN: the folder with firebreak and firebreakd; PYTHON says which python3
#
# Writes what was claimed and whether it was observed; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2 python=${PYTHON:-python3}
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d /tmp/fbt.XXXX)
export FIREBREAK_GPU=real FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
export PYTHONPATH=$here/../../python FIREBREAK_LIBRARY_DIR=$bin/../lib PYTHONDONTWRITEBYTECODE=1 CUBLAS_WORKSPACE_CONFIG=:4096:8
steps=2000
. "$here/claims.sh"

said() { "$python" - "$scratch/$1.out" "$2" 2> /dev/null << 'CODE'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
of = lambda what: next(line for line in lines if line["what"] == what)
sys.exit(0 if eval(sys.argv[2]) else 1)
CODE
}
value() { "$python" - "$scratch/$1.out" "$2" 2> /dev/null << 'CODE'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1]) if line.startswith("{")]
of = lambda what: next(line for line in lines if line["what"] == what)
print(json.dumps(eval(sys.argv[2])))
CODE
}
started=()
run() {  # NAME OPTIONS... -- MODE OUTPUT PAUSE_MS: one process of tenant NAME
  local log=$1 name=$2 options=()
  shift 2
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  timeout 240 "$bin/firebreak" run --name "$name" "${options[@]}" -- "$python" "$here/torch-binding.py" "$2" "$3" $steps "$4" > "$scratch/$log.out" 2> "$scratch/$log.err" &
  started+=($!)
}

timeout 240 "$python" "$here/torch-binding.py" alone "$scratch/alone" $steps 0 > "$scratch/alone.out" 2> "$scratch/alone.err" || { cat "$scratch/alone.err" >&2; exit 2; }
"$bin/firebreakd" --end-domains --directory "$scratch/d" > "$scratch/agent.log" 2>&1 &
agent=$!
await_agent /dev/null

run active t -- tenant "$scratch/output" 40
claim "an active's tensors are in the vault" said active "len(of('memory')['addresses'])==27 and min(of('memory')['addresses'])>=0x500000000000"
claim "it computes" said active "of('begins')['step']==0"
run stranger t --standby -- stranger "$scratch/never" 0
claim "a standby that allocates other sizes is told so" said stranger "of('failed')['kind']=='NoMemoryError' and 'has no allocation' in of('failed')['why']"
sleep 1
run standby t --standby -- tenant "$scratch/output" 0
claim "a standby that allocates the same gets ready" said standby "of('ready')"
same=$(value active "of('memory')['addresses']")
claim "its tensors are at the active's addresses" said standby "of('memory')['addresses']==$same"
sleep 1
victim=$(timeout 5 "$bin/firebreak" status --json | "$python" -c "import json,sys; print(json.load(sys.stdin)['tenants'][0]['active']['pid'])")
kill -9 "$victim"
claim "the active is killed and its standby goes on" said standby "of('begins')['step']>0 and of('begins')['epoch']==1"
weights=$(value active "of('begins')['weights']")
claim "with the weights that the active wrote" said standby "of('done')['weights']==$weights"
digest=$(value alone "of('done')['digest']")
claim "and the result is that of a run alone, bit for bit" said standby "of('done')['digest']==$digest"

for pid in "${started[@]}"; do wait "$pid"; done
kill "$agent"; wait "$agent" 2> /dev/null
{
  echo "{\"what\": \"tests/hardware/torch-binding.sh\", \"format\": 1,"
  echo " \"machine\": $(machine_json "$bin" "\"gpu\": \"$(of_gpus name | head -1)\", \"torch\": \"$("$python" -c 'import torch; print(torch.__version__)')\", "),"
  echo " \"command\": \"tests/hardware/torch-binding.sh BIN torch-binding.json\","
  echo " \"measured\": {\"first_kernel_ms\": $(value standby "(of('first kernel')['at_ns']-of('first kernel')['promoted_at_ns'])/1e6"), \"commit_ns_median\": $(value standby "of('commits')['median_ns']"), \"standby_allocates_ms\": $(value standby "of('memory')['milliseconds']"), \"active_weights\": $weights, \"standby_weights\": $(value standby "of('done')['weights']")},"
  echo " \"claims\": $(claims_json)}"
} > "$result"
for log in active stranger standby alone; do echo "== $log"; cat "$scratch/$log.out"; tail -c 2000 "$scratch/$log.err"; done > "$result.log"
cp "$scratch/agent.log" "$result.agent.log"
rm -rf "$scratch"
exit $failed
