#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Domains that die under work: a stranger's kernel faults while unmodified programs compute, and nobody parks. What was under
way is done again in the next instance where that is proved; else the program gets the driver's error, and its page has
the reason. For a machine with a GPU, root and MPS; some six seconds a fault.

    tests/hardware/redo_faults.py BIN RESULT.json [--seconds N] [--marks-us N] [--kinds KIND,...]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. Four programs: `long` and `full` (firebreak-checker
with kernels of some 20 ms in one block, and such that fill the GPU), and two with random work in two streams
(firebreak-redo-checker: kernels, copies, fills, waits, whose outcome its seed alone says). One that has got the error is
started again. --marks-us: how far marks in a stream are apart (FIREBREAK_SPARE_REDO).
Exit 1 where a word was wrong, or nobody went on with work done again. Ends everything that it started."""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import spare_dead
import spare_faults

KINDS = "trap,misaligned-load,illegal-instruction,unmapped-store-far"


def commands(stage):
    checker = [stage.programs + "/firebreak-checker", "--until", stage.until]
    random_work = [stage.programs + "/firebreak-redo-checker", stage.until, "60"]
    is_soft = stage.environment["FIREBREAK_GPU"] == "soft"
    return {"long": checker + ["--rounds", "20000" if is_soft else "2000000"],
            "full": checker + ["--blocks", "4" if is_soft else "264", "--rounds", "2000" if is_soft else "200000"],
            "random1": random_work, "random2": random_work}


class Programs:
    """Those that compute, each started again where it has ended."""

    def __init__(self, stage):
        self.stage, self.commands, self.said = stage, commands(stage), []
        for name in self.commands:
            self.start(name)

    def start(self, name):
        process = self.stage.run(name, self.commands[name], *self.stage.options)
        self.stage.tenants[name] = process
        return process.stdout.readline().strip()

    def note(self, name, process):
        try:
            lines = process.communicate(timeout=30)[0].strip().splitlines()
            its = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"error": "said nothing"}
        except subprocess.TimeoutExpired:
            process.kill()
            its = {"error": "did not end"}
        its.pop("stalls", None)
        self.said.append({"name": name, "exit": process.returncode, **its})

    def look(self):
        """Who has ended: with an error, since nobody said that it is over."""
        gone = [name for name, process in self.stage.tenants.items() if process.poll() is not None]
        for name in gone:
            self.note(name, self.stage.tenants[name])
        return gone

    def end(self):
        pathlib.Path(self.stage.until).touch()
        for name, process in self.stage.tenants.items():
            self.note(name, process)
        self.stage.tenants.clear()


def spare_of(status, name):
    its = next((each for each in status["tenants"] if each["name"] == name), None)
    return (its or {}).get("spare") or {}


def raise_fault(stage, programs, number, kind):
    """In the domain of the first; whoever is in the other one is not hit."""
    before = stage.wait(lambda status: all(each["state"] == "serving" for each in status["domains"]) and all(
        spare_of(status, name).get("state") == "protected" for name in stage.tenants), 40)
    row = {"number": number, "kind": kind, "ready": before is not None}
    if before is None:
        return {**row, "status": stage.status()}
    domains = {each["name"]: each["active"]["domain"] for each in before["tenants"] if each["active"]}
    domain = domains[list(stage.tenants)[number % len(stage.tenants)]]
    hit = [name for name in stage.tenants if domains.get(name) == domain]
    rogue = subprocess.Popen([stage.programs + "/firebreak-lab", "inject", "--wait", kind], text=True,
                             env=spare_dead.strangers_environment(stage, stage.folder + "/" + domain + "/pipe"),
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if "prepared" not in rogue.stdout.readline():
        rogue.kill()
        return {**row, "ready": False, "why": "the rogue did not prepare its fault"}
    raised = time.monotonic()
    rogue.stdin.write("go\n")
    rogue.stdin.flush()
    try:
        rogue.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        rogue.kill()
        row["rogue"] = "killed after 20 s"
    row["rogue_ms"] = round((time.monotonic() - raised) * 1e3)
    row.update({"domain": domain, "hit": hit, "outcome": {}})
    end = time.monotonic() + 15
    while set(row["outcome"]) != set(hit) and time.monotonic() < end:
        gone = programs.look()
        after = stage.status() or {"tenants": []}
        now = {each["name"]: each["active"]["domain"] for each in after["tenants"] if each["active"]}
        for name in hit:
            if name in row["outcome"]:
                continue
            if name in gone:
                row["outcome"][name] = "error"
            elif now.get(name, domain) != domain:
                redone = spare_of(after, name).get("redone", 0) - spare_of(before, name).get("redone", 0)
                row["outcome"][name] = redone
        for name in gone:
            programs.start(name)
        time.sleep(0.1)
    return row


def sum_up(faults, said, log):
    outcomes = [(name, what) for row in faults for name, what in row.get("outcome", {}).items()]
    counts = collections.Counter()
    for name, what in outcomes:
        counts[name, "error" if what == "error" else "done again" if what > 0 else "nothing under way"] += 1
    reasons = collections.Counter(re.sub(r"0x[0-9a-f]+|\d+", "N", each) for each in re.findall(
        r"died with (work of this process under way: .*?)\"?$", "\n".join(log), re.M))
    return {"faults": len([row for row in faults if row["ready"]]), "programs_hit": len(outcomes),
            "by_program": {f"{name}, {what}": count for (name, what), count in sorted(counts.items())},
            "went_on_with_work_done_again": sum(1 for _, what in outcomes if what != "error" and what > 0),
            "went_on_with_nothing_under_way": sum(1 for _, what in outcomes if what == 0),
            "got_the_error": sum(1 for _, what in outcomes if what == "error"),
            "operations_done_again_or_first": sum(what for _, what in outcomes if what != "error"),
            "reasons": dict(reasons.most_common()),
            "results_compared": sum(each.get("launches", 0) + each.get("runs", 0) for each in said),
            "wrong": sum(each.get("wrong_words", 0) + each.get("wrong", 0) for each in said)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--marks-us", type=int, default=100)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--log", type=pathlib.Path, help="keeps the agent's log there")
    arguments = parser.parse_args()
    kinds = arguments.kinds.split(",")
    with tempfile.TemporaryDirectory(prefix="fb-rf-") as folder:
        stage = spare_faults.Stage(str(arguments.programs.resolve()), folder + "/d", True)
        stage.environment["FIREBREAK_SPARE_REDO"] = str(arguments.marks_us)
        stage.environment["FIREBREAK_WITHOUT"] = "guard,spare,parking"  # who can park has its work end first
        faults, programs = [], None
        end = time.monotonic() + arguments.seconds
        try:
            stage.wait(lambda status: all(each["state"] == "serving" for each in status["domains"]), 40)
            programs = Programs(stage)
            while time.monotonic() < end:
                faults.append(raise_fault(stage, programs, len(faults), kinds[len(faults) % len(kinds)]))
                print(json.dumps({key: value for key, value in faults[-1].items() if key != "status"}), flush=True)
                if not faults[-1]["ready"]:
                    break
        finally:
            if programs:
                programs.end()
            stage.end()
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()
            if arguments.log:
                arguments.log.write_text("\n".join(log) + "\n")
    said = programs.said
    figures = sum_up(faults, said, log)
    seen = {"what": "tests/hardware/redo_faults.py", "format": 1,
            "machine": spare_faults.machine(str(arguments.programs.resolve())),
            "command": " ".join(["tests/hardware/redo_faults.py", "BIN", arguments.output.name] + sys.argv[3:]),
            "figures": figures, "faults": faults, "said": said}
    good = figures["wrong"] == 0 and figures["went_on_with_work_done_again"] > 0
    if not good or not all(row["ready"] for row in faults):
        seen["log"] = log[-120:]
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps(figures, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
