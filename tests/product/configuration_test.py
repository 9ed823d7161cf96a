#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""configuration_test.py FIREBREAKD PACKAGED_FILE: what it says of its configuration file, each time in one line."""

import pathlib
import subprocess
import sys
import tempfile

CASES = (  # the file; the exit status; what is said after "firebreakd: FILE"
    ("lease-s = 120\nspares = true\nsparse = false\ngpu = ['GPU-1', 'GPU-2']\n", 0, " is in order"),
    ("", 0, " is in order"),
    ("lease-s = 120\nleese-s = 1\n", 1, ", line 2: there is no key 'leese-s' (a key is an option of `firebreakd --help`"),
    ("lease-s = -1\n", 1, ": --lease-s: "),
    ("lease-s = 'long'\n", 1, ": "),
    ("lease-s = [1, 2]\n", 1, ": "),
    ("strays = 'forgive'\n", 1, ": --strays: "),
    ("spares = 1\n", 1, ", line 1: 'spares' is true or false ("),
    ("lease-s = true\n", 1, ", line 1: 'lease-s' has a value ("),
    ("supervised = true\n", 1, ", line 1: 'supervised' is for the command line alone ("),
    ("shelf = true\n", 1, ", line 1: 'shelf' is for the command line alone ("),
    ("lease-s 120\n", 1, ", line 1: "),
    ("[domains]\nlease-s = 1\n", 1, ", line 1: 'domains' is no value"),
)


def check(program, path, *arguments):
    command = [program, "--check", "--config", str(path), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def main():
    program, packaged = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "f.toml")
        for text, wanted, beginning in CASES:
            path.write_text(text)
            status, said = check(program, path)
            assert status == wanted, (text, status, said)
            assert said.startswith(f"firebreakd: {path}{beginning}"), (text, said)
            assert said.count("\n") == 1 and said.endswith("\n"), (text, said)
        # What the command line says itself is not read from the file.
        path.write_text("strays = 'forgive'\n")
        assert check(program, path, "--strays", "end")[0] == 0
        status, said = check(program, pathlib.Path(folder, "none.toml"))
        assert status == 1 and "none.toml" in said, said
    status, said = check(program, packaged)
    assert status == 0, said


main()
