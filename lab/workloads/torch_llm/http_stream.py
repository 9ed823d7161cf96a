# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as HTTP. Pure: the bytes of an answer follow from its tokens alone, so that whoever goes on with it
sends the same. One request a connection.

    POST /generate    {"prompt": [17, 4, 99], "max_tokens": 32}    answered by one token a chunk, as text, one a line"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable

from serving import http

ANSWER_HEAD = http.stream_head()
ANSWER_END = http.STREAM_END


@dataclasses.dataclass(frozen=True)
class Request:
    prompt: list[int]
    max_tokens: int


def parse(received: bytes, vocabulary: int) -> Request | None:
    """None: it is not all there yet. http.BadRequestError: it is none."""
    message = http.read(received)
    if message is None:
        return None
    if (message.method, message.path) != ("POST", "/generate"):
        raise http.BadRequestError("only POST /generate")
    return _request_of(message.body, vocabulary)


def chunk(token: int) -> bytes:
    return http.chunk(b"%d\n" % token)


def answer(tokens: Iterable[int], is_all: bool) -> bytes:
    """Of an answer of which `tokens` are there."""
    return ANSWER_HEAD + b"".join(map(chunk, tokens)) + (ANSWER_END if is_all else b"")


def _request_of(body: bytes, vocabulary: int) -> Request:
    try:
        given = json.loads(body)
        prompt, max_tokens = given["prompt"], given["max_tokens"]
    except (ValueError, KeyError, TypeError) as error:
        raise http.BadRequestError('the body is {"prompt": [...], "max_tokens": N}') from error
    good = isinstance(prompt, list) and all(type(token) is int and 0 <= token < vocabulary for token in prompt)
    if not good or type(max_tokens) is not int:
        raise http.BadRequestError(f"a prompt is a list of tokens below {vocabulary}, max_tokens a number")
    return Request(prompt, max_tokens)
