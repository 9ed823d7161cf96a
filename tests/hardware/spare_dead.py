#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Domains that nobody parks: a neighbour strays without guard ranges, or is killed in mid-kernel and was not started
by us. Unmodified programs that have nothing on the GPU at that moment go on in their spare. For a machine with a GPU,
root and MPS; some six seconds a fault.

    tests/hardware/spare_dead.py BIN RESULT.json [--faults N] [--kinds KIND,...]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. Two programs (firebreak-checker) compute for a
moment every second, and compare every word. A third one, outside of MPS, computes all the time: its longest step near
a fault is how long the GPU stood still. What counts is the first step of the two after that: from its launch to its
result, with the move in it. A step that was under way when the domain died gets the driver's error, as without us.
Exit 1 where a word was wrong or a program that was idle got an error. Ends everything that it started."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import spare_faults

KINDS = "unmapped-store-far,sigkill-endless"
IDLE = ["idle1", "idle2"]
PAUSE_MS = 1500


def start_idle(stage, name):
    command = [stage.programs + "/firebreak-checker", "--until", stage.until, "--pause-ms", str(PAUSE_MS),
               "--stalls", "0.001"]
    stage.tenants[name] = stage.run(name, command, *stage.options)
    return stage.tenants[name].stdout.readline().strip()


def strangers_environment(stage, pipe_directory):
    """Of a program that nobody of ours has started."""
    its = {**stage.environment, "CUDA_MPS_PIPE_DIRECTORY": pipe_directory}
    if its["FIREBREAK_GPU"] == "soft":
        its["FIREBREAK_CUDA_LIBRARY"] = stage.programs + "/../lib/softgpu/libcuda.so.1"
        its["FIREBREAK_SOFTGPU_DIR"] = stage.folder + "/softgpu"
    return its


def start_bystander(stage):
    return subprocess.Popen([stage.programs + "/firebreak-checker", "--until", stage.until, "--stalls", "5"],
                            env=strangers_environment(stage, stage.until + ".no-mps"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def raise_fault(stage, kind):
    """By a stranger in the domain of the two; they are in one."""
    before = stage.wait(lambda status: stage.is_ready(status) and len(
        {each["active"]["domain"] for each in status["tenants"] if each["name"] in IDLE}) == 1, 30)
    row = {"kind": kind, "ready": before is not None}
    if before is None:
        return {**row, "status": stage.status()}
    domain = next(each["active"]["domain"] for each in before["tenants"] if each["name"] in IDLE)
    pipe_directory = stage.folder + "/" + domain + "/pipe"
    row["domain"] = domain
    rogue = subprocess.Popen([stage.programs + "/firebreak-lab", "inject", "--wait", kind], text=True,
                             env=strangers_environment(stage, pipe_directory),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if "prepared" not in rogue.stdout.readline():
        rogue.kill()
        return {**row, "ready": False, "why": "the rogue did not prepare its fault"}
    row["raised_ns"] = time.monotonic_ns()
    rogue.stdin.write("go\n")
    rogue.stdin.flush()
    try:
        rogue.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        rogue.kill()
    row["rogue_gone_ns"] = time.monotonic_ns()
    time.sleep(2 * PAUSE_MS / 1e3)
    after = {each["name"]: each for each in (stage.status() or {"tenants": []})["tenants"]}
    row["left"] = sum(1 for name in IDLE if (after.get(name) or {}).get("active")
                      and after[name]["active"]["domain"] != domain)
    return row


def note_steps(row, steps, bystander):
    """Of the two: the first step that began after the rogue was told to. Of the bystander: the longest that was under
    way within 3 s."""
    raised = row["raised_ns"]
    near = [(began, ms) for began, ms in bystander if began + ms * 1e6 > raised and began < raised + 3e9]
    still = max(near, key=lambda each: each[1], default=(raised, 0))
    row["gpu_stood_still_ms"] = round(still[1], 1)
    runs_again_ns = still[0] + still[1] * 1e6 if near else raised
    row["steps"] = {}
    for name in IDLE:
        under_way = [each for each in steps[name] if each[0] < runs_again_ns < each[0] + each[1] * 1e6]
        first = next((each for each in steps[name] if each[0] + each[1] * 1e6 > raised and each[0] > raised), None)
        row["steps"][name] = {"under_way": bool(under_way), "ms": first[1] if first else None,
                              "began_after_ms": round((first[0] - raised) / 1e6, 1) if first else None}


def sum_up(faults):
    figures = {}
    for kind in sorted({row["kind"] for row in faults}):
        rows = [row for row in faults if row["kind"] == kind and "steps" in row]
        idle = [its["ms"] for row in rows for its in row["steps"].values()
                if its["ms"] is not None and not its["under_way"]]
        still = [row["gpu_stood_still_ms"] for row in rows]
        figures[kind] = {"faults": len(rows), "steps_of_idle": len(idle),
                         "step_ms_p50": spare_faults.percentile(idle, 0.5), "step_ms_most": max(idle, default=None),
                         "gpu_stood_still_ms_p50": spare_faults.percentile(still, 0.5),
                         "gpu_stood_still_ms_most": max(still, default=None)}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=8)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--log", type=pathlib.Path, help="keeps the agent's log there")
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    with tempfile.TemporaryDirectory(prefix="fb-sd-") as folder:
        stage = spare_faults.Stage(str(arguments.programs.resolve()), folder + "/d", True)
        faults, bystander = [], None
        try:
            stage.wait(lambda status: all(each["state"] == "serving" for each in status["domains"]), 40)
            for name in IDLE:
                start_idle(stage, name)
            bystander = start_bystander(stage)
            bystander.stdout.readline()
            for number in range(arguments.faults):
                faults.append(raise_fault(stage, kinds[number % len(kinds)]))
                print(json.dumps({key: value for key, value in faults[-1].items() if key != "status"}), flush=True)
                if not faults[-1]["ready"] or any(each.poll() is not None for each in stage.tenants.values()):
                    break
        finally:
            pathlib.Path(stage.until).touch()
            try:
                lines = bystander.communicate(timeout=20)[0].splitlines() if bystander else []
            except subprocess.TimeoutExpired:
                bystander.kill()
                lines = []
            said = stage.end()
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()
            if arguments.log:
                arguments.log.write_text("\n".join(log) + "\n")
    seen_outside = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"error": "said nothing"}
    steps = {name: said[name].pop("stalls", []) for name in IDLE}
    for row in faults:
        if "raised_ns" in row:
            note_steps(row, steps, seen_outside.get("stalls", []))
    seen_outside.pop("stalls", None)
    seen = {"what": "tests/hardware/spare_dead.py", "format": 1,
            "machine": spare_faults.machine(str(arguments.programs.resolve())),
            "command": " ".join(["tests/hardware/spare_dead.py", "BIN", arguments.output.name] + sys.argv[3:]),
            "figures": sum_up(faults), "faults": faults, "said": said, "outside_of_mps": seen_outside}
    # Who was not started by us and is killed may be let run to its end: then nobody has to leave.
    good = faults and all(row["ready"] and row.get("left") in (0, len(IDLE)) for row in faults) and all(
        each["exit"] == 0 and each.get("wrong_words") == 0 for each in said.values())
    if not good:
        seen["log"] = log[-120:]
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({"figures": seen["figures"], "said": said, "outside": seen_outside}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
