#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recorded launches once more on a GPU, with made-up data: what Firebreak says of each is compared with the accesses
that the GPU made, and what is called idempotent is torn and done again. For a machine with a GPU; nothing else needs to
be there.

    tests/hardware/replay_launches.py BIN RESULT.json FOLDER... [--parts N] [--seconds S]

BIN: the folder with firebreak-idempotency. FOLDER: what launches_of.py --keep has written. The kernels are dealt out to
so many processes, each of which begins again at a launch that ended it, with other data. Exit 1 where a launch went
where it was not predicted to go, was called idempotent and is not, or came out otherwise after it was torn."""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import time

from spare_faults import machine_at

ENDS_ALLOWED = 100  # of processes, in one part


def play_part(tool, folder, part, parts, end):
    rows, ended, begin, data = [], [], 0, 0
    while time.monotonic() < end and len(ended) < ENDS_ALLOWED:
        command = [str(tool), "--recorded", str(folder), "--replay", "--part", str(part), "--parts", str(parts),
                   "--begin", str(begin), "--first-data", str(data)]
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
        if not last:
            ended.append({"part": part, "said": wrong[-300:]})
            break
        ended.append({"part": part, "launch": last[-1], "said": wrong[-300:]})
        # Once more with other data: made-up numbers let programs' own assertions fail.
        data = data + 1 if last[-1] == begin else 1
        begin = last[-1]
        if data > 2:
            begin, data = begin + 1, 0
    return rows, ended


def figures_of(rows):
    """Counts of distinct launches; `launches` weighs each by how often its program made it."""
    played = [row for row in rows if "left_out" not in row]
    whole = [row for row in played if "is_idempotent" in row]

    def count(some):
        return {"distinct": len(some), "launches": sum(row["times"] for row in some)}
    missed = [row for row in whole if row["is_idempotent"] and row["verdict"] != "idempotent"]
    causes = collections.Counter(row["verdict"] + ", " + row["cause"] for row in missed)
    return {
        "played": count(played), "kernels": len({row["kernel"] for row in played}),
        "left_out": dict(collections.Counter(row["left_out"].split(";")[0][:80] for row in rows if "left_out" in row)),
        "accesses": sum(row["accesses"] for row in played), "traced_whole": count(whole),
        "data": dict(collections.Counter(row["data"] for row in played)),
        "idempotent_by_their_trace": count([row for row in whole if row["is_idempotent"]]),
        "of_these_called_so": count([row for row in whole if row["is_idempotent"] and row["verdict"] == "idempotent"]),
        "false_negatives_by_cause": dict(causes.most_common(30)),
        "called_not_idempotent_and_are_not": count([row for row in whole if not row["is_idempotent"]
                                                    and row["verdict"] == "not idempotent"]),
        "called_idempotent_and_are_not": count([row for row in whole if not row["is_idempotent"]
                                                and row["verdict"] == "idempotent"]),
        "leave_to_chance": count([row for row in played if row["leaves_to_chance"]]),
        "torn_and_done_again": sum(row["redone"] for row in played),
        "problems": [row for row in played if row["problem"]][:20],
        "problem_count": sum(1 for row in played if row["problem"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--parts", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=400, help="for all of them")
    arguments = parser.parse_args()
    tool = arguments.programs.resolve() / "firebreak-idempotency"
    end = time.monotonic() + arguments.seconds
    results = {}
    for folder in arguments.folders:
        with concurrent.futures.ThreadPoolExecutor(arguments.parts) as jobs:
            parts = list(jobs.map(lambda part, its=folder: play_part(tool, its, part, arguments.parts, end),
                                  range(arguments.parts)))
        rows = [row for its, _ in parts for row in its]
        results[folder.name] = {**figures_of(rows), "ended": [each for _, ended in parts for each in ended]}
        print(folder.name, json.dumps(results[folder.name])[:1500], flush=True)
    document = {"what": "recorded launches, replayed, traced and torn", "format": 1,
                "machine": machine_at(os.environ.get("FIREBREAK_COMMIT")),
                "command": " ".join(["tests/hardware/replay_launches.py", *sys.argv[1:]]), "programs": results}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    played = sum(each["played"]["distinct"] for each in results.values())
    return 0 if played and not any(each["problem_count"] for each in results.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
