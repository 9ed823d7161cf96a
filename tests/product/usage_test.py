#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage_test.py PROGRAMS: what is mistyped, and what fails before a program has begun, is one line and a status."""

import os
import pathlib
import resource
import subprocess
import sys

PATIENCE_S = 120
USAGE, OWN_FAILURE = 2, 125
MISTYPED = (  # what is called; the status; what is said behind its name
    ("firebreak run --gaurd -- true", OWN_FAILURE, "`firebreak run` has no option --gaurd (did you mean --guard?)"),
    ("firebreak status --jsn", USAGE, "`firebreak status` has no option --jsn (did you mean --json?)"),
    ("firebreak statsu", USAGE, "there is no command 'statsu' (did you mean status?)"),
    ("firebreak-lab victm", USAGE, "there is no command 'victm' (did you mean victim?)"),
    ("firebreakd --park-z 5", USAGE, "`firebreakd` has no option --park-z (did you mean --park-s?)"),
    ("firebreakd --park-s soon", USAGE, "--park-s: Value soon "),
    ("firebreakd --park-s", USAGE, "--park-s: "),
    ("firebreak-exporter --lisen 1:2", USAGE, "`firebreak-exporter` has no option --lisen (did you mean --listen?)"),
    ("firebreak-k8s --seets 3", USAGE, "`firebreak-k8s` has no option --seets (did you mean --seats?)"),
    ("firebreak-nri --sokcet x", USAGE, "`firebreak-nri` has no option --sokcet (did you mean --socket?)"),
)
UNKNOWN_GPU = "FIREBREAK_GPU is 'sfot' (use real or soft)"
NO_THREAD = "no thread can be started ("
NEVER_S = 86400  # what is waited for an agent that does not come
MORE_THAN_THERE_IS_BYTES = 1 << 47  # of addresses, for the stack of a thread


def take_threads_away():
    resource.setrlimit(resource.RLIMIT_STACK, (MORE_THAN_THERE_IS_BYTES, resource.RLIM_INFINITY))


def leave_descriptors(count):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def check_full_disk(programs):
    for command, status in (("firebreak --help", 1), ("firebreak doctor", 1), ("firebreak run --help", OWN_FAILURE)):
        words = command.split()
        with open("/dev/full", "wb") as full:
            done = subprocess.run([programs / words[0], *words[1:]], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
                                  timeout=PATIENCE_S, env={**os.environ, "FIREBREAK_GPU": "soft"})
        assert done.returncode == status, (command, done)
        assert done.stderr.startswith("firebreak: write standard output: No space left on device"), (command, done)


def ended(programs, command, before=None, gpu="soft"):
    words = command.split()
    done = subprocess.run([programs / words[0], *words[1:]], capture_output=True, text=True, timeout=PATIENCE_S,
                          check=False, env={**os.environ, "FIREBREAK_GPU": gpu}, preexec_fn=before)
    return done.returncode, done.stdout, done.stderr


def expect(command, status, beginning, how):
    name = command.split(maxsplit=1)[0]
    assert how[0] == status, (command, how)
    assert how[2].startswith(f"{name}: {beginning}") and how[2].count("\n") == 1 and how[1] == "", (command, how)


def main():
    programs = pathlib.Path(sys.argv[1])
    for command, status, beginning in MISTYPED:
        expect(command, status, beginning, ended(programs, command))
    for command, status in (("firebreak run -- true", OWN_FAILURE), ("firebreak status", USAGE), ("firebreak doctor", USAGE),
                            ("firebreakd", 1)):
        expect(command, status, UNKNOWN_GPU, ended(programs, command, gpu="sfot"))
    check_full_disk(programs)
    for count in range(5, 8):  # some for the streams, and none for an event loop, then none for a socket
        how = ended(programs, f"firebreak run --wait-s {NEVER_S} -- true", lambda: leave_descriptors(count))
        assert how[0] == OWN_FAILURE and how[1] == "" and how[2].endswith(": Too many open files\n"), (count, how)
    if resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY:
        print("the rest is skipped: threads cannot be taken away here")
        return
    for command, status in ((f"firebreak run --wait-s {NEVER_S} -- true", OWN_FAILURE), ("firebreak run --pair --name p -- true", OWN_FAILURE)):
        expect(command, status, NO_THREAD, ended(programs, command, take_threads_away))


main()
