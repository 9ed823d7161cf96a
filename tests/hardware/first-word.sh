#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When the driver's first word of an SM fault comes, by what else is on the GPU: one thing varied at a time, each arrangement several times, in turn. For a machine with a GPU, root and MPS.
#
#   tests/hardware/first-word.sh BIN RESULT.json      BIN: the folder with the programs of a release build; LIMIT_S (420): no run begins that would probably end later; ROUNDS (10): of all arrangements; SEED (1): of their order
#
# Writes each run, each arrangement's spread, and a linear law fitted to all runs. FIREBREAK_GPU=soft tries the command itself. Ends everything that it started.
set -u
bin=$(realpath "$1") result=$2
export FIREBREAK_GPU=${FIREBREAK_GPU:-real} LIMIT_S=${LIMIT_S:-420} ROUNDS=${ROUNDS:-10} SEED=${SEED:-1}
. "$(dirname "$(realpath "$0")")/claims.sh"
if [ "$FIREBREAK_GPU" = soft ]; then
  of_gpus() { echo soft; }
fi
machine=$(machine_json "$bin" "\"device\": \"$(of_gpus name | head -1)\", ")
exec python3 "$(dirname "$(realpath "$0")")/first-word.py" "$bin" "$result" "$machine"
