#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch's operators, forth and back, by programs that are asked to leave their domain all the time, compared bit by bit with
# runs without any of this. For a machine with a GPU, root, MPS and PyTorch; some minutes.
#
#     tests/hardware/torch-operators.sh BIN RESULT.json [PARTS [AT_ONCE [SECONDS [FIRST_PARTS]]]]
#
# FIRST_PARTS: only so many of the parts.
set -u
bin=$(realpath "$1") result=$(realpath -m "$2") parts=${3:-16} at_once=${4:-4} seconds=${5:-60} first=${6:-${3:-16}}
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d /tmp/fb-ops-XXXXXX)
trap 'rm -rf "$work"' EXIT
export PYTHONHASHSEED=0  # some of the inputs come from sets of names
mkdir "$work/plain" "$work/again" "$work/moved"
for run in plain again; do
  seq 0 $((first - 1)) | xargs -P 8 -I{} timeout 300 python3 "$here/torch_operators.py" "$work/$run/{}.ops.json" \
    --part "{}/$parts" >"$work/$run.log" 2>&1 &
done
wait
echo "plain and again: $SECONDS s"
seq 0 $((first - 1)) | xargs -P "$at_once" -I{} timeout 300 python3 "$here/spare.py" "$bin" "$work/moved/{}.spare.json" \
  --leaves 40 --seconds "$seconds" --delay 0.1 --program python3 "$here/torch_operators.py" "$work/moved/{}.ops.json" \
  --part "{}/$parts" >"$work/moved.log" 2>&1
echo "moved: $SECONDS s"
tail -n 3 "$work"/*.log
cd "$here" && python3 torch_operators.py --compare "$work/plain" "$work/again" "$work/moved" "$result" "${@:3}"
