#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified programs with a spare driver instance, and neighbours whose kernels raise exceptions, one after another:
the same processes leave their domain each time, and compare every word of every result. For a machine with a GPU, root
and MPS; some four seconds a fault.

    tests/hardware/spare_faults.py BIN RESULT.json [--faults N] [--kinds KIND,...] [--tenants NAME,...] [--guarded]
                                    [--anchors N]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. Tenants: small and full (firebreak-checker with
kernels of one block, and with such that fill the GPU), torch, torch_graph and torch_segments (steps_torch.py: plain,
with a graph, with memory that it maps itself). --guarded: with all that `firebreak run -- PROGRAM` gives, guard ranges
among it, and one tenant more, which leaves its domain as the others do and goes astray at the end.
Exit 1 where a program ended, a word was wrong, somebody did not leave, the faulter's call said CUDA_SUCCESS, or an MPS
daemon ended by itself. Ends everything that it started."""
import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

KINDS = "misaligned-load,trap,shared-out-of-bounds,illegal-instruction,local-out-of-bounds,breakpoint"
HERE = pathlib.Path(__file__).resolve().parent


class Stage:
    def __init__(self, programs, folder, with_spares, guarded=False):
        self.programs, self.folder, self.with_spares = programs, folder, with_spares
        self.options = ["--spare"] if with_spares and not guarded else []
        self.environment = dict(os.environ, FIREBREAK_SOCKET=folder + "/agent.sock", FIREBREAK_LOG="info")
        self.environment.setdefault("FIREBREAK_GPU", "real")
        self.environment["FIREBREAK_WITHOUT"] = "" if guarded else "guard,spare"  # what is asked for is there
        self.log = folder + ".log"
        with open(self.log, "wb") as out:
            self.agent = subprocess.Popen(
                [programs + "/firebreakd", "--end-domains", "--directory", folder, "--park-s", "60", "--spares"],
                env=self.environment, stdout=out, stderr=out)
        self.tenants = {}
        self.until = folder + ".until"

    def status(self):
        try:
            answer = subprocess.run([self.programs + "/firebreak", "status", "--json"], env=self.environment,
                                    capture_output=True, timeout=10, check=True)
            return json.loads(answer.stdout)
        except (subprocess.SubprocessError, ValueError):
            return None

    def wait(self, is_so, limit_s):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            status = self.status()
            if status and is_so(status):
                return status
            time.sleep(0.05)
        return None

    def run(self, name, command, *options, **more):
        return subprocess.Popen([self.programs + "/firebreak", "run", "--name", name, *options, "--", *command],
                                env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                **more)

    def start(self, name):
        checker = [self.programs + "/firebreak-checker", "--until", self.until, "--stalls", "10"]
        commands = {"small": checker, "small2": checker, "full": checker + ["--blocks", "264", "--rounds", "20000"],
                    "torch": [sys.executable, str(HERE / "steps_torch.py"), self.until],
                    "torch_graph": [sys.executable, str(HERE / "steps_torch.py"), self.until, "graph"],
                    "torch_segments": ["env", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", sys.executable,
                                       str(HERE / "steps_torch.py"), self.until]}
        begin = time.monotonic()
        process = self.run(name, commands[name], *self.options)
        said = process.stdout.readline().strip()
        self.tenants[name] = process
        return {"first_result_ms": round((time.monotonic() - begin) * 1e3, 1), "said": said}

    def is_ready(self, status):
        parked = all(each["state"] == "serving" and each["parking"]["state"] == "ready" for each in status["domains"])
        its = {each["name"]: each for each in status["tenants"]}
        spares = all(its.get(name, {}).get("spare") and its[name]["spare"]["state"] == "protected"
                     for name in self.tenants) if self.with_spares else True
        return parked and spares

    def end(self):
        pathlib.Path(self.until).touch()
        said = {}
        for name, process in self.tenants.items():
            try:
                lines = process.communicate(timeout=30)[0].strip().splitlines()
                said[name] = json.loads(lines[-1]) if lines else {"error": "said nothing"}
            except (subprocess.TimeoutExpired, ValueError) as wrong:
                process.kill()
                said[name] = {"error": str(wrong)[:200]}
            said[name]["exit"] = process.returncode
        self.agent.terminate()
        try:
            self.agent.wait(20)
        except subprocess.TimeoutExpired:
            self.agent.kill()
        pathlib.Path(self.until).unlink()
        return said


def memory_used_mib():
    try:
        asked = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], text=True,
                               stdout=subprocess.PIPE, timeout=30, check=False).stdout.strip()
        return int(asked)
    except (OSError, ValueError):
        return None


def held_by(pid):
    """What a process has of the host: KiB that are its own, KiB of files and of memory that others may share, and its
    descriptors and threads."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
        sizes = dict(re.findall(r"^(RssAnon|RssFile|RssShmem|Threads):\s+(\d+)", status, re.M))
        return {"own_kib": int(sizes["RssAnon"]), "shared_kib": int(sizes["RssFile"]) + int(sizes["RssShmem"]),
                "descriptors": len(os.listdir(f"/proc/{pid}/fd")), "threads": int(sizes["Threads"])}
    except (OSError, KeyError):
        return None


