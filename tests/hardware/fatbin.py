#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Firebreak reads of fat binaries, beside what NVIDIA's cuobjdump says of the same files.

    tests/hardware/fatbin.py PROGRAMS OUTPUT.json [FILE...] [--arch sm_90]

PROGRAMS: the folder with firebreak. FILE: programs and libraries; without one all of PyTorch's, if Python finds it. Needs
cuobjdump (PATH, CUDA_HOME or --cuobjdump), and no GPU. Compares how many cubins and PTX texts there are of each
architecture, and the names of all variables in the cubins of --arch. Fails where Firebreak misses an entry, or names a
variable that cuobjdump does not know. What cuobjdump names beyond that (shared memory) is only told. FIREBREAK_COMMIT
says what was built."""
import argparse
import collections
import datetime
import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time

ENTRY = re.compile(r"^  (elf|ptx|kind\d+) (\d+a?) (\w+) (\d+) (\d+)$")
LISTED = re.compile(r"^(ELF|PTX) file +\d+: .*\.sm_(\d+[af]?)\.(?:cubin|ptx)$")
SYMBOL = re.compile(r"^STT_OBJECT +(STB_\w+) +(\S+) +(\S+)$")


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    return done.returncode, done.stdout, done.stderr.strip()


def number(arch):
    return re.match(r"\d+", arch).group()


def ours(firebreak, path, arch):
    started = time.monotonic()
    code, text, error = output_of(firebreak, "explain", path, "--variables")
    found = {"seconds": round(time.monotonic() - started, 3), "entries": collections.Counter(),
             "compression": collections.Counter(), "obstacles": collections.Counter(), "variables": collections.Counter(),
             "may_change": 0, "error": error if code else None}
    kind, of_arch = None, None
    for line in text.splitlines():
        words = line.split()
        entry = ENTRY.match(line)
        if entry:
            kind, of_arch = entry.group(1), number(entry.group(2))
            found["entries"][f"{kind} {of_arch}"] += 1
            found["compression"][entry.group(3)] += 1
        elif line.startswith("    obstacle"):
            found["obstacles"][line.strip()] += 1
        elif line.startswith("    variable") and kind == "elf" and of_arch == number(arch):
            found["variables"][words[1]] += 1
            found["may_change"] += words[2] == "global" and "reached" in words and "literal" not in words
    return found


def theirs(cuobjdump, path, arch):
    found = {"entries": collections.Counter(), "variables": collections.Counter()}
    for kind, option in (("elf", "-lelf"), ("ptx", "-lptx")):
        for line in output_of(cuobjdump, option, path)[1].splitlines():
            listed = LISTED.match(line.strip())
            if listed:
                found["entries"][f"{kind} {number(listed.group(2))}"] += 1
    for line in output_of(cuobjdump, "-symbols", "-arch", "sm_" + arch, path)[1].splitlines():
        symbol = SYMBOL.match(line.strip())
        if symbol:
            found["variables"][symbol.group(3)] += 1
    return found


def compare(options, path):
    mine = ours(os.path.join(options.programs, "firebreak"), path, options.arch)
    other = theirs(options.cuobjdump, path, options.arch)
    kinds = [kind for kind in other["entries"] | mine["entries"] if not kind.startswith("kind")]
    differ = {kind: [mine["entries"][kind], other["entries"][kind]] for kind in sorted(kinds)
              if mine["entries"][kind] != other["entries"][kind]}
    names = lambda counter: dict(counter.most_common(50))
    return {"file": os.path.basename(path), "bytes": os.path.getsize(path), "seconds": mine["seconds"],
            "error": mine["error"], "entries": dict(sorted(mine["entries"].items())),
            "compression": dict(mine["compression"]), "obstacles": dict(mine["obstacles"]),
            "variables": mine["variables"].total(), "variables_that_may_change": mine["may_change"],
            "entries_that_differ": differ, "unknown_to_cuobjdump": names(mine["variables"] - other["variables"]),
            "more_in_cuobjdump": names(other["variables"] - mine["variables"]),
            "same": not differ and not mine["error"] and not mine["variables"] - other["variables"]}


def torch_libraries():
    found = importlib.util.find_spec("torch")
    folder = found.submodule_search_locations[0] if found else ""
    return sorted(glob.glob(os.path.join(folder, "lib", "*cuda*.so"))) if folder else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs")
    parser.add_argument("output")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--cuobjdump")
    options = parser.parse_args()
    options.arch = options.arch.removeprefix("sm_")
    beside = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "cuobjdump")
    options.cuobjdump = options.cuobjdump or shutil.which("cuobjdump") or beside
    if not os.access(options.cuobjdump, os.X_OK):
        sys.exit("no cuobjdump: name it with --cuobjdump")
    files = options.files or torch_libraries()
    if not files:
        sys.exit("no file, and no PyTorch")
    results = [compare(options, path) for path in files]
    document = {"date": datetime.date.today().isoformat(), "commit": os.environ.get("FIREBREAK_COMMIT", ""),
                "command": " ".join(sys.argv), "arch": options.arch,
                "cuobjdump": output_of(options.cuobjdump, "--version")[1].strip().splitlines()[-1:], "files": results}
    with open(options.output, "w") as file:
        json.dump(document, file, indent=2)
        file.write("\n")
    for each in results:
        print(f"{each['file']}: {'same' if each['same'] else 'DIFFERENT'}, {each['variables']} variables, "
              f"{each['variables_that_may_change']} may change, {each['seconds']} s")
    return 0 if all(each["same"] for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
