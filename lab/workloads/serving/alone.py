# SPDX-License-Identifier: Apache-2.0
"""A server without Firebreak, for a test."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator

from serving.addresses import free_address


@contextlib.contextmanager
def served_alone(module: str, *options: str) -> Iterator[str]:
    """Its address, once it serves there; it is killed in the end."""
    address = free_address()
    command = [sys.executable, "-m", module, "--alone", *options, "--listen", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            while json.loads(server.stdout.readline())["what"] != "serving":
                pass
            yield address
        finally:
            server.kill()