def raise_in(stage, name, kind, domain):
    """A neighbour's, in that domain, until it has ended: a standby is placed in the second one. None: it did not come."""
    rogue = stage.run(name, [stage.programs + "/firebreak-lab", "inject", "--wait", kind],
                      *(["--standby"] if domain == "b" else ["--without", "guard,spare"]), stdin=subprocess.PIPE)
    if "prepared" not in rogue.stdout.readline():
        rogue.kill()
        return None
    time.sleep(0.2)
    row = {"raised_ns": time.monotonic_ns()}
    rogue.stdin.write("go\n")
    rogue.stdin.flush()
    try:
        for line in rogue.communicate(timeout=60)[0].splitlines():  # a standby is ended with its domain, and says nothing
            if line.startswith("answered "):
                row["faulter"] = line.split()[2]
    except subprocess.TimeoutExpired:
        rogue.kill()
    return row


def raise_fault(stage, number, kind):
    """Beside the tenants, wherever they are by now: standbys are placed in the second domain."""
    before = stage.wait(stage.is_ready, 30)
    row = {"kind": kind, "ready": before is not None}
    if before is None:
        row["status"] = stage.status()
        return row
    domains = {each["name"]: each["active"]["domain"] for each in before["tenants"] if each["active"]}
    domain = domains[next(iter(stage.tenants))]
    row["domain"] = domain
    row["held"] = {each["name"]: held_by(each["active"]["pid"]) or {}
                   for each in before["tenants"] if each["name"] in stage.tenants}
    row["in_that_domain"] = sum(1 for each in domains.values() if each == domain)
    row["guard"] = {each["name"]: (each["guard"] or {}).get("state") for each in before["tenants"]
                    if each["name"] in stage.tenants}
    raised = raise_in(stage, f"rogue{number}", kind, domain)
    if raised is None:
        row["ready"] = False
        return row
    row |= raised
    after = stage.status() or {"tenants": []}
    row["left"] = sum(1 for each in after["tenants"] if each["name"] in stage.tenants and each["active"]
                      and each["active"]["domain"] != domain)
    return row


