# SPDX-License-Identifier: Apache-2.0
"""A GPU of nothing but a stream of things to do, and a vault: what a crash leaves of both. The model is a chain of hashes, so
a step that read what it should not have shows in the picture."""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Callable, Sequence

from torch_diffusion.forward import Slot
from torch_diffusion.picture import Picture
from torch_diffusion.server import STEPS_AHEAD, Kind, Work
from torch_diffusion.tiles import TILES, Refine

KINDS = [Kind("small", 4, batch=2), Kind("video", 6), Kind("large", 1, sketch_steps=3)]
LARGE = 2


def digest(*parts: object) -> bytes:
    return hashlib.sha256(repr(parts).encode()).digest()


# Of a slot, which of its two latents, and which tile of that; small ones have one.
Place = tuple[int, int, int]
Latents = dict[Place, bytes]


def places(index: int, which: int, slot: Slot) -> list[Place]:
    return [(index, which, tile) for tile in range(TILES if slot.shape == LARGE else 1)]


def writes(index: int, slot: Slot) -> list[Place]:
    """What the next step of a slot writes."""
    reads = KINDS[slot.shape].reads(slot)
    first = places(index, reads, slot) if slot.done == 0 else []
    if slot.shape == LARGE:
        unit = KINDS[LARGE].plan(slot.steps).unit(slot.done)
        if isinstance(unit, Refine):
            return [(index, 1 - reads, unit.tile)]
    return first + places(index, 1 - reads, slot)


def denoise(latents: Latents, index: int, slot: Slot) -> None:
    """The next step of a slot: what it writes follows from all that it reads."""
    reads = KINDS[slot.shape].reads(slot)
    if slot.done == 0:
        latents.update((place, digest(slot.seed, place[2])) for place in places(index, reads, slot))
    before = [latents[place] for place in places(index, reads, slot)]
    for place in writes(index, slot):
        if place[1] != reads:
            latents[place] = digest(before, slot.seed, slot.shape, slot.done, place[2])


def shown(latents: Latents, index: int, slot: Slot) -> Picture:
    whole = [latents[place] for place in places(index, KINDS[slot.shape].reads(slot), slot)]
    return Picture(2, 5, [digest(whole)[:30]])


def picture_of(seed: int, shape: int, units: int) -> Picture:
    latents: Latents = {}
    slot = Slot(1, 1, seed, shape=shape, steps=units)
    for slot.done in range(units):
        denoise(latents, 0, slot)
    slot.done = units
    return shown(latents, 0, slot)


@dataclasses.dataclass
class Vault:
    """What outlives a process: latents, the state of the last commit, and the step after it. `committed` too is what a GPU
    counts, in the order of its stream. Of units there are counts: what was computed, and what is committed."""

    latents: Latents = dataclasses.field(default_factory=dict)
    state: bytes = b""
    committed: int = 0
    units_computed: int = 0
    units_committed: int = 0


class FakeGpu:
    """server.Engine and commits.Commits of one process."""

    kinds = KINDS
    stream = 0

    def __init__(self, vault: Vault, chance: random.Random) -> None:
        self._vault = vault
        self._chance = chance
        self._queue: list[tuple[Callable[[], None], list[Place]]] = []
        self._step_ends: dict[int, int] = {}
        self._done = self._queued = self._uncommitted_units = 0
        self._state = bytearray(vault.state)
        self.held = False
        self.wanted: list[tuple[int, float | None]] = []
        self.batches: list[int] = []

    # --- what is queued

    def _add(self, what: Callable[[], None], targets: list[Place]) -> None:
        self._queue.append((what, targets))
        self._queued += 1

    def _run(self, count: int) -> None:
        for _ in range(min(count, len(self._queue))):
            self._queue.pop(0)[0]()
            self._done += 1

    def some_time_passes(self) -> None:
        self._run(self._chance.randrange(3))

    def crash(self) -> None:
        """Somewhere in the queue; whatever was being written is neither old nor new."""
        self._run(self._chance.randrange(len(self._queue) + 1))
        if self._queue:
            for target in self._queue[0][1]:
                self._vault.latents[target] = b"torn"
        self._queue.clear()

    # --- server.Engine

    def step(self, work: Work, slots: Sequence[Slot]) -> None:
        assert not self.held, "who waits does not compute"
        under_way = sum(ends > self._done for ends in self._step_ends.values())
        assert under_way <= STEPS_AHEAD, "who is held has left the GPU within a step"
        self.batches.append(len(work.slots))
        for index in work.slots:
            slot = dataclasses.replace(slots[index])
            self._add(lambda index=index, slot=slot: self._denoise(index, slot), writes(index, slot))
        self._step_ends[work.step] = self._queued
        self._uncommitted_units = len(work.slots)

    def _denoise(self, index: int, slot: Slot) -> None:
        denoise(self._vault.latents, index, slot)
        self._vault.units_computed += 1

    def picture(self, index: int, slot: Slot) -> Picture:
        self._run(len(self._queue))
        return shown(self._vault.latents, index, slot)

    def first_kernel(self) -> None: ...

    def wait(self, step: int) -> None:
        self._run(self._step_ends.get(step, 0) - self._done)

    def ended(self) -> int:
        return self._vault.committed

    # --- commits.Commits

    def commit(self, step: int, state: bytes, stream: int = 0) -> None:
        assert not self.held, "who waits does not commit"
        self._state = bytearray(state)
        self._commit(step)

    def commit_changes(self, step: int, changes: list[tuple[int, bytes]], stream: int = 0) -> None:
        assert not self.held, "who waits does not commit"
        for offset, content in changes:
            self._state[offset : offset + len(content)] = content
        self._commit(step)

    def _commit(self, step: int) -> None:
        state, units = bytes(self._state), self._uncommitted_units

        def take_effect() -> None:
            self._vault.state, self._vault.committed = state, step + 1
            self._vault.units_committed += units

        self._add(take_effect, [])

    def heartbeat(self, stream: int = 0) -> None: ...

    def committed(self) -> int:
        return self._vault.committed

    def turn_wanted(self, units: int, deadline_s: float | None) -> None:
        self.wanted.append((units, deadline_s))

    def turn(self, timeout_s: float) -> bool:
        return not self.held
