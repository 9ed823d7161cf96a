#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs each row of commands.toml with and without `firebreak run`, and compares what a user could see of it.

usage: compare.py PROGRAMS LIBRARIES [NAME...]   the folders of firebreak's programs and of the compiled samples
"""
import ctypes
import json
import os
import pathlib
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE_S = 120
MAKE_SUBREAPER = 36
SAMPLES = {
    "plain": ("gcc", "plain.c.in"), "static": ("gcc", "plain.c.in", "-static"), "threads": ("gcc", "threads.c.in"),
    "asan_clean": ("gcc", "memory.c.in", "-DBUG=0", "-fsanitize=address"),
    "asan_overflow": ("gcc", "memory.c.in", "-DBUG=1", "-fsanitize=address"),
    "asan_leak": ("gcc", "memory.c.in", "-DBUG=2", "-fsanitize=address"),
    "ubsan": ("gcc", "undefined.c.in", "-fsanitize=undefined"), "tsan": ("gcc", "threads.c.in", "-fsanitize=thread"),
    "musl": ("musl-gcc", "musl.c.in"), "musl_static": ("musl-gcc", "musl.c.in", "-static"), "opens": ("gcc", "opens.c.in"),
    "starts": ("gcc", "starts.c.in"), "libaudit.so": ("gcc", "audit.c.in", "-shared", "-fPIC"),
    "libownlinker.so": ("gcc", "own_linker.c.in", "-shared", "-fPIC"),
    "libplugin.so": ("gcc", "plugin.c.in", "-shared", "-fPIC"),
    "libpreloaded.so": ("gcc", "preloaded.c.in", "-shared", "-fPIC")}


def compile_samples(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (compiler, source, *options) in SAMPLES.items():
        if shutil.which(compiler):
            subprocess.run([compiler, "-g", "-w", "-O0", "-x", "c", str(HERE / "sources" / source), "-o",
                            str(folder / name), "-pthread", *options], check=True)


def rows():
    for group, of_group in tomllib.loads((HERE / "commands.toml").read_text()).items():
        for name, row in of_group.items():
            yield f"{group}.{name}", {"run": row} if isinstance(row, str) else row


def wait_until(what, is_so):
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.005)


def has_stopped(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "TZX"
    except FileNotFoundError:
        return True


def send(step, pid, folder, keyboard):
    """Does one step of a row's `signals`; returns when it can be seen to have come."""
    word, _, rest = step.partition(" ")
    if word == "wait":
        return wait_until(step, (folder / rest).exists)
    if word == "key":
        os.write(keyboard, bytes([int(rest)]))
    elif word == "group":
        os.killpg(pid, signal.Signals["SIG" + rest])
    else:
        os.kill(pid, signal.Signals["SIG" + word])
    if step in ("STOP", "key 26"):
        wait_until(step, lambda: has_stopped(pid))
    return None


def reap_all(pid):
    """The status of that child, and those of all who were left to us, whoever they are."""
    status, left = None, []
    while True:
        try:
            ended, how = os.waitpid(-1, 0)
        except ChildProcessError:
            return status, sorted(left)
        if ended == pid:
            status = how
        else:
            left.append(how)


def read_all(descriptor, into):
    def read():
        try:
            while piece := os.read(descriptor, 65536):
                into.append(piece)
        except OSError:  # the last process has closed the terminal
            pass
        os.close(descriptor)

    thread = threading.Thread(target=read)
    thread.start()
    return thread


def start(command, environment, folder, is_terminal):
    """(pid, descriptors to read, keyboard)"""
    ours, theirs = pty.openpty() if is_terminal else (-1, -1)
    pipes = [] if is_terminal else [os.pipe(), os.pipe()]
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        for number in (signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        os.setsid() if is_terminal else os.setpgid(0, 0)
        if is_terminal:
            os.close(os.open(os.ttyname(theirs), os.O_RDWR))
            streams = [theirs] * 3
        else:
            streams = [os.open("/dev/null", os.O_RDONLY), pipes[0][1], pipes[1][1]]
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 64)
        os.execvpe(command[0], command, environment)
    if is_terminal:
        os.close(theirs)
        return pid, [ours], ours
    for _, writing in pipes:
        os.close(writing)
    return pid, [reading for reading, _ in pipes], -1