def fault_among_the_anchors(stage, kind):
    """A stranger's, in the domain where nobody works; whose clients are made anew in the next one."""
    before = stage.wait(stage.is_ready, 30)
    row = {"kind": kind, "ready": before is not None}
    if before is None:
        return row
    of_it = {"CUDA_MPS_PIPE_DIRECTORY": stage.folder + "/anchor/pipe"}
    if stage.environment["FIREBREAK_GPU"] == "soft":
        of_it |= {"FIREBREAK_SOFTGPU_DIR": stage.folder + "/softgpu",
                  "FIREBREAK_CUDA_LIBRARY": stage.programs + "/../lib/softgpu/libcuda.so.1"}
    stranger = subprocess.run([stage.programs + "/firebreak-lab", "inject", kind], env=stage.environment | of_it,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    row["stranger"] = (stranger.stdout + stranger.stderr).splitlines()[-4:]
    begin = time.monotonic()
    count = lambda status: sum(each["server_restarts"] + each["daemon_restarts"] for each in status["anchors"])
    is_anew = lambda status: (all(each["state"] == "serving" for each in status["anchors"])
                              and count(status) > count(before))
    after = stage.wait(is_anew, 30)
    row["anew_after_s"] = round(time.monotonic() - begin, 2) if after else None
    row["anchors"] = (after or stage.status() or {}).get("anchors")
    row["restarts_of_others"] = {each["name"]: each["server_restarts"] for each in (after or before)["domains"]}
    row["alive"] = [name for name, each in stage.tenants.items() if each.poll() is None]
    return row


def go_astray(stage, strayer):
    """As the last thing that happens: nobody else notices."""
    before = stage.wait(stage.is_ready, 30) or {"tenants": []}
    its = {each["name"]: each for each in before["tenants"]}.get("strayer") or {}
    pathlib.Path(stage.until + ".stray").touch()
    try:
        said = strayer.communicate(timeout=20)[0].splitlines()
    except subprocess.TimeoutExpired:
        strayer.kill()
        said = ["did not end"]
    told = [line for line in pathlib.Path(stage.log).read_text(errors="replace").splitlines()
            if "stray of tenant strayer" in line]
    return {"moves": (its.get("spare") or {}).get("moves"), "guard": its.get("guard"), "said": said,
            "exit": strayer.returncode, "told": told[:1]}


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else None


def summed_up(faults, said):
    """Of each tenant: the longest stall that was under way within 1 s after the faulter was told to begin; 0: none of
    10 ms or more."""
    for row in faults:
        if "raised_ns" not in row:
            continue
        row["stall_ms"] = {}
        for name, seen in said.items():
            near = [ms for began, ms in seen.get("stalls", [])
                    if began + ms * 1e6 > row["raised_ns"] and began < row["raised_ns"] + 1e9]
            row["stall_ms"][name] = max(near, default=0)
    figures = {}
    for name in said:
        stalls = [row["stall_ms"][name] for row in faults if "stall_ms" in row]
        figures[name] = {"faults": len(stalls), "stall_ms_p50": percentile(stalls, 0.5),
                         "stall_ms_p99": percentile(stalls, 0.99), "stall_ms_most": max(stalls, default=None)}
    return figures


def machine(programs):
    version = subprocess.run([programs + "/firebreak", "--version"], capture_output=True, text=True, check=True).stdout
    commit = re.search(r"[0-9a-f]{12}(-dirty)?", version)
    return machine_at(os.environ.get("FIREBREAK_COMMIT") or (commit[0] if commit else None))


def machine_at(commit):
    its = {"linux": os.uname().release, "commit": commit,
           "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}
    if os.environ.get("FIREBREAK_GPU", "real") == "soft":
        return {"gpu": "software", **its}
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                           stdout=subprocess.PIPE, timeout=30, check=False).stdout.strip()
    name, _, driver = asked.partition(", ")
    return {"gpu": name, "driver": driver, **its}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--tenants", default="small,full")
    parser.add_argument("--seconds", type=float, default=300, help="no further fault after that")
    parser.add_argument("--log", type=pathlib.Path, help="keeps the agent's log there")
    parser.add_argument("--guarded", action="store_true", help="with guard ranges, and one that goes astray at the end")
    parser.add_argument("--anchors", type=int, default=0, help="faults in the anchors' domain before the others")
    parser.add_argument("--without-spares", action="store_true", help="and without faults: to compare with")
    arguments = parser.parse_args()
    programs = str(arguments.programs.resolve())
    kinds = arguments.kinds.split(",")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="fb-sf-") as folder:
        stage = Stage(programs, folder + "/d", not arguments.without_spares, arguments.guarded)
        faults, among_anchors, starts, memory, strayed, strayer = [], [], {}, {}, None, None
        try:
            stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 40)
            memory["before_mib"] = memory_used_mib()
            for name in arguments.tenants.split(","):
                starts[name] = stage.start(name)
            if arguments.guarded:
                strayer = stage.run("strayer", [programs + "/firebreak-checker", "--until", stage.until + ".stray",
                                                "--stray-gib", "16"])
                strayer.stdout.readline()
            stage.wait(stage.is_ready, 60)
            memory["after_mib"] = memory_used_mib()
            states = {each["name"]: each["spare"] for each in (stage.status() or {"tenants": []})["tenants"]}
            for _ in range(arguments.anchors):
                among_anchors.append(fault_among_the_anchors(stage, kinds[0]))
                print(json.dumps(among_anchors[-1]), flush=True)
            number = 0
            while number < arguments.faults and time.monotonic() - begin < arguments.seconds:
                faults.append(raise_fault(stage, number, kinds[number % len(kinds)]))
                print(json.dumps({key: value for key, value in faults[-1].items() if key not in ("status", "held")}),
                      flush=True)
                if not faults[-1]["ready"] or any(each.poll() is not None for each in stage.tenants.values()):
                    break
                number += 1
            if not arguments.faults:
                time.sleep(10)
            stage.wait(stage.is_ready, 30)
            if strayer:
                strayed = go_astray(stage, strayer)
                print(json.dumps(strayed), flush=True)
                time.sleep(2)  # the others compute on
            ending = stage.status() or {"tenants": [], "domains": []}
            last = {each["name"]: each["spare"] for each in ending["tenants"]}
            restarts = {each["name"]: each["daemon_restarts"] for each in ending["domains"]}
        finally:
            if strayer and strayer.poll() is None:
                strayer.kill()
            said = stage.end()
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()
            if arguments.log:
                arguments.log.write_text("\n".join(log) + "\n")
    figures = summed_up(faults, said)
    seen = {"what": "tests/hardware/spare_faults.py", "format": 1, "machine": machine(programs),
            "command": " ".join(["tests/hardware/spare_faults.py", "BIN", arguments.output.name] + sys.argv[3:]),
            "figures": figures, "daemon_restarts": restarts, "starts": starts, "memory": memory, "spares": states,
            "spares_at_the_end": last, "faults": faults, **({"strayed": strayed} if arguments.guarded else {}),
            **({"faults_among_the_anchors": among_anchors} if arguments.anchors else {}),
            "said": said}
    right = lambda row: row["ready"] and row.get("left") == len(said) and row.get("faulter") != "CUDA_SUCCESS"
    unharmed = lambda each: each["error"] == "" and each.get("wrong_words") == 0 and each["exit"] == 0
    told = not arguments.guarded or (strayed and strayed["told"] and strayed["moves"] == len(faults))
    told = told and all(row.get("anew_after_s") is not None and len(row["alive"]) == len(said) for row in among_anchors)
    good = told and not any(restarts.values()) and all(map(right, faults)) and all(map(unharmed, said.values()))
    if not good:
        seen["log"] = log[-120:]
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({"figures": figures, "daemon_restarts": restarts, "starts": starts, "memory": memory,
                      "spares": states, "held": [faults[0].get("held"), faults[-1].get("held")] if faults else [],
                      "ends": {name: {key: each.get(key) for key in ("launches", "wrong_words", "error", "exit")}
                               for name, each in said.items()}}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
