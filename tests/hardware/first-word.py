# SPDX-License-Identifier: Apache-2.0
"""The measurement of first-word.sh: fresh MPS domains, clients in them, one SM fault, the kernel log's Xids."""
import json
import os
import queue
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

BASE = {"kind": "misaligned-load", "a": 1, "b": 2, "none": 0, "work": "once", "streams": 1, "contexts": 1, "dead": 0, "reset": False}
VARIED = (
    [{"a": n} for n in (0, 2, 4, 8)]
    + [{"b": n} for n in (0, 1, 4, 8)]
    + [{"none": n} for n in (1, 2, 4)]
    + [{"work": "none"}, {"work": "busy"}]
    + [{"streams": n} for n in (8, 32)]
    + [{"contexts": n} for n in (2, 4)]
    + [{"dead": n} for n in (1, 2, 4, 6)]
    + [{"dead": 4, "reset": True}, {"kind": "trap"}]
)
ARRANGEMENTS = [BASE] + [{**BASE, **change} for change in VARIED]
PATIENCE_S = 30
SETTLE_S = 0.3


class Part:
    """A process that is told lines and says lines."""

    def __init__(self, command, environment):
        self.said = queue.Queue()
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.said.put(line.split())
        self.said.put(None)

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait_for(self, word, patience_s=PATIENCE_S):
        end = time.monotonic() + patience_s
        while True:
            try:
                words = self.said.get(timeout=max(end - time.monotonic(), 0.001))
            except queue.Empty:
                raise RuntimeError(f"'{word}' was not said in {patience_s} s") from None
            if words is None:
                raise RuntimeError(f"it ended before it said '{word}'")
            if words and words[0] == word:
                return words[1:]

    def end(self):
        """Asks; who does not end is killed by end_all."""
        try:
            self.process.stdin.close()
        except OSError:
            pass


def end_all(parts):
    """How long the last one took to be gone after it was killed."""
    began = time.monotonic()
    for part in parts:
        if part.process.poll() is None:
            os.killpg(part.process.pid, signal.SIGKILL)
    for part in parts:
        part.process.wait(timeout=60)
    return time.monotonic() - began


class Domain:
    """An MPS daemon of its own, and who is in it."""

    def __init__(self, name, scratch, environment):
        self.pipe = f"{scratch}/{name}"
        os.makedirs(self.pipe)
        self.environment = {**environment, "CUDA_MPS_PIPE_DIRECTORY": self.pipe, "CUDA_MPS_LOG_DIRECTORY": self.pipe}
        with open(f"{self.pipe}/output", "w") as output:
            self.daemon = subprocess.Popen(
                ["nvidia-cuda-mps-control", "-f"], env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        end = time.monotonic() + PATIENCE_S
        while not self.control("get_server_list"):
            if time.monotonic() > end:
                raise RuntimeError("the MPS daemon does not answer")

    def control(self, command):
        try:
            run = subprocess.run(["nvidia-cuda-mps-control"], env=self.environment, input=command + "\n", capture_output=True, text=True, timeout=5)
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0 and "Cannot find" not in run.stdout

    def end(self):
        self.control("quit -t 1")
        try:
            self.daemon.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.daemon.pid, signal.SIGKILL)
            self.daemon.wait()
        shutil.rmtree(self.pipe, ignore_errors=True)


