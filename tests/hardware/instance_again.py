#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Can a driver whose MPS domain has fallen, or is left, begin again in another one, once its primary context is reset?
Plays each way in a process of its own. For a machine with a GPU, root and MPS.

    instance_again.py RESULT.json [WAY...]"""
import ctypes
import datetime
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry fault() { trap; ret; }
.visible .entry count(.param .u64 at) {
  .reg .u64 %a; .reg .u32 %r;
  ld.param.u64 %a, [at]; cvta.to.global.u64 %a, %a;
  ld.global.u32 %r, [%a]; add.u32 %r, %r, 1; st.global.u32 [%a], %r; ret; }
"""


class Domain:
    def __init__(self, folder):
        self.folder = folder
        os.makedirs(folder + "/pipe"), os.makedirs(folder + "/log")
        self.environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": folder + "/pipe",
                            "CUDA_MPS_LOG_DIRECTORY": folder + "/log"}
        self.daemon = subprocess.Popen(["nvidia-cuda-mps-control", "-f"], env=self.environment,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, line):
        try:
            return subprocess.run(["nvidia-cuda-mps-control"], input=line + "\n", env=self.environment, timeout=10,
                                  capture_output=True, text=True, check=False).stdout.split()
        except subprocess.TimeoutExpired:
            return ["no answer"]

    def clients(self):
        return [[server, self.ask(f"get_client_list {server}")] for server in self.ask("get_server_list")]

    def end(self):
        """With its servers, which do not always listen any more."""
        servers = [server for server in self.ask("get_server_list") if server.isdigit()]
        self.daemon.kill()
        self.daemon.wait()
        for server in servers:
            subprocess.run(["kill", "-9", server], check=False)


