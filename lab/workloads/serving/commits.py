# SPDX-License-Identifier: Apache-2.0
"""What a server tells Firebreak, where there is one, and its log."""

from __future__ import annotations

import json
import sys
import time
from typing import Protocol


class Commits(Protocol):
    """A tenant.TermOfOffice, or NoCommits where there is no Firebreak."""

    def commit(self, step: int, state: bytes, stream: int = 0) -> None: ...

    def commit_changes(self, step: int, changes: list[tuple[int, bytes]], stream: int = 0) -> None: ...

    def heartbeat(self, stream: int = 0) -> None: ...

    def committed(self) -> int: ...

    def turn_wanted(self, units: int, deadline_s: float | None) -> None: ...

    def turn(self, timeout_s: float) -> bool: ...


class Ends(Protocol):
    def ended(self) -> int:
        """How many steps have ended. Does not wait."""


class NoCommits:
    """Without Firebreak a step counts once it has ended."""

    def __init__(self, engine: Ends) -> None:
        self._engine = engine

    def commit(self, step: int, state: bytes, stream: int = 0) -> None:
        pass

    def commit_changes(self, step: int, changes: list[tuple[int, bytes]], stream: int = 0) -> None:
        pass

    def heartbeat(self, stream: int = 0) -> None:
        pass

    def committed(self) -> int:
        return self._engine.ended()

    def turn_wanted(self, units: int, deadline_s: float | None) -> None:
        pass

    def turn(self, timeout_s: float) -> bool:
        return True


def say(what: str, **more: object) -> None:
    """One line of JSON; the time is of CLOCK_MONOTONIC."""
    line = {"what": what, "at_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC), **more}
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
