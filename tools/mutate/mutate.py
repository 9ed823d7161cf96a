#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Changes one small thing of a source at a time, and looks whether its folder's tests notice.

A mutant that no test notices is a survivor. Those that are known stand in survivors.txt, each with the reason
why no test could or need notice; any other is a failure. The set "promises" is by hand (promises.toml): each of
its mutants takes away what a promise rests on. Works on a copy of the tree, so that the checkout and its build
stay as they are. ccache finds what the checkout has compiled only where the copy lies as deep: --tree says where.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "build" / "mutate"
TREE = SCRATCH / "tree"  # --tree
BUILD = "build/dev"
MARK = "build/copied_by_mutate"  # what else lies in a copy is deleted, so only where this is
SURVIVORS = pathlib.Path(__file__).resolve().parent / "survivors.txt"
PROMISES = pathlib.Path(__file__).resolve().parent / "promises.toml"

# A set: its sources, the programs that test them.
SETS = {
    "pair": (["src/agent/tenants/pair/pair.cpp"], ["pair_test"]),
    "journal": (
        [
            "src/program/journal/commit_checksum.cpp",
            "src/program/journal/commit_entry.cpp",
            "src/program/journal/commit_recovery.cpp",
            "src/program/journal/commit_writer.cpp",
            "src/program/journal/image_marks.cpp",
            "src/program/journal/payload_space.cpp",
            "src/shared/abi/commit_journal.h",
            "src/shared/abi/shared_page.h",
        ],
        ["journal_test", "abi_test"],
    ),
    "client": (
        ["src/program/client/session.cpp", "src/program/client/session_clients.cpp", "src/shared/link/agent_link.cpp"],
        ["client_library_test", "client_test", "link_test"],
    ),
    "agent": (
        [
            "src/agent/firebreakd/agent.cpp",
            "src/agent/tenants/answers.cpp",
            "src/agent/tenants/credentials.cpp",
            "src/agent/endings/deaths.cpp",
            "src/agent/tenants/decide.cpp",
            "src/agent/tenants/descriptor_budget.cpp",
            "src/agent/endings/endings.cpp",
            "src/agent/pairs/follower.cpp",
            "src/agent/firebreakd/joins.cpp",
            "src/agent/tenants/kept_state.cpp",
            "src/agent/pairs/pairs.cpp",
            "src/agent/domains/placement.cpp",
            "src/agent/tenants/placements.cpp",
            "src/agent/tenants/process.cpp",
            "src/agent/tenants/promoter.cpp",
            "src/agent/tenants/recent_faults.cpp",
            "src/agent/tenants/records.cpp",
            "src/agent/firebreakd/restart.cpp",
            "src/agent/firebreakd/strays.cpp",
            "src/agent/tenants/tenant.cpp",
            "src/agent/tenants/tenant_clients.cpp",
            "src/agent/tenants/tenant_memory.cpp",
            "src/agent/tenants/tenants.cpp",
            "src/agent/tenants/warm_standbys.cpp",
        ],
        ["agent_test"],
    ),
}

TOKEN_SWAPS = [
    ("comparison", r"==", "!="),
    ("comparison", r"!=", "=="),
    ("comparison", r"(?<![<>=\-])<=(?!>)", "<"),
    ("comparison", r"(?<![<>=\-])>=", ">"),
    ("comparison", r" < ", " <= "),
    ("comparison", r" > ", " >= "),
    ("logic", r"&&", "||"),
    ("logic", r"\|\|", "&&"),
    ("constant", r"\btrue\b", "false"),
    ("constant", r"\bfalse\b", "true"),
    ("arithmetic", r" \+ (?=[\w(])", " - "),
    ("arithmetic", r" - (?=[\w(])", " + "),
]
NAMES = {
    "Phase": ["Empty", "Serving", "Suspecting", "Orphaned", "Promoting", "Lost", "Finished"],
    "Standby": ["None", "Joined", "Ready"],
}
NUMBER = re.compile(r"(?<![\w.'\"])(\d+)(?![\w.'\"])")
STATEMENT = re.compile(r"^\s*(\+\+|--)?[A-Za-z_][\w:>.\-\[\]()*& %]*(\(.*\)|\s[-+|&^]?=\s.*|\+\+|--);$")
NOT_A_STATEMENT = re.compile(
    r"^\s*(return|throw|using|namespace|static|const|auto|case|default|break|continue|goto|if|else|for|while|do|"
    r"struct|class|enum|template|typedef|inline|constexpr|explicit|friend|public|private)\b"
)
DECLARATION = re.compile(r"^\s*[\w:<>]+(<.*>)?[&*]* [&*]*\w+( = |\(|;)")
VOID_FUNCTION = re.compile(r"^void [\w:~]+\(.*\) (const )?\{$")
ELEMENT = re.compile(r"\{ActionType::[^{}]*(\{\})?[^{}]*\}|end_old_active\(\)|lost\(\"[^\"]*\"\)")


