#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two honest users with a pair each on one GPU, and two hostile ones whose processes say untrue things of themselves and
of others all the time: domains where they are not, kernels that run, spares, dumps, pipes, placements, locks on the
device, many ends at once. Nothing of the honest may change. For a machine with a GPU, root and MPS; or on the software
GPU, as root.

    tests/hardware/untrue_words.py BIN RESULT.json [--minutes 10] [--kill-supervisor]

BIN: the folder with the programs; the users have to be able to read it. FIREBREAK_GPU=soft: without a GPU. Exit 1 where
a claim did not hold. Ends everything that it started."""
import argparse
import ctypes
import datetime
import fcntl
import hashlib
import json
import mmap
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

ALICE, BOB, MALLORY, MALLET, GROUP = 1001, 1003, 1002, 1004, 2001
HONEST = {"alice": (ALICE, 11), "bob": (BOB, 12)}
PAGE = 4096
OFD_GETLK, OFD_SETLK = 36, 37
FIRST_MARK = 1 << 48


# --- what the hostile do: in processes of their own, as their users


class Liar:
    """One process's connection, and what it says."""

    def __init__(self, tenants_socket, folder):
        self.path, self.folder, self.number = tenants_socket, folder, 0
        self.connect()

    def connect(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(2)
        self.socket.connect(self.path)

    def say(self, **message):
        self.number += 1
        try:
            self.socket.send(json.dumps({"number": self.number, **message}).encode())
            return json.loads(self.socket.recv(65536) or b"{}")
        except (OSError, ValueError):
            try:
                self.connect()
            except OSError:
                time.sleep(0.05)
            return {}

    def join(self, tenant, domain):
        return self.say(type="join", tenant=tenant, role="active", token="", attempt="",
                        pipe_directory=f"{self.folder}/{domain}/pipe")

    def place(self, tenant):
        return self.say(type="place", tenant=tenant, role="active", gpu="", sm_percent=0, memory_mib=0, spare=False,
                        spare_if_there_is_one=True)


def memory_file(name, size):
    file = os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(file, size)
    fcntl.fcntl(file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return file, mmap.mmap(file, size)


def show_running_kernel():
    """A guard page (abi/guard_page.h) that says that a kernel runs, and an opening that looks like the GPU's."""
    work = -(-(64 + 192 + 512 * 24 + 32768 * 40) // PAGE) * PAGE
    size = work + 2 * PAGE + 128 * (64 + 2 * 128) + 512 * 128
    size = -(-size // PAGE) * PAGE
    file, page = memory_file("firebreak-guard", size)
    struct.pack_into("<IIII", page, 0, 0x46424744, 5, 1, 0)
    struct.pack_into("<IIII", page, work + PAGE, 0, 0, 1, 0)
    struct.pack_into("<IIII", page, work + PAGE + 64, 1, 0, 1, 0)
    kept = [file]
    for device in ("/dev/nvidia-uvm", "/dev/nvidiactl"):
        if os.path.exists(device):
            kept.append(os.open(device, os.O_RDWR))
        else:
            kept.append(memory_file(os.path.basename(device), PAGE)[0])
    return kept


def show_spare(folder):
    """A spare's page (abi/spare_page.h) that works wherever it likes."""
    file, page = memory_file("firebreak-spare", PAGE)
    struct.pack_into("<QIIIIIIIII", page, 0, 0x6572617073626672, 4, 1, 0, 0, 1, 0, 0, 0, 0)
    for number, domain in enumerate(("a", "b", "b", "a")):
        text = f"{folder}/{domain}/pipe".encode()
        page[44 + 256 * number:44 + 256 * number + len(text)] = text
    return file


def lie_about_domain(liar, rng):
    kept = show_running_kernel() + [show_spare(liar.folder)]
    liar.join(f"m{os.getuid()}-{rng.randrange(8)}", rng.choice("ab"))
    time.sleep(rng.uniform(0, 0.3))
    return kept


def lie_about_dump(liar, rng):
    """What looks like a dump, into whatever pipe it was told."""
    placed = dict(liar.place(f"m{os.getuid()}-{rng.randrange(8)}").get("environment", []))
    pipe = placed.get("CUDA_COREDUMP_FILE")
    liar.join(placed.get("FIREBREAK_TENANT", "m"), rng.choice("ab"))
    if not pipe:
        return
    try:
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        for _ in range(200):
            os.write(end, b"\x7fELF\x02\x01\x01" + bytes(4089))
    except OSError:
        pass


def place_again(liar, rng):
    for number in range(300):
        liar.place(f"m{os.getuid()}-{number % 8}")


def be_refused(liar, rng):
    for _ in range(300):
        liar.join(rng.choice(["alice", "bob", "m-other"]), "a")


def lock_device(liar, rng):
    """Every byte that may be a mark of somebody's, and those that are, one by one."""
    if not os.path.exists("/dev/nvidia-uvm"):
        return
    device = os.open("/dev/nvidia-uvm", os.O_RDWR)
    lock = struct.Struct("hhqqi4x")
    try:
        found = lock.unpack(fcntl.fcntl(device, OFD_GETLK, lock.pack(fcntl.F_WRLCK, 0, FIRST_MARK, 0, 0)))
        fcntl.fcntl(device, OFD_SETLK, lock.pack(fcntl.F_WRLCK, 0, FIRST_MARK, 0, 0))
        if found[0] != fcntl.F_UNLCK:
            signal.alarm(2)
            fcntl.fcntl(device, 38, lock.pack(fcntl.F_WRLCK, 0, found[2], found[3], 0))
    except OSError:
        pass
    time.sleep(rng.uniform(0, 1))


def die_at_once(liar, rng):
    """Forty processes that have joined, killed together."""
    children = []
    for number in range(40):
        child = os.fork()
        if child == 0:
            one = Liar(liar.path, liar.folder)
            one.join(f"m{os.getuid()}-d{number}", rng.choice("ab"))
            signal.pause()
        children.append(child)
    time.sleep(1)
    for child in children:
        os.kill(child, signal.SIGKILL)
    for child in children:
        os.waitpid(child, 0)


LIES = [lie_about_domain, lie_about_domain, lie_about_dump, place_again, be_refused, lock_device, die_at_once]


def be_hostile(tenants_socket, folder, seed, until):
    """One process a lie, each with an environment that names the pipes of others."""
    rng = random.Random(seed)
    while time.time() < until:
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
            try:
                rng.seed(rng.random())
                rng.choice(LIES)(Liar(tenants_socket, folder), rng)
            except OSError:
                pass
            os._exit(0)
        rng.random()
        end = time.time() + 20
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.time() > end:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.005)


# --- what is done beside them, and claimed


class Run:
    def __init__(self, arguments):
        self.arguments, self.claims, self.processes = arguments, [], []
        self.programs = str(arguments.programs.resolve())
        self.scratch = tempfile.mkdtemp(prefix="fb-words-", dir="/tmp")
        os.chmod(self.scratch, 0o755)
        self.folder = self.scratch + "/d"
        self.real = os.environ.setdefault("FIREBREAK_GPU", "real") == "real"
        self.environment = {**os.environ, "FIREBREAK_LOG": "info", "FIREBREAK_SOCKET": self.folder + "/agent.sock"}
        self.alone = self.environment
        if not self.real:
            os.makedirs(self.folder + "/softgpu")
            for path in (self.folder, self.folder + "/softgpu"):
                os.chmod(path, 0o711)
            self.environment["FIREBREAK_SOFTGPU_DIR"] = self.folder + "/softgpu"
            library = arguments.programs.resolve().parent / "lib/softgpu/libcuda.so.1"
            self.alone = {**self.environment, "FIREBREAK_CUDA_LIBRARY": str(library)}
        self.theirs = {**self.environment, "FIREBREAK_SOCKET": self.folder + "/tenants.sock"}
        self.steps = arguments.steps or int(arguments.minutes * 60_000 / arguments.pace_ms)

    def claim(self, what, holds, seen=None):
        self.claims.append({"claim": what, "holds": bool(holds), **({} if seen is None else {"seen": seen})})
        print(json.dumps(self.claims[-1]), flush=True)

    @staticmethod
    def as_user(user, *command):
        return ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}", *command]

    def start(self, command, log, environment):
        process = subprocess.Popen(command, env=environment, stdout=open(log, "ab"), stderr=subprocess.STDOUT)
        self.processes.append(process)
        return process

    def status(self):
        try:
            done = subprocess.run([self.programs + "/firebreak", "status", "--json"], env=self.environment,
                                  capture_output=True, timeout=10, check=True)
            return json.loads(done.stdout)
        except (subprocess.SubprocessError, ValueError):
            return {"domains": [], "tenants": [], "counts": {}}

    def wait(self, is_so, limit_s=60):
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            now = self.status()
            if is_so(now):
                return now
            time.sleep(0.1)
        return None

    @staticmethod
    def tenant(now, name):
        return next((each for each in now["tenants"] if each["name"] == name), {})

    def is_paired(self, now, name):
        its = self.tenant(now, name)
        return bool(its.get("active") and its.get("standby") and its.get("standby_state") == "ready")

    def decode(self, *more):
        size = "medium" if self.real else "small"
        return [self.programs + "/firebreak-decode", "--size", size, "--steps", str(self.steps), *more]

    def start_honest(self, name):
        user, seed = HONEST[name]
        os.mkdir(f"{self.scratch}/{name}")
        os.chown(f"{self.scratch}/{name}", user, user)
        return self.start(
            self.as_user(user, self.programs + "/firebreak", "run", "--pair", "--name", name, "--",
                         *self.decode("--pace-ms", str(self.arguments.pace_ms), "--seed", str(seed), "--output",
                                      f"{self.scratch}/{name}/out")), f"{self.scratch}/{name}.log", self.theirs)

    def reference(self, seed):
        file = f"{self.scratch}/reference-{seed}"
        subprocess.run(self.decode("--standalone", "--seed", str(seed), "--output", file), env=self.alone, check=True,
                       timeout=600, stdout=subprocess.DEVNULL)
        return hashlib.sha256(pathlib.Path(file).read_bytes()).hexdigest()

    def committed(self, now):
        return {name: self.tenant(now, name).get("committed_steps", 0) for name in HONEST}

    def steps_a_second(self, seconds):
        before, begin = self.committed(self.status()), time.monotonic()
        time.sleep(seconds)
        after, time_s = self.committed(self.status()), time.monotonic() - begin
        return {name: round((after[name] - before[name]) / time_s, 2) for name in HONEST}

    def pipes(self):
        dumps = pathlib.Path(self.folder + "/core-dumps/pipes")
        return len(list(dumps.glob("*.pipe"))) if dumps.exists() else 0

    def play(self):
        agent = self.start([self.programs + "/firebreakd", "--supervised", "--directory", self.folder, "--park-s", "30",
                            "--tenant-group", str(GROUP)], f"{self.scratch}/agent.log", self.environment)
        self.claim("both domains serve", self.wait(lambda now: now["domains"] and all(
            each["state"] == "serving" for each in now["domains"])))
        honest = {name: self.start_honest(name) for name in HONEST}
        ready = self.wait(lambda now: all(self.is_paired(now, name) for name in HONEST))
        self.claim("two users' pairs are ready", ready)
        if not ready:
            return agent, honest
        alone = self.steps_a_second(10)
        epochs = {name: self.tenant(ready, name)["epoch"] for name in HONEST}
        starts = ready["counts"].get("agent_starts")
        until = time.time() + self.arguments.minutes * 60 * 0.8
        for number, user in enumerate((MALLORY, MALLET)):
            self.start(self.as_user(user, sys.executable, __file__, "--hostile", self.folder, str(number), str(until)),
                       f"{self.scratch}/hostile-{number}.log", self.theirs)
        time.sleep(3)
        beside = self.steps_a_second(max(5, (until - time.time()) / 2))
        most_pipes = 0
        while time.time() < until:
            most_pipes = max(most_pipes, self.pipes())
            time.sleep(0.5)
        now = self.status()
        self.claim("the agent was not taken for hung", now["counts"].get("agent_starts") == starts,
                   [starts, now["counts"].get("agent_starts")])
        self.claim("nobody honest was promoted", epochs == {name: self.tenant(now, name).get("epoch")
                                                           for name in HONEST}, epochs)
        self.claim("all honest are protected", all(self.is_paired(now, name) for name in HONEST))
        self.claim("the domains serve", all(each["state"] == "serving" for each in now["domains"]),
                   {each["name"]: each["state"] for each in now["domains"]})
        self.claim("pipes have a limit", most_pipes < 300, most_pipes)
        lines = pathlib.Path(f"{self.scratch}/agent.log").read_text(errors="replace").count("refused:")
        self.claim("lines on what was refused have a limit", lines < 120 * self.arguments.minutes + 200, lines)
        slower = {name: round(1 - beside[name] / alone[name], 3) if alone[name] else None for name in HONEST}
        self.figures = {"steps_a_second_alone": alone, "beside_the_hostile": beside, "slower_by": slower}
        if self.real:
            self.claim("honest steps take at most 5 % longer", all(its is not None and its < 0.05
                                                                  for its in slower.values()), slower)
        if self.arguments.kill_supervisor:
            agent.kill()
            self.claim("the supervisor's end loses nobody", self.wait(
                lambda now: all(self.is_paired(now, name) for name in HONEST)))
        return agent, honest

    figures = {}

    def judge(self, honest):
        for name, process in honest.items():
            try:
                code = process.wait(self.steps * self.arguments.pace_ms / 1000 + 300)
            except subprocess.TimeoutExpired:
                code = "still there"
            self.claim(f"{name} finishes", code == 0, code)
            file = pathlib.Path(f"{self.scratch}/{name}/out")
            its = file.exists() and hashlib.sha256(file.read_bytes()).hexdigest()
            self.claim(f"{name}'s output is the same to the byte", its == self.reference(HONEST[name][1]))

    def end(self):
        subprocess.run([self.programs + "/firebreak", "shutdown", "--force"], env=self.environment, check=False,
                       capture_output=True, timeout=60)
        for process in reversed(self.processes):
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()

    def write(self):
        gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                             capture_output=True, text=True, check=False).stdout.strip() if self.real else "software"
        said = pathlib.Path(f"{self.scratch}/agent.log").read_text(errors="replace").splitlines()
        good = all(each["holds"] for each in self.claims)
        self.arguments.output.write_text(json.dumps({
            "what": "tests/hardware/untrue_words.py", "date": datetime.date.today().isoformat(), "gpu": gpu,
            "commit": os.environ.get("FIREBREAK_COMMIT", ""), "linux": os.uname().release,
            "command": " ".join(["tests/hardware/untrue_words.py", "BIN", self.arguments.output.name] + sys.argv[3:]),
            "minutes": self.arguments.minutes, "claims": self.claims, **self.figures,
            **({} if good else {"log": said[-200:]})}, indent=1) + "\n")
        shutil.rmtree(self.scratch, ignore_errors=True)
        return 0 if good else 1


def main():
    if sys.argv[1:2] == ["--hostile"]:
        folder, seed, until = sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
        return be_hostile(folder + "/tenants.sock", folder, seed, until)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--steps", type=int, default=0, help="of the honest; 0: as many as that time has")
    parser.add_argument("--pace-ms", type=int, default=20)
    parser.add_argument("--kill-supervisor", action="store_true", help="at the end, by SIGKILL")
    run = Run(parser.parse_args())
    try:
        _, honest = run.play()
        run.judge(honest)
    finally:
        run.end()
    return run.write()


if __name__ == "__main__":
    sys.exit(main())
