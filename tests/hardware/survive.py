#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays any program beside neighbours whose kernels raise exceptions, one after another, and prints one line a fault:
whether `firebreak status` had said that it would be survived, and whether it was. For a machine with a GPU, root and
MPS; some four seconds a fault.

    tests/hardware/survive.py BIN [--faults N] [--kinds KIND,...] [--result RESULT.json] -- PROGRAM [ARGUMENT...]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. RESULT.json gets this program besides those that it
has. The program has to work for as long as the faults come; its output is its own. One that has ended is started anew.
Some programs that people run are in ordinary_programs.py; they end with 3 where a result was wrong.
Exit 1 where a fault was not survived, or `status` was wrong about one. Ends everything that it started."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from spare_faults import KINDS, Stage, machine, raise_in

NAME = "program"
PASSES = ("takes nobody yet", "is being made", "was not there yet")  # reasons of a program that will have a spare


def tenant_of(status):
    return next((each for each in (status or {"tenants": []})["tenants"] if each["name"] == NAME), {})


def start(stage, command, output):
    environment = stage.environment | {"FIREBREAK_WITHOUT": ""}
    return subprocess.Popen([stage.programs + "/firebreak", "run", "--name", NAME, "--", *command], env=environment,
                            stdout=output)


def is_settled(status):
    """It works, in a domain that can be parked, and has a spare or says why not."""
    spare = tenant_of(status).get("spare") or {}
    parked = all(each["parking"]["state"] == "ready" for each in status["domains"])
    reason = spare.get("reason", "")
    has_reason = bool(reason) and not any(each in reason for each in PASSES)
    return parked and (spare.get("state") == "protected" or has_reason)


def play(stage, program, number, kind, settle_s):
    """One fault, in the domain where the program is. None: it came to no GPU."""
    stage.wait(lambda status: is_settled(status) or program.poll() is not None, settle_s)
    before = tenant_of(stage.status())
    if program.poll() is not None or not before.get("active"):
        return None
    spare, domain = before.get("spare") or {}, before["active"]["domain"]
    row = {"kind": kind, "domain": domain, "said": spare.get("state", "no spare"), "reason": spare.get("reason", "")}
    raised = raise_in(stage, f"neighbour{number}", kind, domain)
    if raised is None:
        return None
    row |= raised
    has_left = lambda status: program.poll() is not None or (tenant_of(status).get("spare") or {}).get(
        "moves", 0) > spare.get("moves", 0)
    row["left"] = stage.wait(has_left, 20) is not None and program.poll() is None
    time.sleep(1)  # one that is lost has its error by then, or stands still and has not left
    row["lived"] = row["left"] and program.poll() is None
    row["status_was_right"] = (row["said"] == "protected") == row["lived"]
    return row


def write(result, given, played):
    seen = json.loads(result.read_text()) if result.exists() else {
        "what": "tests/hardware/survive.py", "machine": machine(given.programs),
        "command": f"tests/hardware/survive.py BIN --faults {given.faults} --result {result.name} -- PROGRAM",
        "programs": []}
    seen["programs"].append(played)
    result.write_text(json.dumps(seen, indent=1) + "\n", encoding="utf-8")


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("programs")
    asked.add_argument("--faults", type=int, default=10)
    asked.add_argument("--kinds", default=KINDS)
    asked.add_argument("--settle-s", type=float, default=60)
    asked.add_argument("--result")
    asked.add_argument("command", nargs="+")
    given = asked.parse_args()
    kinds, rows = given.kinds.split(","), []
    with tempfile.TemporaryDirectory(prefix="fbs.", dir="/tmp") as folder:
        stage = Stage(str(pathlib.Path(given.programs).resolve()), folder + "/d", with_spares=True, guarded=True)
        output = open(folder + "/output", "w+", encoding="utf-8", errors="replace")
        try:
            stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 60)
            program = start(stage, given.command, output)
            for number in range(given.faults):
                if program.poll() is not None:
                    program = start(stage, given.command, output)
                row = play(stage, program, number, kinds[number % len(kinds)], given.settle_s)
                if row is None:
                    print(f"fault {number}: the program came to no GPU, or ended by itself ({program.poll()})", flush=True)
                    break
                rows.append(row)
                what = "lived" if row["lived"] else "LOST"
                why = f" ({row['reason']})" if row["reason"] else ""
                wrong = "" if row["status_was_right"] else ", and status was WRONG"
                print(f"fault {number}: {row['kind']} in {row['domain']}: {what}; status had said {row['said']}{why}{wrong}",
                      flush=True)
            is_there = program.poll() is None
            program.terminate()
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
            status = program.returncode if is_there else "ended before"
            output.seek(0)
            said = output.read().splitlines()
            print("\n".join(said), flush=True)
        finally:
            stage.end()
    lived = sum(row["lived"] for row in rows)
    wrong = sum(not row["status_was_right"] for row in rows)
    print(f"lived through {lived} of {len(rows)} faults; status was wrong about {wrong}")
    if given.result:
        write(pathlib.Path(given.result), given, {"command": given.command, "end": status, "said": said[-1:], "lived": lived,
                                                  "status_was_wrong": wrong, "faults": rows})
    return 0 if len(rows) == given.faults and lived == len(rows) and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