class Mutant:
    def __init__(self, path, number, kind, before, after):
        self.path, self.number, self.kind, self.before, self.after = path, number, kind, before, after
        self.ordinal = 0  # of those that look the same

    def key(self):
        name = f"{self.path}: {' '.join(self.before.split())} => {' '.join(self.after.split()) or '(nothing)'}"
        return name + (f" #{self.ordinal + 1}" if self.ordinal else "")


def code_of(line):
    """The line with its strings and its comment blanked out, at the same length."""
    blanked = re.sub(r'"(\\.|[^"\\])*"', lambda m: '"' + " " * (len(m.group()) - 2) + '"', line)
    at = blanked.find("//")
    return blanked if at < 0 else blanked[:at] + " " * (len(line) - at)


def closing(code, opening):
    depth = 0
    for at in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        if depth == 0:
            return at
    return -1


def without_element(line, begin, end):
    """One element of a list, with the comma that goes with it."""
    after = re.match(r",\s*", line[end:])
    if after:
        return line[:begin] + line[end + after.end() :]
    return re.sub(r",\s*$", "", line[:begin]) + line[end:]


def changes_of(line):
    """All (kind, changed line) of one line."""
    code = code_of(line)
    for kind, pattern, new in TOKEN_SWAPS:
        for found in re.finditer(pattern, code):
            yield kind, line[: found.start()] + new + line[found.end() :]
    for found in re.finditer(r"\b(if|while) \((?!const |auto )", code):
        begin, end = found.end() - 1, closing(code, found.end() - 1)
        if end < 0:
            continue
        declared = code.rfind(";", begin, end)  # if (auto x = f(); !x)
        inner = declared + 1 if declared >= 0 else begin + 1
        yield "negation", f"{line[:inner]} !({line[inner:end].strip()}){line[end:]}"
    for found in NUMBER.finditer(code):
        yield "constant", line[: found.start()] + str(int(found.group()) + 1) + line[found.end() :]
    for name, values in NAMES.items():
        for found in re.finditer(rf"(?<!\w){name}::(\w+)", code):
            if found.group(1) in values and "case " not in code:
                other = values[(values.index(found.group(1)) + 1) % len(values)]
                yield "constant", f"{line[: found.start()]}{name}::{other}{line[found.end() :]}"
    for found in ELEMENT.finditer(line):
        is_only_argument = line[: found.start()].endswith("(") and line[found.end() :].startswith(")")
        if not is_only_argument and not line.startswith("Action "):
            yield "element", without_element(line, found.start(), found.end())
    if re.match(r"^\s*return [\w:]+\(.*state.*\);$", code) and "unchanged" not in code:
        yield "return", re.sub(r"return .*", "return unchanged(state);", line)
    is_whole = all(code.count(one) == code.count(other) for one, other in ("()", "{}"))
    if is_whole and STATEMENT.match(code) and not NOT_A_STATEMENT.match(code) and not DECLARATION.match(code):
        yield "statement", ""
    if VOID_FUNCTION.match(code):
        yield "early return", line + " return;"


def mutants_of(path):
    mutants, seen = [], {}
    for number, line in enumerate((ROOT / path).read_text().split("\n")):
        code = code_of(line).strip()
        if not code or code.startswith(("#", "static_assert", "///")):
            continue
        for kind, changed in dict.fromkeys(changes_of(line)):
            mutant = Mutant(path, number, kind, line, changed)
            looks = mutant.key()
            mutant.ordinal = seen.get(looks, 0)
            seen[looks] = mutant.ordinal + 1
            mutants.append(mutant)
    return mutants


