# SPDX-License-Identifier: Apache-2.0
"""Addresses of this machine's, as ADDRESS:PORT."""

import socket


def free_address() -> str:
    """Nobody listens there now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
