# SPDX-License-Identifier: Apache-2.0
# For the scripts beside it, which set `bin` and FIREBREAK_SOCKET: what they claim, and whether it was observed; where they ran. Sets `claims` (JSON) and `failed`.
claims=() failed=0

claim() {  # TEXT COMMAND...: whether the command says yes within 60 s, or within `looks` quarters of a second
  local text=$1 observed=false
  shift
  for _ in $(seq "${looks:-240}"); do "$@" && { observed=true; break; }; sleep 0.25; done
  [ $observed = true ] || failed=1
  echo "$observed  $text"
  claims+=("{\"claim\": \"$text\", \"observed\": $observed}")
}
await_agent() {  # STATUS: a minute at most, until the agent says how it is, which goes to that file
  for _ in $(seq 120); do [ -S "$FIREBREAK_SOCKET" ] && timeout 5 "$bin/firebreak" status --json > "$1" 2> /dev/null && return; sleep 0.5; done
  return 1
}
claims_json() { (IFS=,; echo "[${claims[*]}]"); }

commit_of() { "$1/firebreak" --version | grep -oE '[0-9a-f]{12}(-dirty)?' | head -1; }  # BIN
of_gpus() { nvidia-smi --query-gpu="$1" --format=csv,noheader; }  # FIELD: a line a GPU
machine_json() {  # BIN MORE: the machine, and the commit of the programs in BIN; MORE: further members, each ended by ", "
  echo "{$2\"driver\": \"$(of_gpus driver_version | head -1)\", \"linux\": \"$(uname -r)\", \"commit\": \"$(commit_of "$1")\", \"date\": \"$(date -u +%F)\"}"
}
this_machine_json() {  # of `bin`'s GPU, the software one where FIREBREAK_GPU says so
  if [ "${FIREBREAK_GPU:-real}" = soft ]; then
    echo "{\"gpu\": \"software\", \"linux\": \"$(uname -r)\", \"commit\": \"$(commit_of "$bin")\", \"date\": \"$(date -u +%F)\"}"
  else
    machine_json "$bin" "\"gpu\": \"$(of_gpus name | head -1)\", "
  fi
}
write_result() {  # SCRIPT SETTINGS MEMBERS: into `result`; SETTINGS: as its environment had them; MEMBERS: what it measured, as JSON, one line
  {
    echo "{\"what\": \"tests/hardware/$1.sh\", \"format\": 1,"
    echo " \"machine\": $(this_machine_json),"
    echo " \"command\": \"$2 tests/hardware/$1.sh BIN $1.json\","
    echo " $3,"
    echo " \"claims\": $(claims_json)}"
  } > "$result"
}
rows_json() { (IFS=,; echo "\"rows\": [${rows[*]}]"); }
