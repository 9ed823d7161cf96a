#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs that rest: `firebreak suspend` and `firebreak resume`, again and again, in the three depths; each
program compares every word of every result. For a machine with a GPU, root and MPS; some three minutes.

    tests/hardware/rest.py BIN RESULT.json [--rests N] [--tenants NAME,...] [--gib N] [--daemons-anew]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. Tenants: small (firebreak-checker), torch
(steps_torch.py), torch_large (PyTorch with --gib GiB of memory, whose sum it compares at the end). --daemons-anew, for
one tenant alone, since others would end with them: ends the agent's MPS daemons by their process ids while it rests, once
for each depth, and waits until they serve again.
Exit 1 where a program ended, a word was wrong, somebody did not rest or come back, or had a descriptor or a mapping of
the GPU while it rested without its memory, but for NVML's descriptors. Ends everything that it started."""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

import spare_faults

DEPTHS = {"still": ["--still"], "without contexts": ["--keep-memory"], "without memory": []}
LARGE = """
import json, os, sys, time, torch
until, gib = sys.argv[1], float(sys.argv[2])
words = torch.arange(int(gib * (1 << 28)), device="cuda", dtype=torch.int32)
total, part = int(words.sum(dtype=torch.int64)), words[: 1 << 28]
pinned = torch.empty(part.numel(), dtype=torch.int32, pin_memory=True)
for _ in range(2):
    torch.cuda.synchronize(); began = time.monotonic(); pinned.copy_(part); torch.cuda.synchronize()
    rate = part.numel() * 4 / (time.monotonic() - began) / 1e9
del pinned
print("working", flush=True)
steps = wrong = 0
while not os.path.exists(until):
    wrong += int(words.sum(dtype=torch.int64)) != total
    steps += 1
print(json.dumps({"steps": steps, "wrong": wrong, "pinned_copy_gb_s": round(rate, 1)}))
"""


def of_gpu(pid):
    """Descriptors and mappings of the GPU that the process has, by their names. The software GPU's are memory files."""
    found = collections.Counter()
    is_its = lambda name: name.startswith("/dev/nvidia") or "cuda.shm" in name or "/memfd:nvidia" in name
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            if is_its(os.readlink(fd)):
                found["descriptor " + os.readlink(fd)] += 1
        except OSError:
            pass
    for line in pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        name = line.split(None, 5)[5] if len(line.split(None, 5)) > 5 else ""
        if is_its(name):
            found["mapping " + name] += 1
    return dict(sorted(found.items()))


def gpu_memory_of(pid):
    asked = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return sum(int(line.split(",")[1]) for line in asked.splitlines() if line.split(",")[0].strip() == str(pid))


class Rests:
    def __init__(self, stage):
        self.stage = stage

    def tenant(self, name, status=None):
        status = status or self.stage.status() or {"tenants": []}
        return next((each for each in status["tenants"] if each["name"] == name), None)

    def ask(self, verb, name, *options):
        begin = time.monotonic()
        done = subprocess.run([self.stage.programs + "/firebreak", verb, name, *options], env=self.stage.environment,
                              capture_output=True, text=True, timeout=180, check=False)
        said = (done.stdout + done.stderr).strip()
        exact = re.search(r"after ([0-9.]+) ms", said)
        return {"done": done.returncode == 0, "said": said[-300:],
                "ms": float(exact.group(1)) if exact else round((time.monotonic() - begin) * 1e3, 1)}

    def is_protected(self, name):
        is_so = lambda status: ((self.tenant(name, status) or {}).get("spare") or {}).get("state") == "protected"
        return self.stage.wait(is_so, 60) is not None

    def replace_daemons(self):
        """Where a daemon ends the agent starts the next one."""
        before = self.stage.status()
        for each in before["domains"] + before["anchors"]:
            os.kill(each["daemon_pid"], signal.SIGKILL)
        pids = {each["daemon_pid"] for each in before["domains"] + before["anchors"]}
        serves = lambda status: all(each["state"] == "serving" and each["daemon_pid"] not in pids
                                    for each in status["domains"] + status["anchors"])
        return self.stage.wait(serves, 60) is not None

    def once(self, name, depth, daemons_anew):
        row = {"tenant": name, "depth": depth, "protected": self.is_protected(name)}
        if not row["protected"]:
            return row | {"status": self.tenant(name)}
        row["suspend"] = self.ask("suspend", name, *DEPTHS[depth])
        if not row["suspend"]["done"]:
            return row
        pid = self.tenant(name)["active"]["pid"]
        row["of_gpu"] = of_gpu(pid)
        row["has_nvml"] = "libnvidia-ml.so" in pathlib.Path(f"/proc/{pid}/maps").read_text(errors="replace")
        row["gpu_memory_mib"] = gpu_memory_of(pid) if self.stage.environment["FIREBREAK_GPU"] == "real" else None
        time.sleep(0.3)
        spare = self.tenant(name)["spare"]
        row["rest"], row["host_mib"] = spare["rest"], spare["rest_host_bytes"] >> 20
        if daemons_anew and depth != "still":
            row["daemons_anew"] = self.replace_daemons()
        row["resume"] = self.ask("resume", name)
        time.sleep(0.5)
        return row


