#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NVIDIA's driver library imports, what its constructors call, and how often it calls each import in a program's
usual calls: without MPS, as a client of MPS, and with an exception at the end. It is loaded behind a library of rows
that the linker looks at first (RTLD_DEEPBIND), as an instance's copy is. For a machine with a GPU, g++ and MPS; 15 s.

    tests/hardware/driver_imports.py RESULT.json [--library PATH] [--no-mps]
"""
import argparse
import ctypes
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def driver_path():
    ctypes.CDLL("libcuda.so.1")
    with open("/proc/self/maps", encoding="ascii") as maps:
        return next(line.split()[-1] for line in maps if "/libcuda.so" in line)


def build(folder, library):
    source = str(HERE / "driver_imports.cpp")
    copy, rows, program, named = (str(folder / name) for name in ("libcuda-copy.so", "rows.so", "program", "named.so"))
    shutil.copyfile(library, copy)
    common = ["g++", "-std=c++17", "-O1", "-w"]
    # The copy calls itself libcuda.so.1, and is to be found by its path.
    subprocess.run([*common, "-shared", "-x", "c", "/dev/null", "-o", named, "-Wl,-soname," + copy], check=True)
    subprocess.run([*common, "-shared", "-fPIC", "-DROWS", source, "-o", rows, "-ldl", "-Wl,--no-as-needed", named],
                   check=True)
    subprocess.run([*common, source, "-o", program, "-ldl", "-lpthread"], check=True)
    return [program, rows, copy]


def play(command, how, environment):
    done = subprocess.run([*command, how], env=environment, capture_output=True, text=True, timeout=90, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    result = json.loads(lines[-1]) if lines else {}
    result["exit"] = done.returncode
    result["said"] = done.stderr[-2000:]
    return result


def bound_by_constructors(command, folder):
    """What the dynamic linker bound lazily while the copy's constructors ran; empty also where it binds at once."""
    environment = dict(os.environ, LD_DEBUG="files,bindings", LD_DEBUG_OUTPUT=str(folder / "linker"))
    subprocess.run([*command, "lazy"], env=environment, capture_output=True, timeout=90, check=False)
    names, is_inside = [], False
    for log in folder.glob("linker.*"):
        for line in log.read_text(errors="replace").splitlines():
            if "calling init:" in line:
                is_inside = command[2] in line
            elif "calling fini:" in line or "opening file=" in line:
                is_inside = False
            elif is_inside and "binding file " + command[2] in line:
                names.append(line.split("`")[-1].split("'")[0])
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("--library")
    parser.add_argument("--no-mps", action="store_true")
    options = parser.parse_args()
    library = options.library or driver_path()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        command = build(folder, library)
        plain = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_MPS")}
        result = {"library": os.path.realpath(library), "date": datetime.date.today().isoformat(),
                  "bound_by_constructors": bound_by_constructors(command, folder),
                  "without_mps": play(command, "plain", plain)}
        if not options.no_mps:
            mps = dict(plain, CUDA_MPS_PIPE_DIRECTORY=name + "/mps", CUDA_MPS_LOG_DIRECTORY=name + "/log")
            os.mkdir(name + "/mps")
            os.mkdir(name + "/log")
            subprocess.run(["nvidia-cuda-mps-control", "-d"], env=mps, check=True, timeout=30)
            try:
                result["under_mps"] = play(command, "plain", mps)
                mode = dict(mps, CUDA_ENABLE_COREDUMP_ON_EXCEPTION="1", CUDA_COREDUMP_FILE=name + "/core",
                            CUDA_COREDUMP_GENERATION_FLAGS="skip_global_memory,skip_abort")
                result["with_a_trap_in_the_core_dump_mode"] = play(command, "trap", mode)
            finally:
                subprocess.run(["nvidia-cuda-mps-control"], input="quit\n", text=True, env=mps, timeout=30, check=False)
    with open(options.result, "w", encoding="ascii") as out:
        json.dump(result, out, indent=1)
    for key, value in result.items():
        print(key, json.dumps(value)[:3000])
    return 0 if result["without_mps"].get("phases") else 1


if __name__ == "__main__":
    sys.exit(main())
