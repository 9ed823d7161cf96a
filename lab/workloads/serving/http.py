# SPDX-License-Identifier: Apache-2.0
"""As much of HTTP as the servers need. Pure: the bytes of an answer follow from what is in it. One request a connection."""

from __future__ import annotations

import dataclasses

HEAD_BYTES_MAX = 8192
BODY_BYTES_MAX = 1 << 20

_REASONS = {
    200: b"OK",
    400: b"Bad Request",
    404: b"Not Found",
    413: b"Content Too Large",
    503: b"Service Unavailable",
}

STREAM_END = b"0\r\n\r\n"


class BadRequestError(ValueError):
    """What is wrong with it, in one line for its sender. `retry_after_s` 0: asking again is of no use."""

    def __init__(self, why: str, status: int = 400, retry_after_s: int = 0) -> None:
        super().__init__(why)
        self.status = status
        self.retry_after_s = retry_after_s

    def answer(self) -> bytes:
        more = b"Retry-After: %d\r\n" % self.retry_after_s if self.retry_after_s else b""
        return answer(str(self).encode() + b"\n", status=self.status, more=more)


@dataclasses.dataclass(frozen=True)
class Message:
    method: str
    path: str
    body: bytes


def read(received: bytes, body_bytes_max: int = BODY_BYTES_MAX) -> Message | None:
    """None: it is not all there yet. Whoever posts says how long the body is."""
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        if len(received) > HEAD_BYTES_MAX:
            raise BadRequestError("the head is too long")
        return None
    lines = head.split(b"\r\n")
    words = lines[0].decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadRequestError("that is no HTTP/1.1")
    method, path, _ = words
    length = _content_length(lines[1:], body_bytes_max) if method == "POST" else 0
    if len(body) < length:
        return None
    return Message(method, path, body[:length])


def stream_head(kind: str = "text/plain") -> bytes:
    """Of an answer in chunks, which closes with STREAM_END."""
    head = "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    return (head % kind).encode()


def chunk(text: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(text), text)


def answer(body: bytes, kind: str = "text/plain", status: int = 200, more: bytes = b"") -> bytes:
    """A whole answer. `more`: further lines of its head."""
    head = b"HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%sConnection: close\r\n\r\n"
    return head % (status, _REASONS[status], kind.encode(), len(body), more) + body


def _content_length(lines: list[bytes], most: int) -> int:
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() != b"content-length":
            continue
        if not value.strip().isdigit():
            raise BadRequestError("a bad Content-Length")
        if int(value) > most:
            raise BadRequestError(f"a body has at most {most} bytes", status=413)
        return int(value)
    raise BadRequestError("a Content-Length is needed")
