#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two users with a pair each on one GPU. One of them is hostile: it asks for everything of the other's, and its kernels
raise exceptions beside both. For a machine with a GPU, root and MPS; or on the software GPU, as root.

    tests/hardware/two_users.py BIN RESULT.json [--steps N] [--agent-user NAME]

BIN: the folder with the programs; the users have to be able to read it. FIREBREAK_GPU=soft: without a GPU. Exit 1 where
a claim did not hold. Ends everything that it started."""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile
import time

ALICE, MALLORY, GROUP = 1001, 1002, 2001
FAULTS = ["trap", "misaligned-load", "sigkill"]
CONTAINED = {"sigkill"}  # the agent holds what a dead client has until its kernel has ended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--pace-ms", type=int, default=20)
    parser.add_argument("--agent-user", default="", help="whom the agent becomes (firebreakd --user)")
    arguments = parser.parse_args()
    programs = str(arguments.programs.resolve())
    scratch = tempfile.mkdtemp(prefix="fb-users-", dir="/tmp")
    os.chmod(scratch, 0o755)
    real = os.environ.setdefault("FIREBREAK_GPU", "real") == "real"
    os.environ.setdefault("FIREBREAK_WITHOUT", "guard,spare")
    folder, claims, processes = scratch + "/d", [], []
    environment = {**os.environ, "FIREBREAK_LOG": "info", "FIREBREAK_SOCKET": folder + "/agent.sock"}
    if not real:
        os.makedirs(folder + "/softgpu")
        for path in (folder, folder + "/softgpu"):
            os.chmod(path, 0o711)
        environment["FIREBREAK_SOFTGPU_DIR"] = folder + "/softgpu"
    alone = environment if real else {
        **environment, "FIREBREAK_CUDA_LIBRARY": str(arguments.programs.resolve().parent / "lib/softgpu/libcuda.so.1")}

    def claim(what, holds, seen=None):
        claims.append({"claim": what, "holds": bool(holds), **({} if seen is None else {"seen": seen})})
        print(json.dumps(claims[-1]), flush=True)

    def as_user(user, *command):
        return ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}", *command]

    theirs = {**environment, "FIREBREAK_SOCKET": folder + "/tenants.sock"}

    def ask(user, *command):
        done = subprocess.run(as_user(user, programs + "/firebreak", *command), env=theirs, capture_output=True,
                              text=True, timeout=20, check=False)
        return done.returncode, (done.stdout + done.stderr).strip()[:300]

    def status(user=None):
        command = [programs + "/firebreak", "status", "--json"]
        try:
            done = subprocess.run(as_user(user, *command) if user else command, env=theirs if user else environment,
                                  capture_output=True, timeout=10, check=True)
            return json.loads(done.stdout)
        except (subprocess.SubprocessError, ValueError):
            return {"domains": [], "tenants": []}

    def wait(is_so, limit_s=40):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            now = status()
            if is_so(now):
                return now
            time.sleep(0.05)
        return None

    def tenant(now, name):
        return next((each for each in now["tenants"] if each["name"] == name), {})

    def is_paired(now, name):
        its = tenant(now, name)
        return bool(its.get("active") and its.get("standby") and its["standby"].get("ready", True)
                    and its.get("pair", its).get("standby_state", "ready") == "ready")

    def start(user, name, seed):
        os.mkdir(f"{scratch}/{name}")
        os.chown(f"{scratch}/{name}", user, user)
        file = f"{scratch}/{name}/out"
        process = subprocess.Popen(
            as_user(user, programs + "/firebreak", "run", "--pair", "--name", name, "--",
                    programs + "/firebreak-decode", "--size", "medium" if real else "small", "--steps", str(arguments.steps), "--pace-ms",
                    str(arguments.pace_ms), "--seed", str(seed), "--output", file),
            env=theirs, stdout=open(f"{scratch}/{name}.log", "wb"), stderr=subprocess.STDOUT)
        processes.append(process)
        return process, file

    def reference(seed):
        file = f"{scratch}/reference-{seed}"
        subprocess.run([programs + "/firebreak-decode", "--standalone", "--size", "medium" if real else "small",
                        "--steps", str(arguments.steps), "--seed", str(seed), "--output", file], env=alone,
                       check=True, timeout=200, stdout=subprocess.DEVNULL)
        return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()

    def attack():
        """Each request of Mallory's for what is Alice's; the answers."""
        now = tenant(status(), "alice")
        answers = {"status": sorted(each["name"] for each in status(MALLORY)["tenants"])}
        for command in (["stop", "alice"], ["hand-over", "alice"], ["shutdown"], ["report"],
                        ["run", "--name", "alice", "--", "/bin/true"]):
            answers[" ".join(command[:3])] = ask(MALLORY, *command)
        pid = now["active"]["pid"]
        kill = subprocess.run(as_user(MALLORY, "kill", "-9", str(pid)), capture_output=True, text=True, check=False)
        answers["kill"] = (kill.returncode, kill.stderr.strip()[-60:])
        return answers, tenant(status(), "alice")["active"]["pid"] == pid

    log = open(f"{scratch}/agent.log", "wb")
    agent = subprocess.Popen([programs + "/firebreakd", "--end-domains", "--directory", folder, "--tenant-group",
                              str(GROUP), *(["--user", arguments.agent_user] if arguments.agent_user else [])],
                             env=environment, stdout=log, stderr=log)
    processes.append(agent)
    try:
        claim("both domains serve", wait(lambda now: now["domains"] and all(
            each["state"] == "serving" for each in now["domains"])))
        if arguments.agent_user:
            its = {path.name: dict(line.split(":", 1) for line in (path / "status").read_text().splitlines())
                   for path in pathlib.Path(f"/proc/{agent.pid}/task").iterdir()}
            who = {(thread["Uid"].split()[1], thread["CapEff"].strip(), thread["CapPrm"].strip(),
                    thread["NoNewPrivs"].strip()) for thread in its.values()}
            needed = (1 << 5) | (1 << 34)  # CAP_KILL, CAP_SYSLOG
            nice = 1 << 23  # CAP_SYS_NICE, where the limit for it may not be raised
            claim("each thread of the agent is that user's, with the rights to end tenants and to read the kernel's log",
                  who and all(uid == str(pwd.getpwnam(arguments.agent_user).pw_uid) and new == "1" and
                              int(had, 16) & ~nice == needed and int(may, 16) & ~nice == needed
                              for uid, had, may, new in who), sorted(who))
        alice, alices = start(ALICE, "alice", 11)
        mallory, mallorys = start(MALLORY, "mallory", 12)
        ready = wait(lambda now: is_paired(now, "alice") and is_paired(now, "mallory"))
        claim("two users' pairs are ready at the same time, in the same domains", ready,
              ready and {each["name"]: [each[who]["domain"] for who in ("active", "standby")]
                         for each in ready["tenants"]})
        time.sleep(2)
        answers, same = attack()
        claim("Mallory sees its own tenant alone", answers.pop("status") == ["mallory"])
        claim("whatever Mallory asks for of Alice's is refused", all(code != 0 for name, (code, _) in answers.items()
                                                                    if name != "report"), answers)
        claim("and changes nothing of it", same)
        for number, kind in enumerate(FAULTS):
            before = wait(lambda now: is_paired(now, "alice") and is_paired(now, "mallory"))
            epochs = {each["name"]: each.get("epoch") for each in (before or status())["tenants"]}
            domain = tenant(before or status(), "alice").get("active", {}).get("domain")
            options = ["--standby"] if domain == "b" else []
            rogue = subprocess.run(
                as_user(MALLORY, programs + "/firebreak", "run", "--name", f"rogue{number}", *options, "--",
                        programs + "/firebreak-lab", "inject", kind), env=theirs, capture_output=True, text=True,
                timeout=60, check=False)
            after = wait(lambda now: tenant(now, "alice").get("epoch", 0) > (epochs.get("alice") or 0),
                         3 if kind in CONTAINED else 15)
            if kind in CONTAINED:
                claim(f"{kind} of Mallory's beside both: Alice goes on where it is", not after)
                continue
            claim(f"{kind} of Mallory's beside both: Alice's standby goes on", after,
                  {"domain": domain, "rogue": rogue.returncode, "epochs": after and {
                      each["name"]: each.get("epoch") for each in after["tenants"]}})
        for name, process in (("alice", alice), ("mallory", mallory)):
            try:
                code = process.wait(arguments.steps * arguments.pace_ms / 1000 + 60)
            except subprocess.TimeoutExpired:
                code = "still there"
            claim(f"{name} finishes", code == 0,
                  [code, pathlib.Path(f"{scratch}/{name}.log").read_text(errors="replace")[-300:]])
        for name, file, seed in (("alice", alices, 11), ("mallory", mallorys, 12)):
            its = pathlib.Path(file).exists() and hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()
            claim(f"{name}'s output is the same to the byte as without a fault", its == reference(seed))
    finally:
        for process in reversed(processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
        log.close()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                         capture_output=True, text=True, check=False).stdout.strip() if real else "software"
    said = pathlib.Path(f"{scratch}/agent.log").read_text(errors="replace").splitlines()
    good = all(each["holds"] for each in claims)
    arguments.output.write_text(json.dumps({
        "what": "tests/hardware/two_users.py", "date": datetime.date.today().isoformat(), "gpu": gpu,
        "commit": os.environ.get("FIREBREAK_COMMIT", ""), "linux": os.uname().release,
        "command": " ".join(["tests/hardware/two_users.py", "BIN", arguments.output.name] + sys.argv[3:]),
        "claims": claims, "refused": [line.split(" ", 1)[1] for line in said if "refused" in line][:40],
        **({} if good else {"log": said[-200:]})}, indent=1) + "\n")
    shutil.rmtree(scratch, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