def read_survivors():
    """Each with its reason: a line that begins with a file, and below it, indented, why."""
    known, current = {}, None
    for line in SURVIVORS.read_text().split("\n"):
        if not line or line.startswith("#"):
            continue
        if line.startswith(" "):
            known[current] = (known[current] + " " + line.strip()).strip()
        else:
            current = line
            known[current] = ""
    without = [key for key, reason in known.items() if not reason]
    if without:
        sys.exit(f"{SURVIVORS}: without a reason: {without[0]}")
    return known


def copy_tree():
    """What git has or would take; files that are the same keep their time, so that little is built."""
    if TREE.exists() and any(TREE.iterdir()) and not (TREE / MARK).exists():
        sys.exit(f"{TREE} is not empty, and no copy that this made before")
    SCRATCH.mkdir(parents=True, exist_ok=True)
    (TREE / MARK).parent.mkdir(parents=True, exist_ok=True)
    (TREE / MARK).touch()
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    ).stdout.decode()
    names = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in names:
        source, copy = ROOT / name, TREE / name
        if copy.is_file() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
    for folder, folders, files in os.walk(TREE):
        if pathlib.Path(folder) == TREE:
            folders[:] = [each for each in folders if each != "build"]
        for file in files:
            path = pathlib.Path(folder) / file
            if str(path.relative_to(TREE)) not in names:
                path.unlink()


def environment():
    known = dict(os.environ)
    if shutil.which("ccache"):
        known.update(CMAKE_C_COMPILER_LAUNCHER="ccache", CMAKE_CXX_COMPILER_LAUNCHER="ccache")
    return known


def promises():
    """The mutants by hand, each with the program and the tests that are to notice."""
    return tomllib.loads(PROMISES.read_text())["mutant"]


def build(program, log, *others):
    command = ["cmake", "--build", str(TREE / BUILD), "--target", program, *others]
    with open(log, "w") as out:
        return subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, cwd=TREE).returncode == 0


def run_tests(program, seed, limit_s, tests="*"):
    """None: they ran out of time, which is noticed as well."""
    known = environment() | {"FIREBREAK_TEST_SEED": str(seed)}
    command = [str(TREE / BUILD / "bin" / program), "--gtest_fail_fast", "--gtest_brief=1", f"--gtest_filter={tests}"]
    try:
        with open(SCRATCH / "test.log", "w") as out:
            return subprocess.run(
                command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                check=False, timeout=limit_s, env=known, cwd=SCRATCH,
            ).returncode == 0
    except subprocess.TimeoutExpired:
        return None


def outcome_of(mutant, programs, seed, limits):
    target = TREE / mutant.path
    good = target.read_text()
    lines = good.split("\n")
    lines[mutant.number] = mutant.after
    try:
        target.write_text("\n".join(lines))
        if not build(programs[0], SCRATCH / "build.log", *programs[1:]):
            return "does not build"
        for program in programs:
            passed = run_tests(program, seed, limits[program])
            if not passed:
                return "killed by time" if passed is None else "killed"
        return "SURVIVED"
    finally:
        target.write_text(good)


def try_set(name, mutants, arguments, known):
    programs = SETS[name][1]
    if not build(programs[0], SCRATCH / "build.log", *programs[1:]):
        sys.exit(f"{' or '.join(programs)} does not build as it is: {SCRATCH / 'build.log'}")
    limits = {}
    for program in programs:
        began = time.monotonic()
        if not run_tests(program, arguments.seed, 600):
            sys.exit(f"{program} fails as it is (seed {arguments.seed})")
        limits[program] = 10 + 5 * (time.monotonic() - began)
    counts, fresh = {}, []
    for at, mutant in enumerate(mutants, 1):
        outcome = outcome_of(mutant, programs, arguments.seed, limits)
        is_known = outcome == "SURVIVED" and mutant.key() in known
        counts[outcome] = counts.get(outcome, 0) + 1
        print(f"{name} {at}/{len(mutants)} {'known survivor' if is_known else outcome}: {mutant.key()}", flush=True)
        if outcome == "SURVIVED" and not is_known:
            fresh.append(mutant)
        if outcome.startswith("killed") and mutant.key() in known:
            print(f"  it is listed as a survivor, which it is no more: {SURVIVORS.name}", flush=True)
    build(programs[0], SCRATCH / "build.log", *programs[1:])  # as it was
    print(f"{name}: " + ", ".join(f"{count} {outcome.lower()}" for outcome, count in sorted(counts.items())))
    return fresh


def build_for(promise):
    return build(promise["program"], SCRATCH / "build.log", *promise.get("starts", []))


