# SPDX-License-Identifier: Apache-2.0
"""An agent of a script's own, servers under it, and neighbours that raise faults."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from serving.addresses import listens

ROOT = pathlib.Path(__file__).resolve().parents[3]
LOOK_S = 0.05


class Stage:
    """Whom a script started, in the order in which they end. `on_software`: on the software GPU."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, on_software: bool) -> None:
        self._programs = programs
        self._folder = folder
        self.socket = str(folder / "agent" / "agent.sock")
        self._started: list[subprocess.Popen[bytes]] = []
        self._lasting: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "FIREBREAK_GPU": "soft" if on_software else "real",
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
        if program != "firebreak-lab":
            self._lasting.append(process)
        return process

    def log(self) -> str:
        return (self._folder / "log").read_text()

    def start_agent(self, *options: str) -> None:
        self.start("firebreakd", "--directory", str(pathlib.Path(self.socket).parent), *options)
        while not pathlib.Path(self.socket).exists():
            self._look_again()

    def start_server(self, name: str, address: str, run_options: Sequence[str], options: Sequence[str]) -> None:
        """Until it listens."""
        server = [sys.executable, "-m", "torch_diffusion.main", "--listen", address, *options]
        self.start("firebreak", "run", "--socket", self.socket, "--name", name, *run_options, "--", *server)
        while not listens(address):
            self._look_again()

    def inject(self, name: str) -> int:
        """A neighbour of that tenant raises a fault that ends everybody in its MPS domain. Not 0: it could not."""
        return self.start("firebreak-lab", "inject", "trap", "--into", name, "--socket", self.socket).wait()

    def tenant(self, name: str) -> dict[str, Any]:
        """As the agent sees it; empty where it does not."""
        asked = subprocess.run(
            [str(self._programs / "firebreak"), "status", "--json", "--socket", self.socket],
            env=self._environment, capture_output=True, check=False,
        )
        tenants = json.loads(asked.stdout)["tenants"] if asked.returncode == 0 else []
        return next((each for each in tenants if each["name"] == name), {})

    def until_protected(self, name: str, other_than: int = 0) -> int:
        """Until it has a standby; the active's process."""
        while True:
            now = self.tenant(name)
            if now.get("phase") == "serving" and now["standby_state"] == "ready" and now["active"]["pid"] != other_than:
                return int(now["active"]["pid"])
            self._look_again()

    def _look_again(self) -> None:
        """RuntimeError: the agent has ended, or a server that should not."""
        if any(each.poll() is not None for each in self._lasting):
            raise RuntimeError(f"a program has ended:\n{self.log()}")
        time.sleep(LOOK_S)

    def end(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
