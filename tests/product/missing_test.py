#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""missing_test.py PROGRAMS: where something of the machine is missing, one line says what, and what to do."""

import os
import pathlib
import subprocess
import sys
import tempfile

PATIENCE_S = 120
GPU = "GPU-66697265-6272-6561-6b2d-736f66742d30"
FULL = """
mount -t tmpfs -o size=64k tmpfs "$0"
mkdir "$0/d"
dd if=/dev/zero of="$0/fill" bs=4k 2>/dev/null || :  # it ends when that is full
exec "$@"
"""
READ_ONLY = """
mount -t tmpfs -o ro tmpfs "$0"
exec "$@"
"""
EMPTY = """
mount -t tmpfs tmpfs "$0"
exec "$@"
"""


def ended(*command, **variables):
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
                          env={**os.environ, "FIREBREAK_GPU": "soft", **variables})
    return done.returncode, done.stderr


def expect(wanted, how):
    assert how == wanted, f"it ended with {how[0]} and {how[1]!r}\nin place of {wanted[0]} and {wanted[1]!r}"


def in_namespace(script, folder, *command):
    return ended("unshare", "--mount", "--propagation", "private", "sh", "-ec", script, folder, *command)


def main():
    programs = pathlib.Path(sys.argv[1])
    agent, tool = str(programs / "firebreakd"), str(programs / "firebreak")
    with tempfile.TemporaryDirectory() as folder:
        there = f"{folder}/agent"
        expect((1, "firebreakd: there is no group 'firebreak-nobodys' (make it with groupadd --system)\n"),
               ended(agent, "--directory", there, "--tenant-group", "firebreak-nobodys"))
        for gpu in ("GPU-7", "7"):
            no_gpu = f"there is no GPU '{gpu}' (there is {GPU})\n"
            expect((1, f"firebreakd: {no_gpu}"), ended(agent, "--directory", there, "--gpu", gpu))
            # Neither needs an agent to know that.
            run = (tool, "run", "--socket", f"{folder}/none.sock", "--wait-s", "0")
            expect((125, f"firebreak: {no_gpu}"), ended(*run, "--gpu", gpu, "--", "true"))
        expect((125, f"firebreak: there is no GPU 'GPU-7' (there is {GPU})\n"),
               ended(*run, "--", "true", CUDA_VISIBLE_DEVICES="GPU-7"))
        if os.getuid() != 0 or ended("unshare", "--mount", "true")[0] != 0:
            print("the rest is skipped: nobody may mount here")
            return
        expect((1, f"firebreakd: write {folder}/d/agent.lock: No space left on device"
                   " (free space on that file system, or name a folder on another one)\n"),
               in_namespace(FULL, folder, agent, "--directory", f"{folder}/d"))
        libraries = (programs / "../lib/softgpu").resolve()
        status, said = in_namespace(EMPTY, str(libraries), agent, "--directory", there)
        assert status == 1 and said.startswith("firebreakd: the software GPU is not installed: "), said
        assert said.endswith(" (build it, or set FIREBREAK_GPU=real)\n"), said
        expect((1, f"firebreakd: {folder}/d: make the directory {folder}/d: Read-only file system"
                   " (name a folder on a file system that is not mounted read-only)\n"),
               in_namespace(READ_ONLY, folder, agent, "--directory", f"{folder}/d"))


main()