def machine():
    asked = subprocess.run("nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null", shell=True,
                           text=True, stdout=subprocess.PIPE, check=False).stdout.strip()
    name, _, driver = asked.partition(", ")
    return {"gpu": name, "driver": driver, "linux": os.uname().release,
            "commit": os.environ.get("FIREBREAK_COMMIT", "unknown"), "date": datetime.date.today().isoformat()}


def left_of_driver(row):
    """What it has of the GPU that is not NVML's. NVML, which PyTorch opens, has at most these open and maps none (driver 580)."""
    nvml = {"/dev/nvidiactl": 1, "/dev/nvidia0": 3, "/dev/nvidia-uvm": 2, "/dev/nvidia-caps/nvidia-cap1": 1,
            "/dev/nvidia-caps/nvidia-cap2": 1}
    may_have = nvml if row.get("has_nvml") else {}
    return [name for name, count in row.get("of_gpu", {}).items()
            if count > may_have.get(name.removeprefix("descriptor "), 0)]


def is_right(row):
    nothing_left = row.get("depth") != "without memory" or not left_of_driver(row)
    return (row.get("suspend", {}).get("done") and row.get("resume", {}).get("done") and nothing_left
            and row.get("daemons_anew", True))


def summed_up(rows):
    figures = {}
    for name, depth in sorted({(row["tenant"], row["depth"]) for row in rows}):
        its = [row for row in rows if (row["tenant"], row["depth"]) == (name, depth) and is_right(row)]
        figures[f"{name}, {depth}"] = {
            "rests": len(its),
            "suspend_ms_p50": spare_faults.percentile([row["suspend"]["ms"] for row in its], 0.5),
            "suspend_ms_most": max((row["suspend"]["ms"] for row in its), default=None),
            "resume_ms_p50": spare_faults.percentile([row["resume"]["ms"] for row in its], 0.5),
            "resume_ms_most": max((row["resume"]["ms"] for row in its), default=None),
            "host_mib": max((row["host_mib"] for row in its), default=None)}
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--rests", type=int, default=3, help="of each tenant in each depth")
    parser.add_argument("--tenants", default="small,torch,torch_large")
    parser.add_argument("--gib", default="4")
    parser.add_argument("--daemons-anew", action="store_true")
    arguments = parser.parse_args()
    if arguments.daemons_anew and "," in arguments.tenants:
        parser.error("--daemons-anew ends whoever does not rest: name one tenant")
    rows = []
    with tempfile.TemporaryDirectory(prefix="firebreak-rest-") as folder:
        stage = spare_faults.Stage(str(arguments.programs.resolve()), folder + "/agent", True)
        rests, begun = Rests(stage), {}
        stage.wait(lambda status: all(each["state"] == "serving" for each in status["domains"]), 60)
        names = arguments.tenants.split(",")
        try:
            for name in names:
                if name == "torch_large":
                    process = stage.run(name, [sys.executable, "-c", LARGE, stage.until, arguments.gib], *stage.options)
                    begun[name] = {"said": process.stdout.readline().strip()}
                    stage.tenants[name] = process
                else:
                    begun[name] = stage.start(name)
            for number in range(arguments.rests):
                for depth in DEPTHS:
                    for name in names:
                        rows.append(rests.once(name, depth, arguments.daemons_anew and number == 0))
                        print(json.dumps(rows[-1])[:240], flush=True)
        finally:
            said = stage.end()
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()[-60:]
    wrong = [name for name, each in said.items()
             if each.get("wrong_words", each.get("wrong", 1)) or each.get("exit")]
    seen = {"what": "tests/hardware/rest.py", "format": 1, "machine": machine(),
            "command": " ".join(["tests/hardware/rest.py", "BIN", arguments.output.name] + sys.argv[3:]),
            "figures": summed_up(rows), "wrong": wrong, "begun": begun, "said": said, "rests": rows,
            "log": log if wrong or not all(map(is_right, rows)) else []}
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({"figures": seen["figures"], "wrong": wrong, "said": said}, indent=1))
    return 1 if wrong or not rows or not all(map(is_right, rows)) else 0


if __name__ == "__main__":
    sys.exit(main())
