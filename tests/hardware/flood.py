#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pairs of one user on one GPU while another user floods the agent, whose faults are on a second GPU: how long the
steps of the first take, beside nobody, beside the flood and beside somebody who computes as much as the flood did, in
turns; how soon standbys go on; whether anything was lost. As firebreak_flood, but on GPUs. For a machine with two GPUs,
root and MPS; or on the software GPU, as root.

    tests/hardware/flood.py BIN RESULT.json [--rounds N] [--seconds S] [--faults N]

BIN: the folder with the programs (firebreak_flooder among them); the users have to be able to read it.
FIREBREAK_GPU=soft: without GPUs. Exit 1 where something was lost. Ends everything that it started."""
import argparse
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

WORKER, FLOODER, GROUP = 1001, 1002, 2001
TURNS = ("nobody", "flood", "computing")


def spread(values):
    ordered = sorted(values)
    return {} if not ordered else {
        "count": len(ordered), "p50": statistics.median(ordered), "p99": ordered[int(len(ordered) * 0.99)],
        "min": ordered[0], "max": ordered[-1]}


class Pair:
    """One that prints its steps and takeovers, with their times."""

    def __init__(self, command, environment, log):
        self.steps, self.promoted_ns, self.resumed_ns, self.repeated = [], [], [], 0
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        last = -1
        for line in self.process.stdout:
            words = line.split()
            try:
                if words[:1] == ["step"]:
                    number, at_ns = int(words[1]), int(words[2])
                    self.repeated += number <= last
                    last = number
                    self.steps.append(at_ns)
                elif words[:1] == ["promoted"]:
                    self.promoted_ns.append(int(words[1]))
                elif words[:1] == ["resumed"]:
                    self.resumed_ns.append(int(words[1]))
            except (IndexError, ValueError):
                pass

    def step_times_ms(self, begin_ns, end_ns):
        inside = [at for at in list(self.steps) if begin_ns <= at <= end_ns]
        return [(b - a) / 1e6 for a, b in zip(inside, inside[1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--faults", type=int, default=8, help="beside each of the first two")
    parser.add_argument("--pace-ms", type=int, default=0, help="of the pair whose steps are timed")
    parser.add_argument("--pairs", type=int, default=3)
    arguments = parser.parse_args()
    programs = str(arguments.programs.resolve())
    scratch = tempfile.mkdtemp(prefix="fb-flood-", dir="/tmp")
    os.chmod(scratch, 0o755)
    real = os.environ.setdefault("FIREBREAK_GPU", "real") == "real"
    os.environ.setdefault("FIREBREAK_WITHOUT", "guard,spare")
    folder, processes = scratch + "/d", []
    environment = {**os.environ, "FIREBREAK_SOCKET": folder + "/agent.sock", "FIREBREAK_ALLOW_INJECTION": "1"}
    if real:
        said = subprocess.run(["nvidia-smi", "--query-gpu=uuid,name,driver_version", "--format=csv,noheader"],
                              capture_output=True, text=True, check=True).stdout.strip().splitlines()
        gpus, device = [line.split(", ")[0] for line in said], ", ".join(said[0].split(", ")[1:])
    else:
        os.makedirs(folder + "/softgpu")
        for path in (folder, folder + "/softgpu"):
            os.chmod(path, 0o711)
        environment["FIREBREAK_SOFTGPU_DIR"] = folder + "/softgpu"
        environment["FIREBREAK_SOFTGPU_COUNT"] = "2"
        gpus, device = [f"GPU-66697265-6272-6561-6b2d-736f66742d3{number}" for number in range(2)], "software"
    if len(gpus) < 2:
        print("two GPUs are needed", file=sys.stderr)
        return 2
    theirs = {**environment, "FIREBREAK_SOCKET": folder + "/tenants.sock"}

    def as_user(user, *command):
        return ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}", "--pdeathsig=KILL", *command]

    def status():
        try:
            return json.loads(subprocess.run([programs + "/firebreak", "status", "--json"], env=environment,
                                             capture_output=True, timeout=10, check=True).stdout)
        except (subprocess.SubprocessError, ValueError):
            return {"domains": [], "tenants": []}

    def wait(is_so, limit_s=60):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            if is_so(status()):
                return
            time.sleep(0.2)
        raise RuntimeError("it did not come to that: " + json.dumps(status())[:1500])

    def are_protected(now):
        its = [each for each in now["tenants"] if each["name"].startswith("pair-")]
        return len(its) == arguments.pairs and all(
            each.get("active") and each.get("standby") and each["standby"].get("ready", True) for each in its)

    def cpu_s(pid):
        """Of a process and its children that live."""
        total = 0.0
        for each in [pid] + [int(word) for word in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]:
            try:
                words = pathlib.Path(f"/proc/{each}/stat").read_text().rsplit(")", 1)[1].split()
                total += (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
            except OSError:
                pass
        return total

    flooded, cores = {}, [1.0]

    class Beside:
        def __init__(self, what):
            self.what, self.process = what, None
            if what == "nobody":
                return
            more = ["--burn", f"{cores[0]:.3f}"] if what == "computing" else [
                "--socket", folder + "/tenants.sock", "--programs", programs, "--gpu", gpus[1], "--victim", "pair-0"]
            self.since = time.monotonic()
            self.process = subprocess.Popen(as_user(FLOODER, programs + "/firebreak_flooder", *more), env=theirs,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
            processes.append(self.process)
            self.process.stdout.readline()
            time.sleep(1)

        def end(self):
            if self.process is None:
                return
            said, _ = self.process.communicate("", timeout=90)
            if self.what == "flood":
                done = json.loads(said.strip().splitlines()[-1])
                for name, count in done.items():
                    flooded[name] = flooded.get(name, 0) + count
                cores[0] = max(0.01, done["cpu_s"] / (time.monotonic() - self.since))

    log = open(f"{scratch}/log", "wb")
    agent = subprocess.Popen([programs + "/firebreakd", "--end-domains", "--directory", folder, "--tenant-group",
                              str(GROUP), "--gpu", gpus[0], "--gpu", gpus[1]], env=environment, stdout=log, stderr=log)
    processes.append(agent)
    seen = {turn: {"step_ms": [], "mean_ms_of_each_round": [], "agent_s": 0.0, "lasted_s": 0.0} for turn in TURNS}
    taken = {turn: [] for turn in TURNS[:2]}
    wrong, pairs = "", []
    try:
        wait(lambda now: now["domains"] and all(each["state"] == "serving" for each in now["domains"]))
        for number in range(arguments.pairs):
            pairs.append(Pair(as_user(
                WORKER, programs + "/firebreak", "run", "--pair", "--name", f"pair-{number}", "--gpu", gpus[0], "--",
                programs + "/firebreak-decode", "--steps", "1000000", "--progress", "--size",
                "medium" if real else "small", "--pace-ms",
                str(arguments.pace_ms) if number == 0 else "20"), theirs, log))
            processes.append(pairs[-1].process)
        wait(are_protected)
        for number in range(arguments.rounds):
            for turn in TURNS:
                beside = Beside(turn)
                begin_ns, cpu_before_s = time.monotonic_ns(), cpu_s(agent.pid)
                time.sleep(arguments.seconds)
                end_ns = time.monotonic_ns()
                its = seen[turn]
                its["agent_s"] += cpu_s(agent.pid) - cpu_before_s
                its["lasted_s"] += (end_ns - begin_ns) / 1e9
                steps = pairs[0].step_times_ms(begin_ns, end_ns)
                its["step_ms"] += steps
                its["mean_ms_of_each_round"].append(statistics.mean(steps))
                beside.end()
            print("round", number, {turn: round(seen[turn]["mean_ms_of_each_round"][-1], 3) for turn in TURNS},
                  flush=True)
        for turn in TURNS[:2]:
            beside = Beside(turn)
            for _ in range(arguments.faults):
                wait(are_protected)
                before = [len(each.resumed_ns) for each in pairs]
                at_ns = time.monotonic_ns()
                subprocess.run(as_user(WORKER, programs + "/firebreak-lab", "inject", "misaligned-load", "--into",
                                       "pair-0", "--socket", folder + "/tenants.sock"), env=theirs, timeout=60,
                               stdout=log, stderr=log, check=False)
                end = time.monotonic() + 20
                while time.monotonic() < end and any(len(each.resumed_ns) == was for each, was in zip(pairs, before)):
                    time.sleep(0.01)
                late = [i for i, each in enumerate(pairs) if len(each.resumed_ns) == before[i]]
                if late:
                    raise RuntimeError(f"beside {turn} pairs {late} did not go on")
                first = min(each.promoted_ns[-1] for each in pairs)
                taken[turn] += [{"ms_from_request": (each.resumed_ns[-1] - at_ns) / 1e6,
                                 "promoted_after_the_first_ms": (each.promoted_ns[-1] - first) / 1e6} for each in pairs]
            beside.end()
        if any(each.process.poll() is not None for each in pairs) or agent.poll() is not None:
            wrong = "somebody has ended"
    except (RuntimeError, OSError, ValueError, subprocess.SubprocessError, statistics.StatisticsError) as error:
        wrong = f"{type(error).__name__}: {error}"
    finally:
        for process in reversed(processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
        log.close()

    def change(turn, against):
        return statistics.median(100 * (a / b - 1) for a, b in zip(seen[turn]["mean_ms_of_each_round"],
                                                                   seen[against]["mean_ms_of_each_round"]))

    whole = all(seen[turn]["mean_ms_of_each_round"] for turn in TURNS)
    result = {
        "what": "tests/hardware/flood.py", "date": datetime.date.today().isoformat(), "gpu": device,
        "commit": os.environ.get("FIREBREAK_COMMIT", ""), "linux": os.uname().release, "cpus": os.cpu_count(),
        "command": " ".join(["tests/hardware/flood.py", "BIN", arguments.output.name] + sys.argv[3:]),
        "wrong": wrong,
        "step_change_percent": {f"{a}_against_{b}": change(a, b) for a, b in (
            ("flood", "nobody"), ("computing", "nobody"), ("flood", "computing"))} if whole else {},
        "committed_steps_repeated": sum(each.repeated for each in pairs),
        "steps": sum(len(each.steps) for each in pairs), "flood": flooded,
        "beside": {turn: {"step_ms": spread(its["step_ms"]), "step_ms_mean_of_each_round": its["mean_ms_of_each_round"],
                          "agent_percent_of_a_core": 100 * its["agent_s"] / max(its["lasted_s"], 1e-9)}
                   for turn, its in seen.items()},
        "takeovers": {turn: {key: spread([each[key] for each in its]) for key in (
            "ms_from_request", "promoted_after_the_first_ms")} for turn, its in taken.items()}}
    if wrong:
        result["log"] = pathlib.Path(f"{scratch}/log").read_text(errors="replace").splitlines()[-60:]
    arguments.output.write_text(json.dumps(result, indent=1) + "\n")
    shutil.rmtree(scratch, ignore_errors=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
