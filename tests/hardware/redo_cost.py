#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What it costs a program with a spare that its work is noted, to be done again after a fault: the same programs with
FIREBREAK_SPARE_REDO=0 and 100, in turns (0, 100, 100, 0), one at a time, under one agent. For a machine with a GPU,
root and MPS.

    tests/hardware/redo_cost.py BIN RESULT.json [--seconds S] [--rounds N] [--programs NAME,...] [--llama FOLDER]

BIN: the folder with the programs. Programs: launches (launches.py, an empty kernel back to back: µs a launch), torch
and training (steps_torch.py: steps a second), llama (llama_server.py --bench: tokens a second; FOLDER: its libraries).
FIREBREAK_GPU=soft: launches alone. Medians of the rounds, and of the ratios of each pair of neighbours in time. Ends
everything that it started."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from spare_faults import HERE, Stage, machine

HOW = ("0", "100")


def programs_to_play(arguments, folder):
    seconds = str(arguments.seconds)
    torch = [sys.executable, str(HERE / "steps_torch.py"), seconds]
    llama = [sys.executable, str(HERE / "llama_server.py"), str(arguments.llama), f"{folder}/model.gguf", "--gpu",
             "--bench", seconds]
    plays = {"launches": [sys.executable, str(HERE / "launches.py"), seconds], "torch": torch,
             "training": [*torch, "train"], **({"llama": llama} if arguments.llama else {})}
    if os.environ.get("FIREBREAK_GPU") == "soft":
        plays = {"launches": plays["launches"]}
    return {name: plays[name] for name in arguments.programs.split(",") if name in plays}


def play(stage, name, command, how, seconds):
    stage.environment["FIREBREAK_SPARE_REDO"] = how
    process = stage.run(name, command, "--spare", stdin=subprocess.PIPE)
    if "working" not in process.stdout.readline():
        process.kill()
        raise RuntimeError(f"{name} did not begin")
    protected = stage.wait(lambda status: any(
        each["name"] == name and each.get("spare") and each["spare"]["state"] == "protected"
        for each in status["tenants"]), 20)
    said = json.loads(process.communicate("go\n", timeout=seconds + 60)[0].strip().splitlines()[-1])
    row = {"redo": how, "is_protected": protected is not None, "exit": process.returncode}
    if "launch_us" in said:
        return {**row, "launch_us": said["launch_us"]}
    if "tokens_a_second" in said:
        return {**row, "a_second": said["tokens_a_second"]}
    return {**row, "a_second": said["a_second"], "wrong": said["wrong_words"]}


def figures_of(rows):
    key = "launch_us" if "launch_us" in rows[0] else "a_second"
    medians = {how: statistics.median(row[key] for row in rows if row["redo"] == how) for how in HOW}
    pairs = [{row["redo"]: row[key] for row in rows[at:at + 2]} for at in range(0, len(rows) - 1, 2)]
    ratios = sorted(pair["100"] / pair["0"] for pair in pairs)
    return {key: medians, "ratio_of_pairs": {"median": round(statistics.median(ratios), 4),
                                             "least": round(ratios[0], 4), "most": round(ratios[-1], 4),
                                             "pairs": len(ratios)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=4, help="of four plays each")
    parser.add_argument("--programs", default="launches,torch,training,llama")
    parser.add_argument("--llama", type=pathlib.Path)
    arguments = parser.parse_args()
    programs = str(arguments.bin.resolve())
    with tempfile.TemporaryDirectory(prefix="fb-rc-") as folder:
        plays = programs_to_play(arguments, folder)
        rows = {name: [] for name in plays}
        stage = Stage(programs, folder + "/d", True)
        try:
            stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 40)
            for number in range(4 * arguments.rounds):
                for name, command in plays.items():
                    how = HOW[number % 4 in (1, 2)]
                    rows[name].append(play(stage, f"{name}{number}", command, how, arguments.seconds))
                    print(name, json.dumps(rows[name][-1]), flush=True)
        finally:
            stage.end()
    figures = {name: figures_of(its) for name, its in rows.items()}
    arguments.output.write_text(json.dumps(
        {"what": "tests/hardware/redo_cost.py", "format": 1, "machine": machine(programs),
         "command": " ".join(["tests/hardware/redo_cost.py", "BIN", arguments.output.name] + sys.argv[3:]),
         "figures": figures, "rows": rows}, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    good = all(row["exit"] == 0 and row["is_protected"] and not row.get("wrong")
               for its in rows.values() for row in its)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
