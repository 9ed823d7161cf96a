#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a spare driver instance costs a program where nobody faults: the same programs with and without it, in turns,
one at a time, under one agent. For a machine with a GPU, root and MPS.

    tests/hardware/spare_cost.py BIN RESULT.json [--seconds S] [--rounds N] [--programs NAME,...] [--cpus LIST]
                                 [--guarded]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU and without PyTorch. Programs: launches
(launches.py), checker (firebreak-checker), torch (steps_torch.py). CPUs: where they may run, as taskset takes them. Of
each program, medians of the rounds: the time until it has worked once, how much it did a second after that (launches.py:
µs a launch), and how much GPU memory is in use while it works, above what was in use before. Without, with, with,
without: what drifts falls on both. --guarded: with all that `firebreak run -- PROGRAM` gives. Ends everything that it started."""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

from spare_faults import HERE, Stage, machine, memory_used_mib


def programs_to_play(programs, seconds):
    launches = [sys.executable, str(HERE / "launches.py"), str(seconds)]
    checker = [programs + "/firebreak-checker", "--seconds", str(seconds)]
    torch = [sys.executable, str(HERE / "steps_torch.py"), str(seconds)]
    if os.environ.get("FIREBREAK_GPU", "real") == "soft":
        return {"launches": launches, "checker": checker}
    return {"launches": launches, "checker": checker, "torch": torch}


def settled_memory_mib():
    """What a program had is given back some time after its end."""
    last = memory_used_mib()
    for _ in range(20):
        time.sleep(0.5)
        now = memory_used_mib()
        if now == last:
            return now
        last = now
    return last


def play(stage, name, command, with_spare):
    before_mib = settled_memory_mib()
    begin = time.monotonic()
    process = stage.run(name, command, *(stage.options if with_spare else ["--without", "guard,spare"]))
    said = process.stdout.readline().strip()
    first_s = time.monotonic() - begin
    if said != "working":
        raise RuntimeError(f"{name} said {said!r}")
    row = {"with_spare": with_spare, "until_first_ms": round(first_s * 1e3, 1)}
    if with_spare:
        protected = stage.wait(lambda status: any(
            each["name"] == name and each.get("spare") and each["spare"]["state"] == "protected"
            for each in status["tenants"]), 20)
        row["until_protected_ms"] = round((time.monotonic() - begin) * 1e3, 1)
        row["is_protected"] = protected is not None
    else:
        time.sleep(1)
    during_mib = memory_used_mib()
    row["memory_mib"] = during_mib - before_mib if during_mib is not None else None
    last = json.loads(process.communicate(timeout=120)[0].strip().splitlines()[-1])
    worked_s = time.monotonic() - begin - first_s
    row["exit"] = process.returncode
    if "launch_us" in last:
        row["launch_us"] = last["launch_us"]
        row.update({key: value for key, value in last.items() if key.startswith(("allocation_", "free_"))})
    else:
        row["a_second"] = round(last["launches"] / worked_s, 1)
        row["wrong"] = last["wrong_words"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--programs", dest="which", default="launches,checker,torch")
    parser.add_argument("--cpus")
    parser.add_argument("--guarded", action="store_true")
    arguments = parser.parse_args()
    programs = str(arguments.programs.resolve())
    plays = {name: (["taskset", "-c", arguments.cpus] if arguments.cpus else []) + command
             for name, command in programs_to_play(programs, arguments.seconds).items()
             if name in arguments.which.split(",")}
    rows = {name: [] for name in plays}
    with tempfile.TemporaryDirectory(prefix="fb-sc-") as folder:
        stage = Stage(programs, folder + "/d", True, arguments.guarded)
        try:
            stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 40)
            for number in range(2 * arguments.rounds):
                for name, command in plays.items():
                    row = play(stage, f"{name}{number}", command, number % 4 in (1, 2))
                    rows[name].append(row)
                    print(name, json.dumps(row), flush=True)
        finally:
            stage.end()
    figures = {}
    for name, all_rows in rows.items():
        figures[name] = {}
        of_memory = [key for key in all_rows[0] if key.startswith(("allocation_", "free_"))]
        for key in ("launch_us", "a_second", "until_first_ms", "until_protected_ms", "memory_mib", *of_memory):
            of = {way: [row[key] for row in all_rows if row["with_spare"] == way and row.get(key) is not None]
                  for way in (False, True)}
            medians = {("without", "with")[way]: statistics.median(values) for way, values in of.items() if values}
            if medians:
                figures[name][key] = medians
    arguments.output.write_text(json.dumps(
        {"what": "tests/hardware/spare_cost.py", "format": 1, "machine": machine(programs),
         "command": " ".join(["tests/hardware/spare_cost.py", "BIN", arguments.output.name] + sys.argv[3:]),
         "figures": figures, "rows": rows}, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    good = all(row["exit"] == 0 and not row.get("wrong") and row.get("is_protected", True)
               for all_rows in rows.values() for row in all_rows)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