class Measurement:
    def __init__(self, programs):
        self.programs = programs
        self.scratch = tempfile.mkdtemp(prefix="fbw.", dir="/tmp")
        self.environment = dict(os.environ)
        if self.environment["FIREBREAK_GPU"] == "soft":
            self.environment["PATH"] = f"{programs}/softgpu:" + self.environment["PATH"]
            self.environment["LD_LIBRARY_PATH"] = f"{programs}/../lib/softgpu"
            self.environment["FIREBREAK_SOFTGPU_DIR"] = f"{self.scratch}/softgpu"
        os.environ["PATH"] = self.environment["PATH"]  # where Popen looks for MPS
        self.listener = Part([f"{programs}/first_word_part", "listen"], self.environment)
        self.listener.wait_for("listening")

    def end(self):
        end_all([self.listener])
        shutil.rmtree(self.scratch, ignore_errors=True)

    def client(self, environment, how):
        wish = [f"{name}={how[name]}" for name in ("contexts", "streams", "work")]
        return Part([f"{self.programs}/first_word_part", "client", *wish], environment)

    def faulter(self, environment, kind):
        return Part([f"{self.programs}/firebreak-lab", "inject", "--wait", kind], environment)

    def fault(self, faulter):
        """Milliseconds from the launch: until each Xid was read, and until the kernel log's own time of it."""
        while not self.listener.said.empty():
            self.listener.said.get()
        faulter.tell("go")
        heard = {}
        while not {13, 43} <= heard.keys():
            try:
                number, read_ns, log_us = (int(word) for word in self.listener.wait_for("xid", 3))
            except RuntimeError:
                break
            heard.setdefault(number, (read_ns, log_us * 1000))
        raised = int(faulter.wait_for("raised")[0])
        return {f"xid{number}": [round((at - raised) / 1e6, 3) for at in times] for number, times in heard.items()}

    def leave_dead(self, domain, how):
        """Clients whose contexts a fault of their domain has ended, and who do not know."""
        clients = [self.client(domain.environment, {**how, "contexts": 1, "streams": 1, "work": "once"}) for _ in range(how["dead"])]
        faulter = self.faulter(domain.environment, "misaligned-load")
        for each in clients:
            each.wait_for("ready")
        faulter.wait_for("prepared")
        self.fault(faulter)
        faulter.process.wait(timeout=PATIENCE_S)
        for each in clients if how["reset"] else []:
            each.tell("reset")
            each.wait_for("reset")
        return clients

    def run(self, how):
        parts, domains = [], []
        try:
            a = Domain("a", self.scratch, self.environment)
            domains.append(a)
            environments = [a.environment] * how["a"]
            if how["b"]:
                domains.append(Domain("b", self.scratch, self.environment))
                environments += [domains[-1].environment] * how["b"]
            environments += [{**self.environment, "CUDA_MPS_PIPE_DIRECTORY": "/nonexistent"}] * how["none"]
            parts += [self.client(environment, how) for environment in environments]
            faulter = self.faulter(a.environment, how["kind"])
            parts.append(faulter)
            for each in parts[:-1]:
                each.wait_for("ready")
            faulter.wait_for("prepared")
            if how["dead"]:
                domains.append(Domain("c", self.scratch, self.environment))
                parts += self.leave_dead(domains[-1], how)
            time.sleep(SETTLE_S)
            measured = self.fault(faulter)
            return {**measured, "all_ended_s": round(end_all(parts), 3)}
        finally:
            end_all(parts)
            for domain in domains:
                domain.end()


def terms_of(how):
    """What the law may be made of, by name; the faulter itself is in "constant"."""
    clients = how["a"] + how["b"] + how["none"]
    contexts = clients * how["contexts"]
    return {
        "constant": 1,
        "context_in_its_domain": how["a"] * how["contexts"],
        "context_in_the_other": how["b"] * how["contexts"],
        "context_without_mps": how["none"] * how["contexts"],
        "further_stream": contexts * (how["streams"] - 1),
        "busy_context": contexts if how["work"] == "busy" else 0,
        "context_that_launched_nothing": contexts if how["work"] == "none" else 0,
        "dead_context": 0 if how["reset"] else how["dead"],
        "dead_context_that_was_reset": how["dead"] if how["reset"] else 0,
        "trap": 1 if how["kind"] == "trap" else 0,
    }


