# SPDX-License-Identifier: Apache-2.0
"""The server's loop: clients' requests become slots, each step one denoising step of whoever schedule.py says, each commit a
line of a stream. Knows neither PyTorch nor whether there is Firebreak."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import firebreak
from serving import http
from serving.commits import Commits
from serving.front import Asked, Connections, Front
from serving.tenant import MakeServer, TermOfOffice
from torch_diffusion import asked, page, schedule
from torch_diffusion.asked import Look, Wanted
from torch_diffusion.forward import Forward, Slot
from torch_diffusion.picture import Picture
from torch_diffusion.tiles import TILES, Plan

# Steps that may be under way on the GPU while the host prepares the next: who is held has left the GPU within one.
STEPS_AHEAD = 1
# While another tenant has the turn, clients are looked after as often.
_HELD_S = 0.05
_IDLE_S = 0.2


@dataclasses.dataclass(frozen=True)
class Kind:
    """Of what can be asked for. `batch`: how many one step computes; `patience`: a deadline that nobody names is so many
    times what it takes alone. `operations`: of a step, in any unit that all kinds of a server share. `sketch_steps`, where
    there are any: it is drawn in tiles, and `steps` are those that refine; each of a plan's units is a step of the server."""

    name: str
    steps: int
    batch: int = 1
    patience: float = 2.0
    operations: float = 1.0
    sketch_steps: int = 0

    def units(self, steps: int) -> int:
        """How many steps of the server it takes."""
        return Plan(self.sketch_steps, steps).units if self.sketch_steps else steps

    def plan(self, units: int) -> Plan:
        """Of a kind in tiles."""
        return Plan(self.sketch_steps, (units - self.sketch_steps - 1) // TILES)

    def reads(self, slot: Slot) -> int:
        """Which of its two latents the next step of a slot begins with, or has its picture; it writes to the other."""
        return self.plan(slot.steps).reads(slot.done) if self.sketch_steps else slot.done % 2


@dataclasses.dataclass(frozen=True)
class Work:
    """One step: the slots that it computes, all of one kind; none: nothing but a commit."""

    step: int
    kind: int = 0
    slots: Sequence[int] = ()


class Engine(Protocol):
    """The models. What it is told is queued in order on one stream."""

    @property
    def kinds(self) -> Sequence[Kind]: ...

    @property
    def stream(self) -> int:
        """As commits want it."""

    def step(self, work: Work, slots: Sequence[Slot]) -> None:
        """Of each of its slots the denoising step behind the `done` that are done. Repeatable: reads what the step before
        wrote, and writes elsewhere."""

    def picture(self, index: int, slot: Slot) -> Picture:
        """Of a slot whose steps have all ended."""

    def first_kernel(self) -> None:
        """Queues one kernel of the model, and waits for it."""

    def wait(self, step: int) -> None:
        """Until that step has ended on the GPU; at once for one that this process has not queued."""

    def ended(self) -> int:
        """How many steps have ended, those of predecessors included. Does not wait."""


class Observed:
    """schedule.Costs: what each kind's last steps took. Until it had one, kinds are as their operations say."""

    def __init__(self, kinds: Sequence[Kind], first_guess_s: float) -> None:
        largest = max(kind.operations * kind.batch for kind in kinds)
        self._kinds = {kind.name: kind for kind in kinds}
        self._step_s = {kind.name: first_guess_s * kind.operations * kind.batch / largest for kind in kinds}

    def note(self, kind: str, took_s: float) -> None:
        self._step_s[kind] += 0.2 * (took_s - self._step_s[kind])

    def step_s(self, shape: str, batch: int) -> float:
        """A step always computes a whole batch."""
        return self._step_s[shape]

    def batch_most(self, shape: str) -> int:
        return self._kinds[shape].batch

    def longest_s(self) -> float:
        return max(self._step_s.values())


@dataclasses.dataclass(frozen=True)
class Told:
    """What a client is told once `step` is committed: that its request is there (`done` 0), or a step of it."""

    step: int
    index: int
    number: int
    done: int


@dataclasses.dataclass(frozen=True)
class Options:
    policy: str = "program"
    patience_s: float = 30.0
    first_guess_s: float = 0.05
    # Of each step, so that people can watch.
    pace_s: float = 0.0
    title: str = "pictures"


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Server:
    """`next_step` 0: nothing was ever committed, and the first commit says that the weights are there."""

    def __init__(
        self, engine: Engine, forward: Forward, commits: Commits, next_step: int, options: Options = Options()
    ) -> None:
        self._engine = engine
        self._kinds = engine.kinds
        self._names = [kind.name for kind in self._kinds]
        self._forward = forward
        self._commits = commits
        self._next_step = next_step
        self._options = options
        self._costs = Observed(self._kinds, options.first_guess_s)
        self._ages = schedule.Ages(options.patience_s)
        self._told: collections.deque[Told] = collections.deque()
        self._served = {slot.number: slot.arrived_ns / 1e9 for slot in forward.slots}
        self._pngs: dict[int, bytes] = {}
        self._front: Front[Wanted | Look]
        self._going, self._waited, self._is_new = True, 0, False
        self.before_step: Callable[[int], None] = lambda step: None

    # --- beginnings: tenant.Server

    def begin(self) -> None:
        """Step 0 does nothing but commit all of the state."""
        if self._next_step == 0:
            self._engine.step(Work(0), self._forward.slots)
            self._commits.commit(0, self._forward.state(), self._engine.stream)
            self._next_step = 1

    def step_before_clients(self) -> None:
        if self._is_working():
            self._step()

    def front(self, connections: Connections, listener: int) -> Front[Wanted | Look]:
        known = frozenset(slot.connection for slot in self._forward.slots if slot.connection != 0)
        return Front(connections, listener, functools.partial(asked.parse, shapes=self._names), known)

    def go_on(self, front: Front[Wanted | Look]) -> None:
        self._front = front
        self._take(front.poll(0))
        for index, slot in enumerate(self._committed_slots()):
            if slot.connection != 0:
                png = self._png(index, slot) if slot.is_picture else None
                said = asked.answer(slot, self._names[slot.shape], slot.done, png)
                front.extend(slot.connection, said, slot.is_picture)

    # --- the loop

    def run(self, ends: Callable[[], bool] = lambda: False) -> None:
        while not ends():
            self.turn()

    def turn(self) -> None:
        """One round: who asks is admitted, one step is queued, and what is committed goes out."""
        has_work = self._is_working() or self._is_new
        all_asked = self._front.poll(0 if has_work or self._told else _IDLE_S)
        self._free_slots()
        self._take(all_asked)
        if self._is_working() or self._is_new:
            self._step()
        else:
            if self._told:
                self._engine.wait(self._next_step - 1)
            self._want_nothing()
            self._commits.heartbeat(self._engine.stream)
        self._deliver()

    def _step(self) -> None:
        """If it is this tenant's turn. Who is new is committed before anything of it is computed: what its slot had before
        is then nobody's any more."""
        requests = self._requests()
        self._commits.turn_wanted(max(1, sum(each.steps_left for each in requests)), self._deadline_s(requests))
        going = self._commits.turn(_HELD_S)
        self._waited += self._going and not going
        self._going = going
        if not going:
            return
        step, began = self._next_step, time.monotonic()
        self.before_step(step)
        unit = None if self._is_new else self._choose(requests, began)
        self._is_new = False
        if unit is not None:
            time.sleep(self._options.pace_s)
        self._queue(step, unit)
        self._commits.commit_changes(step, self._forward.take_changes(), self._engine.stream)
        self._next_step += 1
        self._engine.wait(step - STEPS_AHEAD)
        if unit is not None:
            ended = time.monotonic()
            self._costs.note(unit.shape, ended - began)
            self._served.update(dict.fromkeys(unit.identities, ended))

    def _choose(self, requests: Sequence[schedule.Request], now: float) -> schedule.Unit:
        policy = schedule.policy_of(self._options.policy, self._costs.longest_s())
        units, self._ages = schedule.choose(policy, requests, 1, now, self._costs, self._ages)
        return units[0]

    def _queue(self, step: int, unit: schedule.Unit | None) -> None:
        slots = self._forward.slots
        if unit is None:
            self._engine.step(Work(step), slots)
            return
        indices = [self._index_of(identity) for identity in unit.identities]
        self._engine.step(Work(step, self._names.index(unit.shape), indices), slots)
        self._forward.advance(indices)
        self._told += [Told(step, index, slots[index].number, slots[index].done) for index in indices]

    # --- what the schedule is asked about

    def _requests(self) -> list[schedule.Request]:
        return [
            schedule.Request(
                slot.number,
                self._names[slot.shape],
                slot.arrived_ns / 1e9,
                slot.deadline_ns / 1e9 if slot.deadline_ns else schedule.NO_DEADLINE,
                slot.steps - slot.done,
                self._served.get(slot.number, slot.arrived_ns / 1e9),
            )
            for slot in self._forward.slots
            if slot.works
        ]

    def _deadline_s(self, requests: Sequence[schedule.Request]) -> float | None:
        """The next one that can still be met."""
        now = time.monotonic()
        found = [each.deadline for each in requests if now <= each.deadline != schedule.NO_DEADLINE]
        return min(found, default=None)

    def _is_working(self) -> bool:
        return any(slot.works for slot in self._forward.slots)

    def _index_of(self, number: int) -> int:
        return next(index for index, slot in enumerate(self._forward.slots) if slot.number == number)

    def _want_nothing(self) -> None:
        self._commits.turn_wanted(0, None)

    # --- clients

    def _take(self, all_asked: Sequence[Asked[Wanted | Look]]) -> None:
        for each in all_asked:
            if isinstance(each.request, Look):
                self._show(each.identity, each.request)
            else:
                self._admit(each.identity, each.request)

    def _admit(self, connection: int, wanted: Wanted) -> None:
        shape = self._names.index(wanted.shape)
        kind = self._kinds[shape]
        steps = kind.units(wanted.steps or kind.steps)
        now = now_ns()
        given_s = kind.patience * steps * self._costs.step_s(kind.name, 1)
        if wanted.deadline_ms is not None:
            given_s = wanted.deadline_ms / 1e3
        deadline = schedule.deadline_of(now / 1e9 + given_s, now / 1e9)
        deadline_ns = 0 if deadline == schedule.NO_DEADLINE else max(now, round(deadline * 1e9))
        slot = Slot(0, connection, wanted.seed, now, deadline_ns, shape, steps)
        index = self._forward.admit(slot)
        if index is None:
            self._front.refuse(connection, self._too_many())
            return
        self._is_new = True
        self._served[slot.number] = now / 1e9
        self._told.append(Told(self._next_step, index, slot.number, 0))

    def _too_many(self) -> http.BadRequestError:
        """The time is when a slot may be free, if nobody else comes."""
        left = [schedule.remaining_s(each, self._costs) for each in self._requests()]
        retry_s = max(1, math.ceil(min(left, default=0)))
        return http.BadRequestError(f"all slots are taken; ask again in {retry_s} s", 503, retry_s)

    def _deliver(self) -> None:
        """What is committed, and nothing else: a successor would say the same."""
        committed = min(self._commits.committed(), self._next_step)
        while self._told and self._told[0].step < committed:
            told = self._told.popleft()
            slot = self._forward.slots[told.index]
            if slot.number != told.number or slot.connection == 0:
                continue
            if told.done == 0:
                said = asked.line_of_admission(slot, self._names[slot.shape])
            else:
                said = asked.line_of_step(slot, told.done)
            is_last = told.done == slot.steps
            if is_last:
                said += asked.line_of_picture(slot, self._png(told.index, slot))
            self._front.extend(slot.connection, said, is_last)

    def _free_slots(self) -> None:
        """Of who has all of its answer, or is gone; what is under way for it ends before anybody's next step."""
        for index, slot in enumerate(self._forward.slots):
            if slot.connection != 0 and self._front.is_done(slot.connection):
                self._forward.let_go(index)

    # --- what is shown

    def _committed_slots(self) -> list[Slot]:
        """Without the steps that are not committed yet, and without who is not."""
        slots = [dataclasses.replace(slot) for slot in self._forward.slots]
        for told in self._told:
            if slots[told.index].number == told.number and told.done == 0:
                slots[told.index] = Slot()
            elif slots[told.index].number == told.number and slots[told.index].steps > 0:
                slots[told.index].done -= 1
        return slots

    def _show(self, connection: int, look: Look) -> None:
        slots = self._committed_slots()
        if look.number == 0:
            turns = {"going": self._going and self._is_working(), "waited": self._waited}
            found: dict[str, Any] = page.queue(slots, self._names, now_ns(), turns)
            is_page = look.as_page
            body = page.as_page(found, self._options.title) if is_page else page.as_json(found)
            said = http.answer(body, "text/html" if is_page else "application/json")
        else:
            index = next((at for at, slot in enumerate(slots) if slot.number == look.number and slot.is_picture), None)
            if index is None:
                self._front.refuse(connection, http.BadRequestError(f"there is no picture {look.number}", 404))
                return
            said = http.answer(self._png(index, slots[index]), "image/png")
        self._front.extend(connection, said, True)

    def _png(self, index: int, slot: Slot) -> bytes:
        there = {each.number for each in self._forward.slots}
        self._pngs = {number: png for number, png in self._pngs.items() if number in there}
        if slot.number not in self._pngs:
            self._pngs[slot.number] = self._engine.picture(index, slot).png()
        return self._pngs[slot.number]


def servers_of(
    engine: Engine,
    slots: int,
    fingerprint: int,
    options: Options = Options(),
    before_step: Callable[[int], None] = lambda step: None,
) -> MakeServer:
    """As tenant.serve wants them, one for each time that this process is the active."""

    def make(commits: TermOfOffice, resume: firebreak.Resume) -> Server:
        forward = Forward(slots, fingerprint)
        if resume.state is not None:
            forward.restore(resume.state)
        server = Server(engine, forward, commits, resume.next_step, options)
        server.before_step = before_step
        return server

    return make
