#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `./dev run` compiles nothing that only a monitoring system, an orchestrator or a test needs.
# usage: main_job_test.sh NINJA BUILD_FOLDER TARGET
set -eu
inputs=$("$1" -C "$2" -t inputs "$3")
printf '%s\n' "$inputs" | grep -q 'firebreakd.dir/.*[.]o' || { echo "these are not its inputs" && exit 1; }
unwanted=$(printf '%s\n' "$inputs" | grep -E 'commands/(exporter|cluster|k8s|nri)/|_test|/tests/|_torch|grpc|protobuf' || true)
[ -z "$unwanted" ] || { printf 'it needs:\n%s\n' "$unwanted" && exit 1; }
