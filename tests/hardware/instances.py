#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Driver instances brought up and thrown away one after another in one process (tests/hardware/instances.cpp), without
MPS and in two MPS domains in turns, as they are, after an exception, in the middle of a kernel, in the core dump mode.
For a machine with a GPU, g++ and MPS; some three minutes.

    tests/hardware/instances.py RESULT.json [--rounds 100] [--only HOW,...]

Exit 1 where a word was wrong, something was stored after the fence, or an instance did not go."""
import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ["tests/hardware/instances.cpp", "src/ground/base/result.cpp", "src/ground/os/closer.cpp",
           "src/ground/os/fd.cpp", "src/ground/os/library_behind.cpp", "src/ground/os/memory.cpp", "src/ground/os/self.cpp"]


def build(folder):
    sources = [ROOT / name for name in SOURCES]
    sources += [path for path in (ROOT / "src/program/instance").glob("*.cpp") if not path.name.endswith("_test.cpp")]
    includes = ["-I" + str(ROOT / "src"), "-I" + str(ROOT / "include")]

    def compile_one(source):
        made = str(folder / (source.stem + ".o"))
        subprocess.run(["g++", "-std=c++20", "-O2", "-g1", *includes, "-c", str(source), "-o", made], check=True)
        return made

    with concurrent.futures.ThreadPoolExecutor() as pool:
        objects = list(pool.map(compile_one, sources))
    program = str(folder / "instances")
    subprocess.run(["g++", *objects, "-o", program, "-ldl", "-lpthread"], check=True)
    return program


def play(program, rounds, how, pipes, environment):
    try:
        done = subprocess.run([program, str(rounds), how, *pipes], env=environment, capture_output=True, text=True,
                              timeout=120, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        result = json.loads(lines[-1]) if lines else {"how": how}
        result.update({"exit": done.returncode, "said": done.stderr[-6000:]})
    except subprocess.TimeoutExpired as late:
        result = {"how": how, "exit": "timeout", "said": str(late.stderr)[-800:]}
    result["domains"] = len(pipes)
    print(json.dumps(result), flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--only", default="none,trap,misaligned,busy,dump")
    options = parser.parse_args()
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_MPS")}
    plays = []
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        program = build(folder)
        plays.append(play(program, 5, "none", [], environment))
        # A domain whose only client died in the middle of a kernel takes nobody any more.
        if "busy" in options.only:
            plays.append(play(program, 12, "busy", [], environment))
        for how in (each for each in options.only.split(",") if each != "busy"):
            pipes = []
            for domain in ("a", "b"):
                pipe = folder / (how + "-" + domain)
                (pipe / "log").mkdir(parents=True)
                pipes.append(str(pipe))
                mps = dict(environment, CUDA_MPS_PIPE_DIRECTORY=str(pipe), CUDA_MPS_LOG_DIRECTORY=str(pipe / "log"))
                subprocess.run(["nvidia-cuda-mps-control", "-d"], env=mps, check=True, timeout=30)
            rounds = options.rounds if how in ("none", "trap") else max(options.rounds // 5, 4)
            plays.append(play(program, rounds, how, pipes, environment))
            for pipe in pipes:
                mps = dict(environment, CUDA_MPS_PIPE_DIRECTORY=pipe)
                try:
                    subprocess.run(["nvidia-cuda-mps-control"], input="quit -t 1\n", text=True, env=mps, timeout=15,
                                   check=False)
                except subprocess.TimeoutExpired:
                    pass
                if plays[-1]["exit"] != 0:
                    print((pathlib.Path(pipe) / "log" / "server.log").read_text(errors="replace")[-1500:])
    query = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=False).stdout.strip()
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=False).stdout.strip()
    with open(options.result, "w", encoding="ascii") as out:
        json.dump({"gpu": query, "date": datetime.date.today().isoformat(), "commit": commit, "plays": plays}, out,
                  indent=1)
    return 0 if all(each["exit"] == 0 for each in plays) else 1


if __name__ == "__main__":
    sys.exit(main())
