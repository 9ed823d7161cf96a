# SPDX-License-Identifier: Apache-2.0
"""What was asked for and how far each is: the server's forward state. Pure.

A request has a slot from when it is admitted until another needs the slot, so that its picture stays there. Its latents are
in the vault twice: step i reads those of i - 1 and writes the others, so whoever takes over finds whole ones."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Sequence

_HEADER = struct.Struct("<8sQ")
_MAGIC = b"FBDIF001"
_SLOT = struct.Struct("<QQQqqIII4x")


@dataclasses.dataclass
class Slot:
    """`number` counts requests from 1; 0: nobody ever had the slot. `connection` 0: its client has all, or is gone.
    Times are of CLOCK_MONOTONIC; no deadline is 0."""

    number: int = 0
    connection: int = 0
    seed: int = 0
    arrived_ns: int = 0
    deadline_ns: int = 0
    shape: int = 0
    steps: int = 0
    done: int = 0

    @property
    def works(self) -> bool:
        return self.done < self.steps

    @property
    def is_picture(self) -> bool:
        return self.steps > 0 and not self.works

    @property
    def is_free(self) -> bool:
        return self.connection == 0


class Forward:
    def __init__(self, slots: int, fingerprint: int) -> None:
        self.slots = [Slot() for _ in range(slots)]
        self._fingerprint = fingerprint
        self._changed: set[int] = set()

    # --- requests

    def admit(self, slot: Slot) -> int | None:
        """Gives it a number, and the free slot that was taken longest ago; None: there is none."""
        free = [index for index, each in enumerate(self.slots) if each.is_free]
        if not free:
            return None
        index = min(free, key=lambda each: self.slots[each].number)
        slot.number = 1 + max(each.number for each in self.slots)
        self.slots[index] = slot
        self._changed.add(index)
        return index

    def advance(self, indices: Sequence[int]) -> None:
        for index in indices:
            self.slots[index].done += 1
            self._changed.add(index)

    def let_go(self, index: int) -> None:
        """Its client has all of its answer, or is gone; then the rest is not computed, and there is no picture."""
        slot = self.slots[index]
        if slot.works:
            self.slots[index] = Slot(number=slot.number)
        slot.connection = 0
        self._changed.add(index)

    # --- forward state

    def take_changes(self) -> list[tuple[int, bytes]]:
        """Of the state's bytes, since the last call."""
        changes = [(_HEADER.size + index * _SLOT.size, _pack(self.slots[index])) for index in sorted(self._changed)]
        self._changed.clear()
        return changes

    def state(self) -> bytes:
        return _HEADER.pack(_MAGIC, self._fingerprint) + b"".join(map(_pack, self.slots))

    def restore(self, state: bytes) -> None:
        """ValueError: that is no state, or one of a server with other options."""
        size = _HEADER.size + len(self.slots) * _SLOT.size
        if len(state) != size or state[: _HEADER.size] != _HEADER.pack(_MAGIC, self._fingerprint):
            raise ValueError("that is the state of a server with other options")
        self.slots = [Slot(*fields) for fields in _SLOT.iter_unpack(state[_HEADER.size :])]
        self._changed.clear()


def _pack(slot: Slot) -> bytes:
    return _SLOT.pack(*dataclasses.astuple(slot))
