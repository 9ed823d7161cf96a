# SPDX-License-Identifier: Apache-2.0
"""Whole tenants on the software GPU: an agent of their own, and processes that are seen to end."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable
from typing import Any

PROGRAMS = pathlib.Path(os.environ["FIREBREAK_PROGRAMS"])
PYTHON_FOLDER = pathlib.Path(__file__).resolve().parents[1]
# For what hangs: long after everything that only is slow.
PATIENCE_S = 120.0

Tenant = dict[str, Any]


class SoftGpuTest(unittest.TestCase):
    """Each test has an agent and a folder; whatever it started is ended."""

    agent_options: list[str] = []

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="fbpy", dir="/tmp")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.socket = str(self.folder / "d" / "agent.sock")
        self.environment = {
            **os.environ,
            "FIREBREAK_GPU": "soft",
            "FIREBREAK_SOFTGPU_SPEED": "4",
            "XDG_RUNTIME_DIR": folder.name,
            "PYTHONPATH": str(PYTHON_FOLDER),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self.agent = self.start(
            [str(PROGRAMS / "firebreakd"), "--directory", str(self.folder / "d"), *self.agent_options]
        )
        self.until("the agent", lambda: self.status() is not None)

    def start(self, command: list[str], **options: Any) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, text=True, **options
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[str]) -> None:
        """In good order, so that what it keeps for others goes too."""
        if process.poll() is None:
            process.send_signal(signal.SIGINT if process is self.agent else signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()

    def run_tenant(self, name: str, options: list[str], program: list[str]) -> subprocess.Popen[str]:
        """`program` is a Python script and its arguments."""
        command = [str(PROGRAMS / "firebreak"), "run", "--socket", self.socket, "--name", name, *options]
        return self.start([*command, "--", sys.executable, *program])

    def status(self) -> list[Tenant] | None:
        """The agent's tenants; None where it does not answer."""
        asked = subprocess.run(
            [str(PROGRAMS / "firebreak"), "status", "--json", "--socket", self.socket],
            env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )
        if asked.returncode != 0:
            return None
        tenants: list[Tenant] = json.loads(asked.stdout)["tenants"]
        return tenants

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            self.assertLess(time.monotonic(), deadline, what)

    def until_tenant(self, name: str, holds: Callable[[Tenant], bool]) -> Tenant:
        found: list[Tenant] = []

        def is_so() -> bool:
            found[:] = [each for each in self.status() or [] if each["name"] == name and holds(each)]
            return bool(found)

        self.until(name, is_so)
        return found[0]

    def until_protected(self, name: str, other_than: int = 0) -> int:
        """Until it has a standby that is ready; the active's process."""
        now = self.until_tenant(
            name,
            lambda now: now["phase"] == "serving"
            and now["standby_state"] == "ready"
            and now["active"]["pid"] != other_than,
        )
        return int(now["active"]["pid"])
