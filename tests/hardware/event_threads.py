#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What MPS servers and their clients say to each other of an exception: strace on each thread `cuda-EvtHandlr`, as they
come. For a machine with a GPU, root and strace, beside llm_server.py or spare_faults.py, until it is interrupted.

    tests/hardware/event_threads.py FOLDER [--strace COMMAND]

A file NAME-PID-THREAD for each thread. A server writes one message to each client; a client whose dump is complete
answers 0 and 2 in the words at 16 and 20, and one that does not dump 1 and a number."""
import argparse
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time


def read(path):
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip("\0\n")
    except OSError:
        return ""


def event_threads():
    """Of everybody: (name of the process, its number, thread)."""
    for folder in pathlib.Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            threads = [each.name for each in (folder / "task").iterdir()]
        except OSError:
            continue
        for thread in threads:
            if read(folder / "task" / thread / "comm") == "cuda-EvtHandlr":
                yield os.path.basename(read(folder / "cmdline").split("\0")[0].split(" ")[0]), folder.name, thread


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--strace", default="strace")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    traced, tracers = set(), []
    try:
        while True:
            for name, pid, thread in event_threads():
                if thread in traced:
                    continue
                traced.add(thread)
                tracers.append(subprocess.Popen(
                    shlex.split(arguments.strace) + ["-tt", "-y", "-x", "-s", "48", "-o",
                                                     str(arguments.folder / f"{name}-{pid}-{thread}"), "-p", thread],
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            time.sleep(0.05)
    except KeyboardInterrupt:
        pass
    finally:
        for each in tracers:
            each.terminate()


if __name__ == "__main__":
    main()
