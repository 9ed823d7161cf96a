#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server on the software GPU, with a standby and a rogue neighbour: in the middle of each request the neighbour raises a
fault that ends everybody in its MPS domain.

    demo.py BIN ADDRESS:PORT        BIN has the programs; ends with control-C, and all that it started with it"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import ask

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAME = "pictures"
_LOOK_S = 0.05


class Stage:
    """Whom this script started, in the order in which they end."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path) -> None:
        self._programs = programs
        self._folder = folder
        self.socket = str(folder / "agent" / "agent.sock")
        self._started: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "FIREBREAK_GPU": "soft",
            "FIREBREAK_ALLOW_INJECTION": "1",
            "FIREBREAK_LIBRARY_DIR": str(programs.parent / "lib"),
            "XDG_RUNTIME_DIR": str(folder),
            "PYTHONPATH": f"{ROOT / 'python'}:{ROOT / 'lab' / 'workloads'}",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def start(self, program: str, *options: str) -> subprocess.Popen[bytes]:
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [str(self._programs / program), *options], env=self._environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log,
            )
        self._started.insert(0, process)
        return process

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def tenant(self) -> dict[str, Any]:
        """As the agent sees it; empty where it does not."""
        asked = subprocess.run(
            [str(self._programs / "firebreak"), "status", "--json", "--socket", self.socket],
            env=self._environment, capture_output=True, check=False,
        )
        tenants = json.loads(asked.stdout)["tenants"] if asked.returncode == 0 else []
        return next((each for each in tenants if each["name"] == NAME), {})

    def until_protected(self, other_than: int = 0) -> int:
        """Until it has a standby; the active's process."""
        while True:
            now = self.tenant()
            if now.get("phase") == "serving" and now["standby_state"] == "ready" and now["active"]["pid"] != other_than:
                return int(now["active"]["pid"])
            if any(process.poll() is not None for process in self._started[-2:]):
                raise RuntimeError(f"a program has ended:\n{self.log()}")
            time.sleep(_LOOK_S)

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def say(text: str) -> None:
    print(text, flush=True)


def half_done(address: str, after: int) -> dict[str, Any] | None:
    """A request with a later number that has half of its steps."""
    try:
        waiting = json.loads(ask.get(address, "/queue"))["waiting"]
    except (OSError, RuntimeError):
        return None
    return next((each for each in waiting if each["number"] > after and 2 * each["done"] >= each["steps"]), None)


def play(stage: Stage, address: str) -> None:
    agent = ["--directory", str(pathlib.Path(stage.socket).parent)]
    stage.start("firebreakd", *agent)
    while not pathlib.Path(stage.socket).exists():
        time.sleep(_LOOK_S)
    server = ["-m", "torch_diffusion.main", "--listen", address, "--pace-ms", "100"]
    stage.start("firebreak", "run", "--socket", stage.socket, "--name", NAME, "--pair", "--", sys.executable, *server)
    active = stage.until_protected()
    while half_done(address, 0) is None and not stage_listens(address):
        time.sleep(_LOOK_S)
    say(f"process {active} serves at http://{address}/ and has a standby")
    last = 0
    while True:
        request = half_done(address, last)
        if request is None:
            time.sleep(_LOOK_S)
            continue
        last = request["number"]
        say(f"request {last} has {request['done']} of {request['steps']} steps: its neighbour raises a fault")
        stage.start("firebreak-lab", "inject", "trap", "--into", NAME, "--socket", stage.socket).wait()
        before, active = active, stage.until_protected(active)
        say(f"process {before} has ended, process {active} goes on and has a standby")


def stage_listens(address: str) -> bool:
    try:
        ask.get(address, "/queue")
    except (OSError, RuntimeError):
        return False
    return True


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fbpictures", dir="/tmp") as folder:
        stage = Stage(pathlib.Path(arguments[0]).resolve(), pathlib.Path(folder))
        try:
            play(stage, arguments[1])
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            stage.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
