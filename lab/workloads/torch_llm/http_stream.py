# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as HTTP. Pure: the bytes of an answer follow from its tokens alone, so that whoever goes on with it
sends the same. One request a connection.

    POST /generate    {"prompt": [17, 4, 99], "max_tokens": 32}    answered by one token a chunk, as text, one a line"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

HEAD_BYTES_MAX = 8192
BODY_BYTES_MAX = 1 << 20

ANSWER_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
)
ANSWER_END = b"0\r\n\r\n"


@dataclasses.dataclass(frozen=True)
class Request:
    prompt: list[int]
    max_tokens: int


class BadRequestError(ValueError):
    """What is wrong with it, in one line for its sender."""


def parse(received: bytes, vocabulary: int) -> Request | None:
    """None: it is not all there yet."""
    head, found, body = received.partition(b"\r\n\r\n")
    if not found:
        if len(received) > HEAD_BYTES_MAX:
            raise BadRequestError("the head is too long")
        return None
    lines = head.split(b"\r\n")
    if not lines[0].startswith(b"POST /generate HTTP/1."):
        raise BadRequestError("only POST /generate")
    length = _content_length(lines[1:])
    if len(body) < length:
        return None
    return _request_of(body[:length], vocabulary)


def chunk(token: int) -> bytes:
    text = b"%d\n" % token
    return b"%x\r\n%s\r\n" % (len(text), text)


def answer(tokens: Iterable[int], is_all: bool) -> bytes:
    """Of an answer of which `tokens` are there."""
    return ANSWER_HEAD + b"".join(map(chunk, tokens)) + (ANSWER_END if is_all else b"")


def refusal(why: str) -> bytes:
    body = why.encode() + b"\n"
    head = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    return head % len(body) + body


def _content_length(lines: list[bytes]) -> int:
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() != b"content-length":
            continue
        if value.strip().isdigit() and int(value) <= BODY_BYTES_MAX:
            return int(value)
        raise BadRequestError("a bad Content-Length")
    raise BadRequestError("a Content-Length is needed")


def _request_of(body: bytes, vocabulary: int) -> Request:
    try:
        given = json.loads(body)
        prompt, max_tokens = given["prompt"], given["max_tokens"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadRequestError('the body is {"prompt": [...], "max_tokens": N}') from error
    good = isinstance(prompt, list) and all(type(token) is int and 0 <= token < vocabulary for token in prompt)
    if not good or type(max_tokens) is not int:
        raise BadRequestError(f"a prompt is a list of tokens below {vocabulary}, max_tokens a number")
    return Request(prompt, max_tokens)