def play(row, before, environment, folder):
    """What is seen of a row's command behind the words `before`; in a process that its orphans are left to."""
    ctypes.CDLL(None).prctl(MAKE_SUBREAPER, 1, 0, 0, 0)
    environment = dict(environment, STARTED_BY=str(os.getpid()))
    is_terminal = row.get("terminal", False)
    pid, descriptors, keyboard = start([*before, "bash", "--norc", "-c", row["run"]], environment, folder, is_terminal)
    if is_terminal:  # reading closes it, and keys are written to it before that
        keyboard = os.dup(keyboard)
    pieces = [[] for _ in descriptors]
    threads = [read_all(each, into) for each, into in zip(descriptors, pieces)]
    if row.get("signals"):
        wait_until("ready", lambda: (folder / "ready").exists() or has_stopped(pid))
        for step in row["signals"]:
            send(step, pid, folder, keyboard)
    status, left = reap_all(pid)
    for thread in threads:
        thread.join()
    files = {str(each.relative_to(folder)): each.read_bytes().hex()
             for each in sorted(folder.rglob("*")) if each.is_file()}
    return {"status": status, "left behind": left, "files": files,
            "streams": [b"".join(each).decode("latin-1") for each in pieces]}


def seen(row, before, environment):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "row"
        folder.mkdir()
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.alarm(PATIENCE_S)
            try:
                result = play(row, before, environment, folder)
            except BaseException as error:  # pylint: disable=broad-except
                result = {"failed": repr(error)}
            write_whole(writing, result)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            text = file.read()
        os.waitpid(pid, 0)
        return json.loads(text) if text else {"failed": "it did not end in time"}


def write_whole(descriptor, result):
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(result).encode())



class Agent:
    def __init__(self, programs, folder):
        self.folder = folder
        self.environment = dict(os.environ, FIREBREAK_GPU="soft", XDG_RUNTIME_DIR=str(folder))
        self.environment.pop("FIREBREAK_WITHOUT", None)
        log = open(folder / "log", "wb")
        self.process = subprocess.Popen([programs / "firebreakd", "--directory", folder / "d", "--park-s", "5", "--spares"],
                                        env=self.environment, stdout=log, stderr=log)
        self.run = [str(programs / "firebreak"), "run", "--socket", str(folder / "d" / "agent.sock"), "--"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE_S)


def main():
    programs, samples = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    wanted = sys.argv[3:]
    compile_samples(samples)
    different, compared, left_out = [], 0, []
    with tempfile.TemporaryDirectory() as temporary, Agent(programs, pathlib.Path(temporary)) as agent:
        for name, row in rows():
            if wanted and not any(each in name for each in wanted):
                continue
            if not shutil.which(row.get("needs", "sh")):
                left_out.append(f"{name} (no {row['needs']})")
                continue
            environment = dict(agent.environment, programs=str(samples), sources=str(HERE / "sources"),
                               preloads=str(programs.parent / "lib" / "firebreak"))
            if "preload" in row:
                environment["LD_PRELOAD"] = row["preload"].replace("$programs", str(samples))
            without, with_run = (seen(row, before, environment) for before in ([], agent.run))
            compared += 1
            if without != with_run or "failed" in without:
                different.append(name)
                print(f"DIFFERENT {name}: {row['run']}")
                for key in sorted(set(without) | set(with_run)):
                    if without.get(key) != with_run.get(key):
                        print(f"  {key}\n    without {str(without.get(key))[:1500]!r}")
                        print(f"    with    {str(with_run.get(key))[:1500]!r}")
    print(f"{compared} commands compared, {len(different)} of them different; left out: {', '.join(left_out) or 'none'}")
    if compared == 0:
        sys.exit("no command has such a name")
    sys.exit(1 if different else 0)


main()