class Client:
    """Of the driver: answers are [call, result] in `said`."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.said = []

    def call(self, name, *arguments):
        began = time.monotonic()
        result = getattr(self.cuda, name)(*arguments)
        self.said.append([name, result, round((time.monotonic() - began) * 1000, 1)])
        return result

    def begin(self):
        self.context, self.module, self.function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        self.memory = ctypes.c_uint64()
        return (self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
                or self.call("cuCtxSetCurrent", self.context)
                or self.call("cuMemAlloc_v2", ctypes.byref(self.memory), ctypes.c_size_t(4))
                or self.call("cuMemsetD32_v2", self.memory, ctypes.c_uint(0), ctypes.c_size_t(1))
                or self.call("cuModuleLoadData", ctypes.byref(self.module), PTX))

    def count(self):
        parameters = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(self.memory), ctypes.c_void_p))
        seen = ctypes.c_uint()
        _ = (self.call("cuModuleGetFunction", ctypes.byref(self.function), self.module, b"count")
             or self.call("cuLaunchKernel", self.function, 1, 1, 1, 1, 1, 1, 0, None, parameters, None)
             or self.call("cuCtxSynchronize")
             or self.call("cuMemcpyDtoH_v2", ctypes.byref(seen), self.memory, ctypes.c_size_t(4)))
        return seen.value

    def fault(self):
        self.call("cuModuleGetFunction", ctypes.byref(self.function), self.module, b"fault")
        self.call("cuLaunchKernel", self.function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        return self.call("cuCtxSynchronize")


def dump_mode(path):
    return {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1",
            "CUDA_COREDUMP_FILE": path, "CUDA_COREDUMP_GENERATION_FLAGS":
                "skip_abort,skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
                "skip_constbank_memory"}


def rogue(pipe):
    """Ends in its fault, or stands still in its core dump."""
    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = pipe
    client = Client()
    client.call("cuInit", 0)
    client.begin()
    client.fault()
    os._exit(0)


def child(way, first, second):
    """Each line of standard input is one step of it."""
    os.environ["CUDA_MPS_PIPE_DIRECTORY"] = first
    client = Client()
    client.call("cuInit", 0)
    client.begin()
    print(json.dumps(["first", client.count(), client.said]), flush=True)
    for turn in range(int(sys.stdin.readline())):
        sys.stdin.readline()  # its domain is as wanted
        client.said = []
        if way.startswith("held"):
            client.count()
        elif way != "left":
            client.call("cuCtxSynchronize")
        client.call("cuDevicePrimaryCtxReset_v2", 0)
        print(json.dumps(["reset", client.said, open("/proc/self/statm", encoding="utf-8").read().split()[1],
                          len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))]), flush=True)
        sys.stdin.readline()  # the next one serves
        client.said = []
        changes = way.endswith("other") or way == "left"
        os.environ["CUDA_MPS_PIPE_DIRECTORY"] = (second, first)[turn % 2] if changes else first
        began = client.begin()
        print(json.dumps(["again", client.count() if began == 0 else None, client.said]), flush=True)
    sys.stdin.readline()
    os._exit(0)


def now():
    return round(time.monotonic() * 1000)


def play(way, turns=4):
    scratch = tempfile.mkdtemp()
    first, second = Domain(scratch + "/a"), Domain(scratch + "/b")
    time.sleep(0.5)
    row = {"way": way, "turns": []}
    held = way.startswith("held")
    worker = subprocess.Popen(
        [sys.executable, __file__, "--child", way, first.folder + "/pipe", second.folder + "/pipe"],
        env={**os.environ, **(dump_mode(scratch + "/dump") if held else {})}, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def say(text):
        worker.stdin.write(text + "\n")
        worker.stdin.flush()

    def hear():
        if not select.select([worker.stdout], [], [], 15)[0]:
            raise TimeoutError("the program has not answered for 15 s")
        return json.loads(worker.stdout.readline() or '["ended"]')

    try:
        row["first"] = hear()
        say(str(turns))
        domains = [first, second]
        for turn in range(turns):
            here = domains[turn % 2] if way.endswith("other") or way == "left" else first
            one = {}
            beside = [sys.executable, __file__, "--rogue", here.folder + "/pipe"]
            if held:
                os.mkfifo(f"{scratch}/{turn}.pipe")
                culprit = subprocess.Popen(beside, env={**os.environ, **dump_mode(f"{scratch}/{turn}.pipe")})
                pipe = os.open(f"{scratch}/{turn}.pipe", os.O_RDONLY | os.O_NONBLOCK)
                time.sleep(2)
            elif way != "left":
                subprocess.run(beside, timeout=20, check=False)
            say("fallen")
            one["at"] = now()
            one["reset"] = hear()
            one["reset_at"] = now()
            if held:
                one["culprit_stood_still"] = culprit.poll() is None
                culprit.kill()
                culprit.wait()
                os.close(pipe)
                one["killed_at"] = now()
            if way.endswith("a new daemon"):
                first.end()
                shutil.rmtree(first.folder)
                first = Domain(scratch + "/a")
                domains[0] = first
            time.sleep(1)
            say("next")
            one["again"] = hear()
            one["again_at"] = now()
            one["clients"] = [domain.clients() for domain in domains]
            row["turns"].append(one)
            print(json.dumps(one), file=sys.stderr, flush=True)
            if one["again"][0] == "ended":
                break
        say("end")
        worker.wait(10)
    except (subprocess.TimeoutExpired, BrokenPipeError, TimeoutError) as why:
        row["broke_off"] = repr(why)
        row["the_turn"] = one
    finally:
        worker.kill()
        worker.wait()
        first.end()
        second.end()
        shutil.rmtree(scratch, ignore_errors=True)
    print(json.dumps(row), flush=True)
    return row


def main():
    if sys.argv[1] == "--child":
        child(*sys.argv[2:5])
    if sys.argv[1] == "--rogue":
        rogue(sys.argv[2])
    ways = ["left", "held", "held, a new daemon", "fallen, other", "fallen, the same", "a new daemon"]
    rows = [play(way) for way in ways if way in sys.argv[2:] or len(sys.argv) == 2]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({
            "what": "one copy of the driver, reset and begun again under MPS",
            "date": datetime.date.today().isoformat(),
            "commit": os.environ.get("FIREBREAK_COMMIT", ""),
            "device": subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                     capture_output=True, text=True, check=False).stdout.strip(),
            "command": "tests/hardware/" + " ".join([os.path.basename(sys.argv[0])] + sys.argv[1:]),
            "rows": rows}, out, indent=1)


main()
