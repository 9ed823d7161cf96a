#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pages_test.py PROGRAMS SHARE: the manual pages and completions of a build say what the programs' --help says."""

import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SECTIONS = {"firebreak": 1, "firebreakd": 8, "firebreak-exporter": 8, "firebreak-k8s": 8, "firebreak-nri": 8}


def said(*command, **how):
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **how)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def commands_in(text):
    _, _, listed = text.partition("\nSubcommands:\n")
    return re.findall(r"^  ([a-z-]+)  ", listed, flags=re.M)


def options_in(text):
    return set(re.findall(r"^  (?:-[a-zA-Z],)?(--[a-z][a-z0-9-]*)", text, flags=re.M))


def completed(script, program, *words, called=None):
    """What is offered for the last of the words."""
    line = " ".join(f"'{word}'" for word in (called or program, *words))
    function = "_" + program.replace("-", "_")
    asked = f"source '{script}'; COMP_WORDS=({line}); COMP_CWORD={len(words)}; {function}; echo \"${{COMPREPLY[@]}}\""
    return said("bash", "-uec", asked).split()


def check_examples(programs, name, text):
    """Each is a command line that the program takes, as far as --help tells."""
    _, _, examples = text.partition("\n.SH EXAMPLES\n")
    lines = re.findall(r"^\\fB(.*)\\fR$", examples, flags=re.M)
    assert lines, name
    for line in (each for line in lines for each in line.split(" && ")):
        program, *words = shlex.split(line)
        assert program == name, line
        own, _, _ = " ".join(words).partition(" -- ")
        command = [] if words[0].startswith("-") else words[:1]
        helped = said(programs / name, *command, "--help")
        assert set(re.findall(r"--[a-z][a-z-]*", own)) <= options_in(helped), line


def check_listed(script):
    """Commands that take a tenant's name are completed by what the program itself says, asked where the line says."""
    with tempfile.TemporaryDirectory() as folder:
        stub = pathlib.Path(folder, "firebreak")
        stub.write_text("#!/bin/sh\n"
                        "case \"$*\" in 'status --names') echo llm-a; echo llm-b; echo rag ;;\n"
                        "'status --names --socket /there') echo other ;; esac\n", encoding="utf-8")
        stub.chmod(0o755)
        for command in ("stop", "hand-over", "suspend", "resume"):
            assert completed(script, "firebreak", command, "", called=stub) == ["llm-a", "llm-b", "rag"], command
            assert completed(script, "firebreak", command, "ll", called=stub) == ["llm-a", "llm-b"], command
            assert completed(script, "firebreak", command, "--socket", "/there", "", called=stub) == ["other"], command
            assert "--socket" in completed(script, "firebreak", command, "--s", called=stub), command
            stub.rename(stub.with_suffix(".away"))
            assert "--socket" in completed(script, "firebreak", command, "", called=stub), "there is no agent"
            stub.with_suffix(".away").rename(stub)
        assert "llm-a" not in completed(script, "firebreak", "run", "", called=stub), "that takes a program"


def check(programs, share, name):
    page = (share / f"man/man{SECTIONS[name]}" / f"{name}.{SECTIONS[name]}")
    text = page.read_text(encoding="utf-8")
    script = share / "bash-completion/completions" / name
    plain = text.replace("\\-", "-")
    helped = said(programs / name, "--help")
    commands = commands_in(helped)
    assert options_in(helped) >= {"--help", "--version"}, helped
    for command in [[], *([each] for each in commands)]:
        options = options_in(said(programs / name, *command, "--help"))
        offered = completed(script, name, *command, "")
        for option in options:
            assert f"\\fB{option}\\fR" in plain, (name, command, option)
            assert option in offered, (name, command, option, offered)
        assert set(commands) <= set(offered) or command, offered
    check_examples(programs, name, plain)
    for command in commands:
        assert f'.SS "{name} {command} ' in plain, command
    if shutil.which("man"):
        warned = subprocess.run(["man", "--warnings", "-l", str(page)], capture_output=True, text=True, timeout=60,
                                check=False, env={"MANPAGER": "cat", "LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        assert warned.returncode == 0 and not warned.stderr, warned.stderr


def main():
    programs, share = map(pathlib.Path, sys.argv[1:])
    for name in SECTIONS:
        check(programs, share, name)
    folder = share / "bash-completion/completions"
    assert completed(folder / "firebreak", "firebreak", "st") == ["status", "stop"]
    assert completed(folder / "firebreak", "firebreak", "run", "--gu") == ["--guard", "--guard-ipc"]
    assert completed(folder / "firebreak", "firebreak", "run", "--", "x", "--gu") == [], "that is another program's"
    assert completed(folder / "firebreak", "firebreak", "run", "--name", "") == [], "any word"
    check_listed(folder / "firebreak")
    assert completed(folder / "firebreakd", "firebreakd", "--strays", "") == ["end", "report"]
    assert completed(folder / "firebreak-exporter", "firebreak-exporter", "--li") == ["--listen"]


main()
