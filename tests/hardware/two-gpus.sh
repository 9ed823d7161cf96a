#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two real GPUs under one agent: a fault on one concerns nobody on the other. For a machine with two GPUs, root and MPS; takes half a minute.
#
#   tests/hardware/two-gpus.sh BIN RESULT.json      BIN: the folder with firebreak and firebreakd
#
# Writes what was claimed and whether it was observed; exit 1 where something was not. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2
scratch=$(mktemp -d /tmp/fb2.XXXX)
export FIREBREAK_GPU=real FIREBREAK_LOG=info FIREBREAK_SOCKET=$scratch/d/agent.sock
. "$(dirname "$(realpath "$0")")/claims.sh"

mapfile -t gpus < <(of_gpus uuid | head -2)
[ ${#gpus[@]} = 2 ] || { echo "two GPUs are needed" >&2; exit 2; }

start_agent() {
  "$bin/firebreakd" --directory "$scratch/d" --gpu "${gpus[0]}" --gpu "${gpus[1]}" --hold-s 0 >> "$scratch/agent.log" 2>&1 &
  agent=$!
  await_agent "$scratch/status.json" && return
  echo "no agent" >&2; cat "$scratch/agent.log" >&2; exit 2
}
status() { timeout 5 "$bin/firebreak" status --json; }
ask() { status > "$scratch/status.json" && python3 -c "import json,sys; d=json.load(open('$scratch/status.json')); domains={x['name']:x for x in d['domains']}; tenants={x['name']:x for x in d['tenants']}; sys.exit(0 if $1 else 1)" 2> /dev/null; }
value() { status > "$scratch/status.json"; python3 -c "import json; d=json.load(open('$scratch/status.json')); domains={x['name']:x for x in d['domains']}; tenants={x['name']:x for x in d['tenants']}; print($1)"; }

victim() {  # NAME GPU: one that does nothing wrong, for as long as its input is open
  mkfifo "$scratch/$1.in"
  sleep 150 > "$scratch/$1.in" &
  inputs+=($!)
  timeout 160 "$bin/firebreak" run --name "$1" --gpu "$2" -- "$bin/firebreak-lab" victim --pace-ms 1 < "$scratch/$1.in" > "$scratch/$1.out" 2>&1 &
  victims[$1]=$!
}
lives() { kill -0 "${victims[$1]}" 2> /dev/null; }
died() { ! lives "$1"; }
declare -A victims
inputs=()

start_agent
victim one "${gpus[0]}"
victim two "${gpus[1]}"
claim "each tenant runs on the GPU that it asked for" ask "domains[tenants['one']['active']['domain']]['gpu'].lower().find('${gpus[0]#GPU-}'.lower())>=0 and domains[tenants['two']['active']['domain']]['gpu'].lower().find('${gpus[1]#GPU-}'.lower())>=0"
sleep 3
first=$(value "tenants['one']['active']['domain']")
timeout 30 "$bin/firebreak" run --name rogue --gpu "${gpus[0]}" -- "$bin/firebreak-lab" inject trap > "$scratch/rogue.out" 2>&1
claim "a trap on the first GPU ends its co-client in domain $first" died one
claim "and nobody on the second" lives two
victim late "${gpus[0]}"
claim "a tenant that comes meanwhile is placed, in a domain of the first GPU" ask "domains[tenants['late']['active']['domain']]['gpu']==domains['$first']['gpu']"
claim "domain $first serves again" ask "domains['$first']['state']=='serving'"

other=$(value "tenants['two']['active']['domain']")
spare=$(value "[n for n,x in domains.items() if x['gpu']==domains['$other']['gpu'] and n!='$other'][0]")
daemon=$(value "domains['$spare']['daemon_pid']")
kill -9 "$daemon"
claim "a daemon of the second GPU that is killed is started again" ask "domains['$spare']['daemon_restarts']>=1 and domains['$spare']['state']=='serving'"
claim "and nobody in its other domain notices" lives two

two=${victims[two]}
kill -9 "$agent"; wait "$agent" 2> /dev/null
sleep 1
claim "an agent that is killed takes nobody along" eval '! kill -0 $agent 2> /dev/null && lives two'
start_agent
claim "the next one takes all four domains over" ask "len(domains)==4 and all(x['state']=='serving' for x in domains.values())"
claim "as they were left" ask "all(x['daemon_restarts']==0 for x in domains.values())"
claim "and the tenants go on" kill -0 "$two"

kill "${inputs[@]}" 2> /dev/null
for name in two late; do wait "${victims[$name]}"; echo "$name ended with $?"; tail -c 200 "$scratch/$name.out"; done
kill -INT "$agent"; wait "$agent" 2> /dev/null
for pid in $(pgrep -f "nvidia-cuda-mps-control.*" || true); do
  tr '\0' '\n' < "/proc/$pid/environ" 2> /dev/null | grep -q "CUDA_MPS_PIPE_DIRECTORY=$scratch" && kill -9 "$pid"
done
{
  echo "{\"what\": \"tests/hardware/two-gpus.sh\", \"format\": 1,"
  echo " \"machine\": $(machine_json "$bin" "\"gpus\": $(of_gpus name | head -2 | python3 -c 'import json,sys; print(json.dumps(sys.stdin.read().splitlines()))'), "),"
  echo " \"command\": \"tests/hardware/two-gpus.sh BIN two-gpus.json\","
  echo " \"claims\": $(claims_json)}"
} > "$result"
cp "$scratch/agent.log" "$result.agent.log"
rm -rf "$scratch"
exit $failed
