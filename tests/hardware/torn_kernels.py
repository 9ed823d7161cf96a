#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kernels that an analysis is likely to take wrongly, made up from a seed: each runs on a GPU, traced; what is called
idempotent is torn (its threads leave early, after so many accesses) and done again, and memory is compared with that of
one whole run. For a machine with a GPU; nothing else needs to be there.

    tests/hardware/torn_kernels.py BIN RESULT.json [--kernels 200] [--seed 20261129] [--seconds 500]

BIN: the folder with firebreak-idempotency. A kernel that ends the process is told, and the others go on. FIREBREAK_GPU=
soft: on the software GPU. FIREBREAK_COMMIT says what was built. Exit 1 where a kernel went where it was not predicted to
go, was called idempotent and is not, or came out otherwise after it was torn."""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

from spare_faults import machine_at

ENDS_ALLOWED = 20  # of the process


def play(tool, kernels, seed, end):
    rows, ended, begin = [], [], 0
    while len(ended) <= ENDS_ALLOWED and time.monotonic() < end:
        command = [str(tool), "--adversarial", "--replay", "--kernels", str(kernels), "--seed", str(seed),
                   "--begin-kernel", str(begin), "--records", "262144"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                said, wrong = process.communicate(timeout=max(1.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                said, wrong = process.communicate()
                wrong = "no time was left"
        lines = [json.loads(line) for line in said.splitlines() if line.endswith("}")]
        rows += [line for line in lines if "kernel" in line]
        if process.returncode == 0:
            break
        last = [line["begin"] for line in lines if "begin" in line]
        ended.append({"kernel": last[-1] if last else None, "said": wrong[-300:]})
        if not last:
            break
        begin = last[-1] + 1
    return rows, ended


def figures_of(rows):
    played = [row for row in rows if "left_out" not in row]
    kinds = collections.defaultdict(collections.Counter)
    for row in played:
        kind = kinds[row["kind"]]
        kind["played"] += 1
        kind["idempotent_by_their_trace"] += row.get("is_idempotent", False)
        kind["called_so"] += row["verdict"] == "idempotent"
        kind["torn_and_done_again"] += row["redone"]
        kind["leave_to_chance"] += row["leaves_to_chance"]
        kind["problems"] += bool(row["problem"])
    return {"played": len(played), "accesses": sum(row["accesses"] for row in played),
            "left_out": dict(collections.Counter(row["left_out"][:80] for row in rows if "left_out" in row)),
            "called_idempotent_and_are_not": sum(1 for row in played if row["verdict"] == "idempotent"
                                                 and row.get("is_idempotent") is False),
            "torn_and_done_again": sum(row["redone"] for row in played),
            "kinds": {name: dict(counts) for name, counts in sorted(kinds.items())},
            "problem_count": sum(1 for row in played if row["problem"]),
            "problems": [row for row in played if row["problem"]][:20]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20261129)
    parser.add_argument("--seconds", type=float, default=500)
    arguments = parser.parse_args()
    started = time.monotonic()
    rows, ended = play(arguments.bin / "firebreak-idempotency", arguments.kernels, arguments.seed,
                       started + arguments.seconds)
    figures = figures_of(rows)
    is_wrong = figures["problem_count"] != 0 or figures["called_idempotent_and_are_not"] != 0
    result = {"what": "made-up kernels torn on a GPU and done again", "format": 1, "machine": machine_at(os.environ.get("FIREBREAK_COMMIT", "unknown")),
              "kernels": arguments.kernels, "seed": arguments.seed, "seconds": round(time.monotonic() - started, 1),
              **figures, "process_ended": ended, "is_wrong": is_wrong}
    arguments.result.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps({name: value for name, value in result.items() if name not in ("problems", "machine")}, indent=1))
    is_missing = figures["played"] + sum(figures["left_out"].values()) + len(ended) < arguments.kernels
    return 1 if is_wrong or is_missing else 0


if __name__ == "__main__":
    sys.exit(main())