def limits_of(wanted, seed):
    """How long their tests may take, in seconds, by how long they take as it is, or None where they fail; all of one
    program."""
    program = wanted[0]["program"]
    if not all(build_for(each) for each in wanted):
        sys.exit(f"{program} does not build as it is: {SCRATCH / 'build.log'}")
    limits = {}
    for tests in dict.fromkeys(each["tests"] for each in wanted):
        began = time.monotonic()
        passed = run_tests(program, seed, 600, tests)
        limits[program, tests] = 60 + 5 * (time.monotonic() - began) if passed else None
    return limits


def try_promise(promise, seed, limit_s):
    target = TREE / promise["file"]
    good = target.read_text()
    if limit_s is None:
        return "fails as it is"
    if good.count(promise["before"]) != 1:
        return "is not in its file once"
    try:
        target.write_text(good.replace(promise["before"], promise["after"]))
        if not build_for(promise):
            return "does not build"
        passed = run_tests(promise["program"], seed, limit_s, promise["tests"])
        return {True: "SURVIVED", False: "killed", None: "killed by time"}[passed]
    finally:
        target.write_text(good)


def stale_promises():
    """Whose place has changed since they were written: nobody would try them."""
    return [each for each in promises() if (ROOT / each["file"]).read_text().count(each["before"]) != 1]


def try_promises(match, seed):
    wanted = [each for each in promises() if match in each["promise"]]
    limits, failed = {}, []
    for at, each in enumerate(wanted, 1):
        if (each["program"], each["tests"]) not in limits:
            limits |= limits_of([other for other in wanted if other["program"] == each["program"]], seed)
        outcome = try_promise(each, seed, limits[each["program"], each["tests"]])
        print(f"promises {at}/{len(wanted)} {outcome}: {each['promise']} ({each['tests']})", flush=True)
        if not outcome.startswith("killed"):
            failed.append(each)
    print(f"promises: {len(wanted) - len(failed)} of {len(wanted)} are noticed")
    return failed


def main():
    global TREE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of promises, {', '.join(SETS)} (all but promises)")
    parser.add_argument("--limit", type=int, default=0, help="so many mutants of each set, drawn by the seed (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample, and of the tests that are random (1)")
    parser.add_argument("--match", default="", help="only mutants whose line in this list holds that text")
    parser.add_argument("--list", action="store_true", help="name the mutants, and try none; 1 where a promise's place is gone")
    parser.add_argument("--tree", type=pathlib.Path, default=TREE, help="where the copy lies (build/mutate/tree)")
    arguments = parser.parse_args()
    for name in arguments.sets:
        if name not in SETS and name != "promises":
            parser.error(f"no set '{name}'; there are promises, {', '.join(SETS)}")
    known = read_survivors()
    chosen = {}
    for name in [each for each in arguments.sets if each != "promises"] if arguments.sets else SETS:
        mutants = [each for path in SETS[name][0] for each in mutants_of(path)]
        mutants = [each for each in mutants if arguments.match in each.key()]
        if 0 < arguments.limit < len(mutants):
            mutants = random.Random(arguments.seed).sample(mutants, arguments.limit)
        chosen[name] = mutants
    if arguments.list:
        for mutants in chosen.values():
            print("\n".join(f"{each.kind}: {each.key()}" for each in mutants))
        if "promises" in arguments.sets:
            print("\n".join(each["promise"] for each in promises()))
        stale = stale_promises() if "promises" in arguments.sets else []
        for each in stale:
            print(f"not in {each['file']} once: {each['before']} ({each['promise']})", file=sys.stderr)
        return 1 if stale else 0
    TREE = arguments.tree.resolve()
    copy_tree()
    configured = subprocess.run(
        ["cmake", "--preset", "dev"], cwd=TREE, env=environment(), check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )
    if configured.returncode != 0:
        sys.exit(configured.stdout.decode())
    unnoticed = try_promises(arguments.match, arguments.seed) if "promises" in arguments.sets else []
    fresh = [each for name, mutants in chosen.items() for each in try_set(name, mutants, arguments, known)]
    for each in fresh:
        print(f"survived: {each.path}:{each.number + 1}\n{each.key()}")
    print(f"new survivors: {len(fresh)}; a test notices them, or {SURVIVORS.relative_to(ROOT)} says why none does")
    return 1 if fresh or unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
