#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unmodified tenants beside one whose kernel raises an exception, in a parked domain. For a machine with a GPU, root
and MPS; some ten seconds a play.

  tests/hardware/parking.py BIN RESULT.json [--kinds KIND,...] [--repeat N] [--then kill|KIND [--at-once]]
                              [--beside PROGRAM,...] [--spares]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU. Tenants in the faulter's domain compare every
word of every result until they are done, then the domain falls. One play goes without parking, and has to end them.
KIND: of firebreak-lab inject, or of more_kinds.py. --beside says what the tenants are: a kind of co_runners.cu (built
into BIN), torch or torch_train (steps_torch.py), sanitizer or debugger (the checker under NVIDIA's),
starts (programs that begin and end all the time), launches (launches.py, which says how fast it launches before the
fault and after it), rate-KIND (the same of a kind of mode_cost.py), or checker (firebreak-checker, four of which are there otherwise).
Without the environment of the core dump mode, so that they enter it by the driver's calls: preload (the checker, with
the preload by its environment and no tenant), hidden (the same, which cannot reach its pipe by a path), guarded (the
checker under run --guard) and library (firebreak-decode).
Exit 1 where somebody did not live on, a word was wrong, or the faulter's call said CUDA_SUCCESS. Ends everything that
it started."""

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import more_kinds

KINDS = ("misaligned-load,trap,shared-out-of-bounds,non-canonical-address,stack-overflow,illegal-instruction,"
         "local-out-of-bounds,breakpoint,bad-program-counter,null-load")
HERE = os.path.dirname(os.path.realpath(__file__))
DID_NOT_END = "did not end"
STRANGERS = ("preload", "hidden")
MODE = ("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP", "CUDA_COREDUMP_FILE",
        "CUDA_COREDUMP_SHOW_PROGRESS", "CUDA_COREDUMP_GENERATION_FLAGS")
LOG_TIME = re.compile(r"(\d\d):(\d\d):(\d\d\.\d+) ")


class Agent:
    def __init__(self, programs, folder, log, options):
        self.programs, self.folder, self.log = programs, folder, log
        self.environment = dict(os.environ, FIREBREAK_SOCKET=folder + "/agent.sock", FIREBREAK_LOG="info")
        self.environment.setdefault("FIREBREAK_GPU", "real")
        self.environment.setdefault("FIREBREAK_WITHOUT", "guard,spare")  # what a play wants of these it says
        self.until = folder + ".until"  # the tenants of a play work until that file is there
        self.out = open(log, "ab")
        self.process = subprocess.Popen([programs + "/firebreakd", "--end-domains", "--directory", folder, *options],
                                        env=self.environment, stdout=self.out, stderr=self.out)

    def status(self):
        try:
            answer = subprocess.run([self.programs + "/firebreak", "status", "--json"], env=self.environment,
                                    capture_output=True, timeout=5, check=True)
            return json.loads(answer.stdout)
        except (subprocess.SubprocessError, ValueError):
            return None

    def await_all(self, what, limit_s=40):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            status = self.status()
            if status and all(what(each) for each in status["domains"]):
                return True
            time.sleep(0.1)
        return False

    def await_spares(self, names, limit_s=40):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            its = {each["name"]: each.get("spare") for each in (self.status() or {"tenants": []})["tenants"]}
            if all(its.get(name) and its[name]["state"] == "protected" for name in names):
                return True
            time.sleep(0.1)
        return False

    def run(self, name, arguments, *command, **more):
        return subprocess.Popen([self.programs + "/firebreak", "run", "--name", name, *arguments, "--", *command],
                                env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                **more)

    def domain_of(self, name):
        for tenant in (self.status() or {"tenants": []})["tenants"]:
            if tenant["name"] == name and tenant["active"]:
                return tenant["active"]["domain"]
        return None

    def lines_since(self, offset):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            file.seek(offset)
            return file.read().splitlines()

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def seconds_of_day(line):
    found = LOG_TIME.match(line)
    return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3]) if found else None


def ms_after(lines, text, began):
    """From then to the first log line with that text; None: there is none."""
    for line in lines:
        if text in line and seconds_of_day(line) is not None:
            return round((seconds_of_day(line) - began) * 1e3, 1)
    return None


def said_by(command):
    """What the program says that runs in another one, which says more."""
    return ["sh", "-c", command + " | grep --line-buffered -E '^(working|[{])'"]


def without_the_mode(*command):
    return ["env", *(word for name in MODE for word in ("-u", name)), *command]


def preloaded(agent, command, hidden):
    """A program that its environment alone makes a client of domain a."""
    root = os.path.dirname(agent.programs)
    environment = dict(agent.environment, LD_PRELOAD=root + "/lib/libfirebreak-guard.so",
                       CUDA_MPS_PIPE_DIRECTORY=agent.folder + "/a/pipe")
    if environment["FIREBREAK_GPU"] == "soft":
        environment.update(FIREBREAK_SOFTGPU_DIR=agent.folder + "/softgpu", LD_LIBRARY_PATH=root + "/lib/softgpu")
    if hidden:
        command = ["unshare", "-m", "sh", "-c", 'mkdir -p "$0" && mount -t tmpfs none "$0" && exec "$@"',
                   agent.folder + "/core-dumps", *command]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def library(programs, until, name):
    """A tenant of libfirebreak's that decodes until then, and says what firebreak-checker says."""
    decode = [programs + "/firebreak-decode", "--steps", "150", "--output"]
    with tempfile.TemporaryDirectory(prefix="fbl", dir="/tmp") as folder:
        one = subprocess.Popen([programs + "/firebreak", "run", "--name", name, "--",
                                *without_the_mode(*decode, folder + "/tokens", "--progress", "--pace-ms", "400",
                                                     "--slow-until", until)],
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if one.stdout.readline():
            print("working", flush=True)
        error = one.communicate()[1].strip()[-200:]
        error = error if one.returncode else ""
        environment = dict(os.environ, CUDA_MPS_PIPE_DIRECTORY=folder)  # no domain: alone
        if environment["FIREBREAK_GPU"] == "soft":
            environment.update(FIREBREAK_SOFTGPU_DIR=folder, LD_LIBRARY_PATH=os.path.dirname(programs) + "/lib/softgpu")
        subprocess.run([*decode, folder + "/alone", "--standalone"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        outputs = []
        for file in ("tokens", "alone") if not error else ():
            with open(folder + "/" + file, "rb") as its:
                outputs.append(its.read())
    print(json.dumps({"launches": 150, "wrong_words": int(len(set(outputs)) > 1), "error": error}))


def tenant(agent, name, what, options):
    until = agent.until
    checking = [agent.programs + "/firebreak-checker", "--until", until, "--blocks", str(options.blocks),
                "--rounds", str(options.rounds)]
    if what == "library":
        process = subprocess.Popen([sys.executable, HERE + "/parking.py", "--library", agent.programs, until, name],
                                   env=agent.environment, stdout=subprocess.PIPE, text=True)
    elif what in STRANGERS:
        process = preloaded(agent, checking, what == "hidden")
    elif what == "starts":
        process = subprocess.Popen([sys.executable, HERE + "/parking.py", "--starts", agent.programs, until],
                                   env=agent.environment, stdout=subprocess.PIPE, text=True)
    else:
        checker = f"{agent.programs}/firebreak-checker --until {until} --rounds {options.rounds}"
        commands = {"checker": checking,
                    "guarded": without_the_mode(*checking),
                    **{"rate-" + kind: [sys.executable, HERE + "/mode_cost.py", "--until", kind, until]
                       for kind in ("launches", "memory", "matmul", "inference")},
                    "launches": [sys.executable, HERE + "/launches.py", "60", until],
                    "sanitizer": said_by(f"compute-sanitizer --log-file /dev/null {checker}"),
                    "debugger": said_by(f"cuda-gdb -batch -ex run --args {checker}"),
                    "torch": [sys.executable, HERE + "/steps_torch.py", until],
                    "torch_train": [sys.executable, HERE + "/steps_torch.py", until, "train"]}
        arguments = ["--guard"] if what == "guarded" else ["--spare"] if options.spares else []
        process = agent.run(name, arguments, *commands.get(what, [agent.programs + "/co_runners", what, until]))
    return process if process.stdout.readline().strip() == "working" else None


def starts(programs, until):
    """One program after the other that begins, works for a moment and ends. They say what firebreak-checker says."""
    seen = {"launches": 0, "wrong_words": 0, "longest_ms": 0, "error": "", "programs": 0, "refused": []}
    print("working", flush=True)
    while not os.path.exists(until):
        began = time.monotonic()
        one = subprocess.run([programs + "/firebreak", "run", "--name", f"s{seen['programs']}", "--",
                              programs + "/firebreak-checker", "--seconds", "0.1"],
                             capture_output=True, text=True, timeout=60, check=False)
        lines = one.stdout.strip().splitlines()
        said = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {"error": one.stderr.strip()[-200:]}
        seen["longest_ms"] = max(seen["longest_ms"], round((time.monotonic() - began) * 1e3, 1))
        for what in ("launches", "wrong_words"):
            seen[what] += said.get(what, 0)
        seen["programs"] += 1
        if said["error"]:
            seen["refused"].append(said["error"])
    print(json.dumps(seen))


def await_line(agent, offset, text, limit_s=10):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if any(text in line for line in agent.lines_since(offset)):
            return True
        time.sleep(0.005)
    return False


def faulter(agent, name, kind):
    command = [agent.programs + "/firebreak-lab", "inject"]
    if kind in more_kinds.KINDS:
        command = [sys.executable, HERE + "/more_kinds.py"]
    process = agent.run(name, [], *command, "--wait", kind, stdin=subprocess.PIPE)
    return process, "prepared" in process.stdout.readline()


def last_words(process):
    try:
        return process.communicate(timeout=30)[0].strip().splitlines()[-1][:120]
    except subprocess.TimeoutExpired:
        process.kill()
        return DID_NOT_END
    except IndexError:
        return "said nothing"


def happens_besides(agent, what, offset, second):
    """While the domain is held: another one of its clients raises an exception, or somebody kills the culprit."""
    if not await_line(agent, offset, " is parked: rogue-"):
        return
    if what == "kill":
        culprit = next(each for each in agent.status()["tenants"] if each["name"] == "rogue")
        os.kill(culprit["active"]["pid"], signal.SIGKILL)
    else:
        second.stdin.write("go\n")
        second.stdin.flush()


def play(agent, kind, parked, then, options):
    """Tenants take turns between two domains, so every second one is put beside the faulter."""
    ready = agent.await_all(lambda d: d["state"] == "serving" and (not parked or d["parking"]["state"] == "ready"))
    row = {"kind": kind, "parked": parked, "blocks": options.blocks, "rounds": options.rounds, "ready": ready}
    if not ready:
        return row
    if os.path.exists(agent.until):
        os.unlink(agent.until)
    tenants = {f"v{i}": tenant(agent, f"v{i}", what, options) for i, what in enumerate(options.beside.split(","))}
    if options.spares:
        row["all_have_spares"] = agent.await_spares(tenants)
    rogue, is_prepared = faulter(agent, "rogue", kind)
    second = None
    if then not in ("", "kill"):
        second, is_second_prepared = faulter(agent, "second", then)
        is_prepared = is_prepared and is_second_prepared
    if not is_prepared or None in tenants.values():
        row["ready"] = False
    domain = agent.domain_of("rogue")
    if second:
        row["second_is_beside"] = agent.domain_of("second") == domain
    beside = [name for name, what in zip(tenants, options.beside.split(",")) if what == "starts"
              or (domain if what in STRANGERS and domain == "a" else agent.domain_of(name)) == domain]
    if parked:
        row["all_in_the_mode"] = agent.await_all(lambda d: not d["parking"]["not_in_mode"], 10)
    offset = os.path.getsize(agent.log)
    time.sleep(0.3)
    now = datetime.datetime.now()
    began = now.hour * 3600 + now.minute * 60 + now.second + now.microsecond / 1e6
    gone = time.monotonic()
    rogue.stdin.write("go\n")
    rogue.stdin.flush()
    if then and options.at_once:
        row.update(then=then, at_once=True)
        second.stdin.write("go\n")
        second.stdin.flush()
        row["gone_within_ms"] = round((time.monotonic() - gone) * 1e3, 3)
    elif then:
        row["then"] = then
        happens_besides(agent, then, offset, second)
    row["beside"] = len(beside)
    row["tenants"] = []
    time.sleep(options.work_s)
    open(agent.until, "w").close()
    for name, process in tenants.items():
        if process is None:
            continue
        try:
            said = process.communicate(timeout=40)[0].strip()
            seen = json.loads(said.splitlines()[-1]) if said else {"error": "said nothing"}
        except (subprocess.TimeoutExpired, ValueError):
            process.kill()
            seen = {"error": "did not end, or said nothing in JSON"}
        row["tenants"].append({"is": options.beside.split(",")[int(name[1:])], "beside": name in beside, **seen})
    row["faulter"] = last_words(rogue)
    if second:
        row["second"] = last_words(second)
    lines = agent.lines_since(offset)
    row["named_after_ms"] = ms_after(lines, " is parked: rogue-", began)
    row["first_xid_after_ms"] = ms_after(lines, "Xid ", began)
    row["fell_after_ms"] = ms_after(lines, f"parking of domain {domain}: fell", began)
    return row


def is_good(row):
    if not row["ready"] or row.get("beside", 0) < 2:
        return False
    lived = [each["error"] == "" and each.get("wrong_words") == 0 for each in row["tenants"]
             if each["beside"] and (row["parked"] or each["is"] != "starts")]
    for said in (row["faulter"], row.get("second", "")):  # a culprit gets no result, and ends
        if "CUDA_SUCCESS" in said or said == DID_NOT_END:
            return False
    return (all(lived) and row["named_after_ms"] is not None) if row["parked"] else not any(lived)


def machine(programs):
    version = subprocess.run([programs + "/firebreak", "--version"], capture_output=True, text=True, check=True).stdout
    commit = re.search(r"[0-9a-f]{12}(-dirty)?", version)
    its = {"linux": os.uname().release, "commit": os.environ.get("FIREBREAK_COMMIT") or (commit[0] if commit else None),
           "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()}
    if os.environ.get("FIREBREAK_GPU", "real") == "soft":
        return {"gpu": "software", **its}
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=True).stdout.splitlines()[0]
    name, driver = asked.split(", ")
    return {"gpu": name, "driver": driver, **its}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("result")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--blocks", type=int, default=1)
    parser.add_argument("--then", default="", help="while it is held: kill (the culprit), or a KIND of a second one")
    parser.add_argument("--at-once", action="store_true", help="the second one does not wait for the first")
    parser.add_argument("--spares", action="store_true", help="tenants have one, and leave; no play without parking")
    parser.add_argument("--rounds", type=int, default=20000)
    parser.add_argument("--beside", default="checker,checker,checker,checker")
    parser.add_argument("--work-s", type=float, default=2, help="from the exception to the domain's end")
    parser.add_argument("--agent-user", default="", help="whom the agent becomes (firebreakd --user)")
    parser.add_argument("--seconds", type=float, default=1e9, help="no further play after that")
    options = parser.parse_args()
    programs = os.path.realpath(options.programs)
    rows, until = [], time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory(prefix="fbp", dir="/tmp") as scratch:
        if options.agent_user:
            os.chmod(scratch, 0o711)
        for parked in (True,) if options.spares else (True, False):
            agent = Agent(programs, scratch + ("/p" if parked else "/s"), options.result + ".agent.log",
                          (["--park-s", "8"] + ["--spares"] * options.spares if parked else []) +
                          (["--user", options.agent_user] if options.agent_user else []))
            try:
                kinds = options.kinds.split(",") * options.repeat if parked else ["misaligned-load"]
                for kind in kinds:
                    if time.monotonic() > until:
                        break
                    rows.append(play(agent, kind, parked, options.then if parked else "", options))
                    print(json.dumps({"good": is_good(rows[-1]), **rows[-1]}), flush=True)
                    with open(options.result, "w", encoding="utf-8") as file:
                        json.dump({"what": "tests/hardware/parking.py", "format": 1, "machine": machine(programs),
                                   "command": "tests/hardware/parking.py BIN parking.json " + " ".join(sys.argv[3:]),
                                   "good": sum(map(is_good, rows)), "rows": rows}, file, indent=1)
            finally:
                agent.end()
    return 0 if all(map(is_good, rows)) else 1


if __name__ == "__main__":
    if sys.argv[1] == "--starts":
        sys.exit(starts(*sys.argv[2:4]))
    if sys.argv[1] == "--library":
        sys.exit(library(*sys.argv[2:5]))
    sys.exit(main())
