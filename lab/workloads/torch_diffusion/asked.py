# SPDX-License-Identifier: Apache-2.0
"""Requests and answers as bytes. Pure: the bytes of an answer follow from its slot and its picture alone, so that whoever
goes on with it sends the same.

    POST /pictures         {"seed": 7, "shape": "512", "steps": 20, "deadline_ms": 3000}; only the seed must be there.
                           Answered by a line a step as it is committed, and at the end where the picture is
    GET /pictures/7.png    the picture of request 7, as long as it is there
    GET /queue             who is there, as JSON
    GET /                  the same for people, with pictures"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Sequence

from serving import http
from torch_diffusion.forward import Slot

BODY_BYTES_MAX = 4096
STEPS_MOST = 1000
SEED_MOST = (1 << 63) - 1

ANSWER_HEAD = http.stream_head()


@dataclasses.dataclass(frozen=True)
class Wanted:
    """`steps` None: as many as the shape has; `deadline_ms` None: the shape's patience."""

    seed: int
    shape: str
    steps: int | None = None
    deadline_ms: float | None = None


@dataclasses.dataclass(frozen=True)
class Look:
    """`number` of a picture; 0: the queue."""

    number: int = 0
    as_page: bool = False


def parse(received: bytes, shapes: Sequence[str]) -> Wanted | Look | None:
    """None: it is not all there yet. http.BadRequestError: it is none. The first shape is whose nobody names another."""
    message = http.read(received, BODY_BYTES_MAX)
    if message is None:
        return None
    if message.method == "POST" and message.path == "/pictures":
        return _wanted_of(message.body, shapes)
    if message.method == "GET":
        if message.path in ("/", "/queue"):
            return Look(as_page=message.path == "/")
        found = re.fullmatch(r"/pictures/([1-9][0-9]{0,17})\.png", message.path)
        if found:
            return Look(int(found[1]))
    raise http.BadRequestError("only POST /pictures, GET /pictures/N.png, GET /queue and GET /")


def _wanted_of(body: bytes, shapes: Sequence[str]) -> Wanted:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise http.BadRequestError('the body is JSON, such as {"seed": 7}') from error
    if not isinstance(given, dict) or not {"seed"} <= given.keys() <= {"seed", "shape", "steps", "deadline_ms"}:
        raise http.BadRequestError('the body has "seed", and may have "shape", "steps" and "deadline_ms"')
    wanted = Wanted(given["seed"], given.get("shape", shapes[0]), given.get("steps"), given.get("deadline_ms"))
    if type(wanted.seed) is not int or not 0 <= wanted.seed <= SEED_MOST:
        raise http.BadRequestError(f"a seed is a number from 0 to {SEED_MOST}")
    if wanted.shape not in shapes:
        raise http.BadRequestError(f"a shape is one of {', '.join(shapes)}")
    if wanted.steps is not None and (type(wanted.steps) is not int or not 1 <= wanted.steps <= STEPS_MOST):
        raise http.BadRequestError(f"steps are from 1 to {STEPS_MOST}")
    if wanted.deadline_ms is not None:
        if type(wanted.deadline_ms) not in (int, float) or wanted.deadline_ms != wanted.deadline_ms:
            raise http.BadRequestError("a deadline is a number of milliseconds from now")
        # A number may be longer than a float holds.
        return dataclasses.replace(wanted, deadline_ms=float(min(max(wanted.deadline_ms, -1e15), 1e15)))
    return wanted


def path_of(slot: Slot) -> str:
    return f"/pictures/{slot.number}.png"


def line_of_admission(slot: Slot, shape: str) -> bytes:
    text = f"request {slot.number}: {shape}, seed {slot.seed}, {slot.steps} steps\n"
    return ANSWER_HEAD + http.chunk(text.encode())


def line_of_step(slot: Slot, done: int) -> bytes:
    return http.chunk(b"step %d of %d\n" % (done, slot.steps))


def line_of_picture(slot: Slot, png: bytes) -> bytes:
    """Closes the answer."""
    text = f"picture {path_of(slot)} sha256 {hashlib.sha256(png).hexdigest()}\n"
    return http.chunk(text.encode()) + http.STREAM_END


def answer(slot: Slot, shape: str, done: int, png: bytes | None) -> bytes:
    """All of it, as far as it is there: `done` steps, and the picture behind the last one."""
    lines = [line_of_admission(slot, shape), *(line_of_step(slot, step) for step in range(1, done + 1))]
    return b"".join(lines) + (line_of_picture(slot, png) if png is not None else b"")
