#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hardening_test.py BUILD cet|no-cet: every program and every library that is installed is position independent, has
no writable code, is bound before it runs, with what that writes read-only afterwards, and was compiled with the stack
protector, _FORTIFY_SOURCE and, where the compiler has it, CET. Of _FORTIFY_SOURCE a file shows something only where the
compiler knew the size of what a function writes to: some have no such place, so each command of the build is looked at,
and three files that have one."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ENDBR64 = bytes.fromhex("f30f1efa")
# What the compiler makes of the C library's functions where it knows the size of what they write to.
CHECKED = re.compile(r"\b__\w+_chk\b")
HAVE_CHECKED = re.compile(r"firebreak|libfirebreak-guard\.so|libfirebreak\.so\.[\d.]+")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def installed(build, folder):
    output("cmake", "--install", build, "--prefix", str(folder))
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def functions(path):
    """That others call by a pointer: of a program main(), of a library what it exports."""
    for table in ("--symbols", "--dyn-syms"):
        rows = (line.split() for line in output("readelf", "--wide", table, str(path)).splitlines())
        found = [(row[7], int(row[1], 16)) for row in rows if len(row) == 8 and row[3] == "FUNC" and row[6].isdigit()]
        mains = [each for each in found if each[0] == "main"]
        if mains:
            return mains
    return [each for each in found if not each[0].startswith("_")]


def code_at(contents, headers, address):
    for row in (line.split() for line in headers.splitlines()):
        if row[:1] == ["LOAD"]:
            offset, begin, size = int(row[1], 16), int(row[2], 16), int(row[4], 16)
            if begin <= address < begin + size:
                return contents[address - begin + offset :][: len(ENDBR64)]
    return b""


def lacks(path, has_cet):
    dynamic = output("readelf", "--wide", "--dynamic", str(path))
    headers = output("readelf", "--wide", "--program-headers", str(path))
    wanted = output("nm", "--dynamic", "--undefined-only", str(path))
    if "Elf file type is DYN" not in headers:
        yield "it is not position independent"
    if not re.search(r"GNU_STACK.* RW +0x", headers):
        yield "its stack may be code"
    if re.search(r"LOAD .* RWE ", headers):
        yield "it has writable code"
    if "GNU_RELRO" not in headers or not re.search(r"BIND_NOW|FLAGS_1.*NOW", dynamic):
        yield "it is not bound before it runs (full RELRO)"
    if "__stack_chk_fail" not in wanted:
        yield "it has no stack protector"
    has_checked = any(name != "__stack_chk_fail" for name in CHECKED.findall(wanted))
    if HAVE_CHECKED.fullmatch(path.name) and not has_checked:
        yield "it calls no checked function (_FORTIFY_SOURCE)"
    called, contents = functions(path), memoryview(path.read_bytes())
    without = [name for name, address in called if code_at(contents, headers, address) != ENDBR64]
    if not called:
        yield "no function of it was found"
    if has_cet and without:
        yield f"{len(without)} of its {len(called)} functions do not begin as CET wants, {without[0]} for one"


def unchecked_commands(build):
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text(encoding="utf-8"))
    return [each["file"] for each in commands if "-D_FORTIFY_SOURCE=3" not in each["command"]]


def main():
    with tempfile.TemporaryDirectory() as folder:
        files = installed(sys.argv[1], pathlib.Path(folder))
        wrong = [f"{path.name}: {what}" for path in files for what in lacks(path, sys.argv[2] == "cet")]
        names = {path.name for path in files}
    wrong += [f"{file}: compiled without _FORTIFY_SOURCE" for file in unchecked_commands(sys.argv[1])]
    print("\n".join(wrong))
    assert {"firebreakd", "firebreak", "libfirebreak-guard.so"} <= names, names
    print(f"{len(names)} programs and libraries were looked at")
    sys.exit(1 if wrong else 0)


main()
