#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Can a program be put into CUDA's core dump mode, and taken out of it, by calls of the driver? At which moment? Each
case is a process of its own whose kernel traps. For a machine with a GPU; needs the driver alone.

    core_dump_api.py RESULT.json [--case NAME]

With CUDA_MPS_PIPE_DIRECTORY set the processes are clients of that MPS domain, one after the other."""
import ctypes
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry fault() { trap; ret; }
.visible .entry nothing() { ret; }
"""
ENABLE, LIGHTWEIGHT, FILE, FLAGS = 1, 3, 5, 7
SKIP_ALL = 0x3f
WHENS = ["before cuInit", "before the context", "after the context", "to the context"]
#       environment, in the mode by calls, out of it by calls, another file by calls
CASES = {
    "neither": (False, None, None, None),
    "environment": (True, None, None, None),
    **{f"on {when}": (False, when, None, None) for when in WHENS},
    **{f"environment, off {when}": (True, None, when, None) for when in WHENS},
    **{f"environment, another file {when}": (True, None, None, when) for when in WHENS},
}


class Driver:
    def __init__(self, library="libcuda.so.1"):
        self.library = ctypes.CDLL(library)
        self.said = []

    def __getattr__(self, name):
        function = getattr(self.library, name)
        return lambda *arguments: function(*arguments)

    def set(self, setting, value, of_context):
        raw = value if isinstance(value, bytes) else int(value).to_bytes(4 if setting == FLAGS else 1, "little")
        size = ctypes.c_size_t(len(raw))
        call = "cuCoredumpSetAttribute" if of_context else "cuCoredumpSetAttributeGlobal"
        self.said.append([call, setting, getattr(self.library, call)(setting, raw, ctypes.byref(size))])

    def get(self, setting, of_context):
        room = ctypes.create_string_buffer(1024)
        size = ctypes.c_size_t({FILE: len(room), FLAGS: 4}.get(setting, 1))
        call = "cuCoredumpGetAttribute" if of_context else "cuCoredumpGetAttributeGlobal"
        result = getattr(self.library, call)(setting, room, ctypes.byref(size))
        if result:
            return f"error {result}"
        return room.value.decode() if setting == FILE else int.from_bytes(room.raw[:4 if setting == FLAGS else 1], "little")

    def settings(self, of_context):
        return {name: self.get(setting, of_context) for name, setting in
                (("enable", ENABLE), ("lightweight", LIGHTWEIGHT), ("file", FILE), ("flags", FLAGS))}


def child(name, path):
    _, on, off, other = CASES[name]
    driver = Driver()

    def at(when):
        of_context = when == "to the context"
        if on == when:
            driver.set(LIGHTWEIGHT, 1, of_context)
            driver.set(FLAGS, SKIP_ALL, of_context)
            driver.set(FILE, path.encode() + b"\0", of_context)
            driver.set(ENABLE, 1, of_context)
        if off == when:
            driver.set(ENABLE, 0, of_context)
        if other == when:
            driver.set(FILE, path.encode() + b".other\0", of_context)

    at("before cuInit")
    answers = {"cuInit": driver.cuInit(0)}
    at("before the context")
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    answers["cuDevicePrimaryCtxRetain"] = driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    at("after the context")
    at("to the context")
    answers["cuModuleLoadData"] = driver.cuModuleLoadData(ctypes.byref(module), PTX.encode())
    seen = {"of the process": driver.settings(False), "of the context": driver.settings(True)}
    for kernel in (b"nothing", b"fault"):
        driver.cuModuleGetFunction(ctypes.byref(function), module, kernel)
        driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, None, None)
        began = time.monotonic()
        answers[kernel.decode()] = driver.cuCtxSynchronize()
    answers["ms"] = round((time.monotonic() - began) * 1000, 1)
    print(json.dumps({"set": driver.said, "answers": answers, "settings": seen}), flush=True)
    os._exit(0)


def play(name):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/dump"
        environment = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_COREDUMP")}
        if CASES[name][0]:
            environment.update({
                "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1",
                "CUDA_COREDUMP_FILE": path, "CUDA_COREDUMP_GENERATION_FLAGS":
                    "skip_abort,skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
                    "skip_constbank_memory"})
        try:
            done = subprocess.run([sys.executable, __file__, "--child", name, path], env=environment, timeout=40,
                                  capture_output=True, text=True, check=False)
            row = {"case": name, "ended_with": done.returncode, "error": done.stderr[-300:]}
            row.update(json.loads(done.stdout or "{}"))
        except subprocess.TimeoutExpired:
            row = {"case": name, "ended_with": "40 s"}
        row["dumps"] = {file: os.path.getsize(f"{folder}/{file}") for file in sorted(os.listdir(folder))}
    print(json.dumps(row), flush=True)
    return row


def main():
    if sys.argv[1] == "--child":
        child(sys.argv[2], sys.argv[3])
    wanted = [sys.argv[3]] if "--case" in sys.argv else list(CASES)
    driver, version = Driver(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({
            "what": "CUDA's core dump mode by calls of the driver", "date": datetime.date.today().isoformat(),
            "commit": os.environ.get("FIREBREAK_COMMIT", ""), "cuda_driver": version.value,
            "device": subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                                     capture_output=True, text=True, check=False).stdout.strip(),
            "mps": bool(os.environ.get("CUDA_MPS_PIPE_DIRECTORY")),
            "command": "tests/hardware/" + " ".join([os.path.basename(sys.argv[0])] + sys.argv[1:]),
            "rows": [play(name) for name in wanted]}, out, indent=1)


if __name__ == "__main__":
    main()