def solve(matrix, right):
    """Gauss, with pivots; a column without any gets 0."""
    size = len(right)
    rows = [list(row) + [value] for row, value in zip(matrix, right)]
    done = []
    for column in range(size):
        pivot = max((row for row in rows if not any(row is other for _, other in done)), key=lambda row: abs(row[column]), default=None)
        if pivot is None or abs(pivot[column]) < 1e-9:
            continue
        for row in rows:
            if row is not pivot:
                factor = row[column] / pivot[column]
                for i in range(size + 1):
                    row[i] -= factor * pivot[i]
        done.append((column, pivot))
    answer = [0.0] * size
    for column, pivot in done:
        answer[column] = pivot[-1] / pivot[column]
    return answer


def fit(runs, which):
    """Least squares over the runs that heard it."""
    points = [(terms_of(run["how"]), run[which][0]) for run in runs if which in run]
    if not points:
        return None
    names = list(points[0][0])
    vectors = [[terms[name] for name in names] for terms, _ in points]
    matrix = [[sum(v[i] * v[j] for v in vectors) for j in range(len(names))] for i in range(len(names))]
    right = [sum(v[i] * y for v, (_, y) in zip(vectors, points)) for i in range(len(names))]
    law = solve(matrix, right)
    residuals = [y - sum(c * x for c, x in zip(law, v)) for v, (_, y) in zip(vectors, points)]
    return {"ms": {name: round(c, 3) for name, c in zip(names, law)}, "residual_ms": round(statistics.pstdev(residuals), 3), "runs": len(points)}


def spread(values):
    return {"n": len(values), "min": min(values), "median": round(statistics.median(values), 3), "max": max(values)} if values else {"n": 0}


def summarize(runs):
    rows = []
    for how in ARRANGEMENTS:
        of_it = [run for run in runs if run["how"] == how]
        row = {"varied": {name: value for name, value in how.items() if value != BASE[name]}}
        for which in ("xid13", "xid43"):
            row[which + "_ms"] = spread([run[which][0] for run in of_it if which in run])
        row["all_ended_s"] = spread([run["all_ended_s"] for run in of_it if "all_ended_s" in run])
        rows.append(row)
    return rows


def measure(programs, limit_s, rounds, seed):
    measurement, runs, longest = Measurement(programs), [], 0.0
    order, began = random.Random(seed), time.monotonic()
    try:
        for number in range(rounds):
            for how in order.sample(ARRANGEMENTS, len(ARRANGEMENTS)):
                start = time.monotonic()
                if start - began + longest > limit_s:
                    return runs
                try:
                    outcome = measurement.run(how)
                except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
                    outcome = {"problem": str(problem)}
                longest = max(longest, time.monotonic() - start)
                runs.append({"round": number + 1, "how": how, **outcome})
                print(json.dumps(runs[-1]), flush=True)
        return runs
    finally:
        measurement.end()


def main():
    programs, result, machine = sys.argv[1:4]
    settings = {name: int(os.environ[name]) for name in ("LIMIT_S", "ROUNDS", "SEED")}
    runs = measure(programs, settings["LIMIT_S"], settings["ROUNDS"], settings["SEED"])
    summary = {
        "what": "tests/hardware/first-word.sh",
        "format": 1,
        "machine": json.loads(machine),
        "command": " ".join(f"{name}={value}" for name, value in settings.items()) + " tests/hardware/first-word.sh BIN first-word.json",
        "unit": "milliseconds from the faulting launch until the Xid was read from the kernel log; in the runs also by that log's own clock",
        "base": BASE,
        "arrangements": summarize(runs),
        "law": {which: fit(runs, which) for which in ("xid13", "xid43")},
        "runs": runs,
    }
    with open(result, "w") as file:
        json.dump(summary, file, indent=1)
        file.write("\n")
    print(json.dumps(summary["law"], indent=1))
    heard = sum("xid13" in run or "xid43" in run for run in runs)  # a trap has no 13
    print(f"{heard} of {len(runs)} runs heard an Xid")
    sys.exit(0 if runs and heard == len(runs) else 1)


main()
