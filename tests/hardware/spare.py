#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that knows nothing of Firebreak, with a spare driver instance, on a real GPU: it is asked to leave its
domain again and again while it works, and compares every word of every result.

    tests/hardware/spare.py PROGRAMS OUTPUT.json [--leaves N] [--seconds S] [--program COMMAND...]

PROGRAMS: the folder with firebreak-checker; libfirebreak-guard.so lies in ../lib of it. Starts three MPS daemons of its
own in folders of its own, and ends them. FIREBREAK_COMMIT says what was built. Needs a GPU, nvidia-cuda-mps-control and nothing else."""
import argparse
import datetime
import json
import mmap
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

PAGE = struct.Struct("<QIIIIIIIII256s256s256s256s256s")  # src/shared/abi/spare_page.h
STATES = ["starting", "protected", "unprotected", "lost"]
MAGIC = 0x6572617073626672
ASKED, WAKE = 16, 28


class Page:
    def __init__(self, program, deadline):
        self.memory, self.program, pid = None, program, program.pid
        while self.memory is None and time.monotonic() < deadline:
            for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
                try:
                    if "firebreak-spare" in os.readlink(fd):
                        with open(fd, "r+b", buffering=0) as file:
                            self.memory = mmap.mmap(file.fileno(), 4096)
                except OSError:
                    pass
            time.sleep(0.01)
        if self.memory is None:
            raise TimeoutError("the process has no page")

    def read(self):
        magic, _, state, asked, answered, flips, _, _, _, _, _, _, active, spare, reason = (
            PAGE.unpack_from(self.memory))
        text = lambda raw: raw.split(b"\0")[0].decode()
        return {"magic": magic == MAGIC, "state": STATES[state], "asked": asked, "answered": answered, "flips": flips,
                "active": os.path.basename(text(active)), "spare": os.path.basename(text(spare)), "reason": text(reason)}

    def add(self, at):
        struct.pack_into("<I", self.memory, at, struct.unpack_from("<I", self.memory, at)[0] + 1)

    def wait(self, condition, deadline):
        """Null: it was not so until then, or until the program ended."""
        while time.monotonic() < deadline:
            now = self.read()
            if condition(now):
                return now
            if self.program.poll() is not None:
                return None
            time.sleep(0.0005)
        return None

    def ask_to_leave(self, deadline):
        asked = self.read()["asked"] + 1
        begin = time.monotonic()
        self.add(ASKED)
        self.add(WAKE)  # its keeper looks once a second at the latest, and sleeps on this word
        libc_futex_wake(self.memory, WAKE)
        answered = self.wait(lambda now: now["answered"] == asked, deadline)
        return answered, (time.monotonic() - begin) * 1e3


def libc_futex_wake(memory, at):
    import ctypes
    address = ctypes.addressof(ctypes.c_uint32.from_buffer(memory, at))
    ctypes.CDLL(None, use_errno=True).syscall(202, ctypes.c_void_p(address), 1, 2**31 - 1, None, None, 0)


def daemon(folder, name, command):
    environment = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/{name}", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/{name}.log"}
    for path in environment.values():
        os.makedirs(path, exist_ok=True)
    return subprocess.run(["nvidia-cuda-mps-control"] + (["-d"] if command is None else []),
                          input=command, text=True, env=os.environ | environment, timeout=30,
                          stdout=subprocess.DEVNULL, check=False)


def play(arguments, folder):
    environment = os.environ | {
        "CUDA_MPS_PIPE_DIRECTORY": f"{folder}/anchor",
        "FIREBREAK_SPARE": f"{folder}/a:{folder}/b",
        "LD_PRELOAD": str(arguments.programs.parent / "lib" / "libfirebreak-guard.so"),
    }
    if arguments.plain:
        environment = os.environ | {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/a"}
    command = arguments.program or [str(arguments.programs / "firebreak-checker"), "--seconds", str(arguments.seconds)]
    begin = time.monotonic()
    program = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    deadline = begin + arguments.seconds + 25
    leaves = []
    if arguments.plain:
        output, _ = program.communicate(timeout=deadline - begin)
        return {"exit": program.returncode, "output": output[-3000:]}
    page = Page(program, deadline)
    first = page.wait(lambda now: now["state"] != "starting", deadline)
    seen = {"first_state": first, "first_state_ms": (time.monotonic() - begin) * 1e3}
    for _ in range(arguments.leaves):
        if program.poll() is not None or page.wait(lambda now: now["state"] == "protected", time.monotonic() + 8) is None:
            break
        time.sleep(arguments.delay)
        answered, took_ms = page.ask_to_leave(deadline)
        leaves.append({"took_ms": round(took_ms, 3), "page": answered})
    seen["leaves"] = leaves
    seen["last_state"] = page.read()
    try:
        output, _ = program.communicate(timeout=max(1, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        trace = subprocess.run(["cuda-gdb", "-p", str(program.pid), "-batch", "-ex", "thread apply all bt 8"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False).stdout
        seen["where_it_hung"] = trace[-6000:]
        program.kill()
        output, _ = program.communicate()
    seen["exit"] = program.returncode
    seen["output"] = output[-3000:]
    return seen


def machine():
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                           stdout=subprocess.PIPE, timeout=30, check=False).stdout.strip()
    name, _, driver = asked.partition(", ")
    return {"gpu": name, "driver": driver, "linux": os.uname().release,
            "commit": os.environ.get("FIREBREAK_COMMIT", "unknown"), "date": datetime.date.today().isoformat()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--leaves", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds before each leave")
    parser.add_argument("--plain", action="store_true", help="without anything of ours, to compare with")
    parser.add_argument("--program", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    arguments.programs = arguments.programs.resolve()
    with tempfile.TemporaryDirectory(prefix="firebreak-spare-") as folder:
        names = ["a", "b", "anchor"]
        for name in names:
            daemon(folder, name, None)
        try:
            seen = play(arguments, folder)
        finally:
            for name in names:
                daemon(folder, name, "quit -t 5\n")
    seen = {"what": "tests/hardware/spare.py", "format": 1, "machine": machine(),
            "command": " ".join(["tests/hardware/spare.py", "PROGRAMS", arguments.output.name] + sys.argv[3:])
            .replace(f"{arguments.programs}/", "PROGRAMS/")} | seen
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({key: seen.get(key) for key in ("first_state", "last_state", "exit", "output")}, indent=1))
    if arguments.plain:
        return seen["exit"]
    print("left", sum(1 for each in seen["leaves"] if each["page"]), "times; ms:",
          [each["took_ms"] for each in seen["leaves"]])
    return 0 if seen["exit"] == 0 and seen["last_state"]["flips"] == len(seen["leaves"]) else 1


if __name__ == "__main__":
    sys.exit(main())
