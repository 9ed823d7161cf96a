# SPDX-License-Identifier: Apache-2.0
"""A model of nothing but integers, on either GPU, without PyTorch: its cache is in pages as the real one's is, and each token
follows from all that the cache has of its request. What was written to a wrong page, or is lost, shows."""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence

import firebreak
from soft_cuda import Cuda
from torch_llm.schedule import Limits, Schedule, Work

VOCABULARY = 50_000


def entry_of(token: int, position: int) -> int:
    return (token * 2654435761 + position * 40503 + 1) & 0xFFFFFFFF


def next_token(entries: Sequence[int]) -> int:
    mixed = 17
    for entry in entries:
        mixed = (mixed * 31 + entry) & 0xFFFFFFFF
    return mixed % VOCABULARY


def expected_answer(prompt: Sequence[int], count: int) -> list[int]:
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(next_token([entry_of(token, at) for at, token in enumerate(tokens)]))
    return tokens[len(prompt) :]


class ToyEngine:
    """Cache and tokens in memory of the session's."""

    def __init__(self, session: firebreak.Session, limits: Limits, pace_s: float) -> None:
        self._cuda = Cuda()
        self._limits = limits
        self._pace_s = pace_s
        self._cache = session.allocate("cache", 4 * limits.pages * limits.page_tokens)
        self._tokens = session.allocate("tokens", 4 * limits.slots * limits.context)
        self._sampled: dict[int, list[int]] = {}
        self._ended = 0

    @property
    def stream(self) -> int:
        return self._cuda.stream

    def write_prompt(self, slot: int, tokens: Sequence[int]) -> None:
        self._cuda.write(self._token_at(slot, 0), struct.pack(f"<{len(tokens)}I", *tokens))

    def take_over(self, schedule: Schedule) -> None:
        """The schedule has the pages."""

    def step(self, work: Work, schedule: Schedule) -> None:
        time.sleep(self._pace_s)
        self._sampled[work.step] = sampled = [0] * self._limits.slots
        for index in (*work.prompts, *work.decodes):
            slot = schedule.slots[index]
            position = slot.position(work.step)
            first = 0 if index in work.prompts else position
            for at, token in enumerate(self.answer(index, first, position + 1 - first), first):
                self._cuda.write(self._entry_at(slot.pages, at), struct.pack("<I", entry_of(token, at)))
            self._cuda.synchronize()
            entries = [self._read(self._entry_at(slot.pages, at)) for at in range(position + 1)]
            sampled[index] = next_token(entries)
            self._cuda.write(self._token_at(index, position + 1), struct.pack("<I", sampled[index]))
        self._ended = work.step + 1

    def first_kernel(self) -> None:
        self._cuda.synchronize()

    def sampled(self, step: int) -> Sequence[int]:
        return self._sampled[step]

    def wait(self, step: int) -> None:
        self._cuda.synchronize()

    def ended(self) -> int:
        return self._ended

    def answer(self, slot: int, first: int, count: int) -> list[int]:
        self._cuda.synchronize()
        return list(struct.unpack(f"<{count}I", self._cuda.read(self._token_at(slot, first), 4 * count)))

    def _read(self, address: int) -> int:
        return int.from_bytes(self._cuda.read(address, 4), "little")

    def _token_at(self, slot: int, position: int) -> int:
        return self._tokens + 4 * (slot * self._limits.context + position)

    def _entry_at(self, pages: Sequence[int], position: int) -> int:
        page = pages[position // self._limits.page_tokens]
        return self._cache + 4 * (page * self._limits.page_tokens + position % self._limits.page_tokens)
