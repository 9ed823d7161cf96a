# SPDX-License-Identifier: Apache-2.0
"""A client of the server: reads its stream, notes when each token came, and where its connection fails, asks for the rest
anew, as clients of servers without a standby must."""

from __future__ import annotations

import json
import socket
import threading
import time


class StreamClient(threading.Thread):
    def __init__(self, address: str, prompt: list[int], count: int, patience_s: float = 300.0) -> None:
        super().__init__(daemon=True)
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._prompt, self._count = prompt, count
        self._deadline = time.monotonic() + patience_s
        self.tokens: list[int] = []
        self.times_ns: list[int] = []
        self.failures = 0
        self.asked_again_tokens = 0

    @property
    def tokens_left(self) -> int:
        """For any thread."""
        return self._count - len(self.tokens)

    def run(self) -> None:
        while self.tokens_left > 0 and time.monotonic() < self._deadline:
            try:
                self._read_stream()
            except OSError:
                pass
            if self.tokens_left > 0:
                self.failures += 1
                time.sleep(0.01)

    def _read_stream(self) -> None:
        """One connection; returns where it ends."""
        asked = self._prompt + self.tokens
        body = json.dumps({"prompt": asked, "max_tokens": self.tokens_left}).encode()
        with socket.create_connection(self._address, timeout=60) as connection:
            connection.sendall(b"POST /generate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            stream = connection.makefile("rb")
            if not stream.readline().startswith(b"HTTP/1.1 200"):
                return
            if self.tokens:
                self.asked_again_tokens += len(asked)
            while stream.readline().strip():
                pass
            while (size := stream.readline().strip()) not in (b"", b"0"):
                wanted = int(size, 16) + 2
                line = stream.read(wanted)
                if len(line) < wanted:
                    return
                self.times_ns.append(time.clock_gettime_ns(time.CLOCK_MONOTONIC))
                self.tokens.append(int(line.split()[0]))
