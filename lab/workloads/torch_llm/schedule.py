# SPDX-License-Identifier: Apache-2.0
"""Which request each slot works on, and which pages of the cache it has: the server's forward state. Pure.

A request that is admitted before step s has its prompt computed by step s, which gives the first token of its answer; each
step after that gives one more. How far a request is follows from the step, so a step that admits nobody and needs no page
changes no byte of the state."""

from __future__ import annotations

import dataclasses
import struct

_HEADER = struct.Struct("<8sQ")
_MAGIC = b"FBLLM001"
_SLOT = struct.Struct("<QQII")
_PAGE = struct.Struct("<I")


@dataclasses.dataclass(frozen=True)
class Limits:
    """Page 0 is nobody's: rows without a request write there."""

    slots: int = 16
    pages: int = 1025
    page_tokens: int = 16
    context: int = 1024

    @property
    def pages_per_slot(self) -> int:
        return self.context // self.page_tokens

    @property
    def slot_bytes(self) -> int:
        return _SLOT.size + self.pages_per_slot * _PAGE.size

    @property
    def state_bytes(self) -> int:
        return _HEADER.size + self.slots * self.slot_bytes


@dataclasses.dataclass
class Slot:
    """`connection` 0: free."""

    connection: int = 0
    first_step: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0
    pages: list[int] = dataclasses.field(default_factory=list)

    def answered(self, next_step: int) -> int:
        """How many tokens of the answer the steps before `next_step` gave."""
        return max(0, min(next_step - self.first_step, self.answer_tokens))

    def works_at(self, step: int) -> bool:
        return self.connection != 0 and self.first_step <= step < self.first_step + self.answer_tokens

    def position(self, step: int) -> int:
        """Of the token that `step` computes, the last of the prompt in the first."""
        return self.prompt_tokens - 1 + step - self.first_step


@dataclasses.dataclass(frozen=True)
class Work:
    """What one step does: slots whose whole prompt it computes, slots of which it computes one token, and the slots
    whose pages are others than in the step before."""

    step: int
    prompts: list[int]
    decodes: list[int]
    new_pages: list[int]


class Schedule:
    def __init__(self, limits: Limits, fingerprint: int) -> None:
        self.limits = limits
        self.slots = [Slot() for _ in range(limits.slots)]
        self._fingerprint = fingerprint
        self._free_pages = list(range(limits.pages - 1, 0, -1))
        self._changes: list[tuple[int, bytes]] = []

    # --- requests

    def admit(self, connection: int, prompt_tokens: int, answer_tokens: int, step: int) -> int | None:
        """The slot whose work begins with `step`; None: there is no room now. ValueError: there never is."""
        limits = self.limits
        if min(prompt_tokens, answer_tokens) < 1 or prompt_tokens + answer_tokens > limits.context - 1:
            raise ValueError(f"a prompt and its answer have 2 to {limits.context - 1} tokens together")
        index = next((at for at, slot in enumerate(self.slots) if slot.connection == 0), None)
        if index is None or self._pages_of(prompt_tokens + answer_tokens) > self._unpromised_pages():
            return None
        self.slots[index] = Slot(connection, step, prompt_tokens, answer_tokens)
        self._note(index)
        return index

    def free(self, index: int) -> None:
        """Its client has all of its answer, or is gone."""
        self._free_pages += reversed(self.slots[index].pages)
        self.slots[index] = Slot()
        self._note(index)

    def begin(self, step: int) -> Work:
        """Gives out the pages that the step needs."""
        working = [at for at, slot in enumerate(self.slots) if slot.works_at(step)]
        new_pages = []
        for index in working:
            slot = self.slots[index]
            wanted = self._pages_of(slot.position(step) + 1)
            if wanted > len(slot.pages):
                slot.pages += [self._free_pages.pop() for _ in range(wanted - len(slot.pages))]
                new_pages.append(index)
                self._note(index)
        prompts = [at for at in working if self.slots[at].first_step == step]
        return Work(step, prompts, [at for at in working if at not in prompts], new_pages)

    def is_idle(self, step: int) -> bool:
        return not any(slot.works_at(step) for slot in self.slots)

    # --- forward state

    def take_changes(self) -> list[tuple[int, bytes]]:
        """Of the state's bytes, since the last call."""
        changes, self._changes = self._changes, []
        return changes

    def state(self) -> bytes:
        slots = (self._slot_bytes(slot) for slot in self.slots)
        return _HEADER.pack(_MAGIC, self._fingerprint) + b"".join(slots)

    def restore(self, state: bytes) -> None:
        """ValueError: that is no state, or one of a server with other options."""
        limits = self.limits
        if len(state) != limits.state_bytes or state[: _HEADER.size] != _HEADER.pack(_MAGIC, self._fingerprint):
            raise ValueError("that is the state of a server with other options")
        self.slots = [
            self._read_slot(state, _HEADER.size + index * limits.slot_bytes) for index in range(limits.slots)
        ]
        used = {page for slot in self.slots for page in slot.pages}
        self._free_pages = [page for page in range(limits.pages - 1, 0, -1) if page not in used]
        self._changes = []

    def _note(self, index: int) -> None:
        offset = _HEADER.size + index * self.limits.slot_bytes
        self._changes.append((offset, self._slot_bytes(self.slots[index])))

    def _slot_bytes(self, slot: Slot) -> bytes:
        pages = slot.pages + [0] * (self.limits.pages_per_slot - len(slot.pages))
        head = _SLOT.pack(slot.connection, slot.first_step, slot.prompt_tokens, slot.answer_tokens)
        return head + struct.pack(f"<{len(pages)}I", *pages)

    def _read_slot(self, state: bytes, offset: int) -> Slot:
        connection, first_step, prompt_tokens, answer_tokens = _SLOT.unpack_from(state, offset)
        pages = struct.unpack_from(f"<{self.limits.pages_per_slot}I", state, offset + _SLOT.size)
        return Slot(connection, first_step, prompt_tokens, answer_tokens, [page for page in pages if page != 0])

    def _pages_of(self, tokens: int) -> int:
        return -(-tokens // self.limits.page_tokens)

    def _unpromised_pages(self) -> int:
        """Whoever is admitted gets all the pages that it will need."""
        promised = sum(
            self._pages_of(slot.prompt_tokens + slot.answer_tokens) for slot in self.slots if slot.connection != 0
        )
        return self.limits.pages - 1 - promised
