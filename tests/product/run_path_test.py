#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""No program and no library of the build has a run path with an element that depends on where it is started: an empty
one, or one that does not begin at a folder that is known.

usage: run_path_test.py READELF BUILD_FOLDER
"""
import pathlib
import re
import subprocess
import sys


def elements(readelf, file):
    dynamic = subprocess.run([readelf, "--dynamic", file], capture_output=True, text=True, check=True).stdout
    for path in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
        yield from path.split(":")


def is_elf(file):
    with open(file, "rb") as opened:
        head = opened.read(18)
    return head[:4] == b"\x7fELF" and head[16] in (2, 3)  # a program or a library


def main():
    readelf, build = sys.argv[1], pathlib.Path(sys.argv[2])
    read, wrong = 0, []
    for file in sorted(build.rglob("*")):
        if file.is_symlink() or not file.is_file() or file.suffix in (".o", ".a") or not is_elf(file):
            continue
        read += 1
        wrong += [f"{file.relative_to(build)}: '{each}'" for each in elements(readelf, file)
                  if not each.startswith(("/", "$ORIGIN"))]
    print("\n".join(wrong))
    print(f"{read} files read, {len(wrong)} elements that depend on where they are started")
    sys.exit(0 if read > 0 and not wrong else 1)


main()
