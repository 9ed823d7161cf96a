# SPDX-License-Identifier: Apache-2.0
"""The server's loop: clients' requests become slots, each step one token more for every slot, each token a chunk of a
stream. Knows neither PyTorch nor whether there is Firebreak."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

import firebreak
from serving.commits import Commits
from serving.front import Asked, Connections, Front
from serving.http import BadRequestError
from serving.tenant import MakeServer, TermOfOffice
from torch_llm import http_stream
from torch_llm.schedule import Limits, Schedule, Work

# Steps that may be under way on the GPU while the host prepares the next.
STEPS_AHEAD = 2
# Of which the host still has the tokens: a step may have ended a moment before it counts as committed.
STEPS_KEPT = 2 * STEPS_AHEAD + 2


class Engine(Protocol):
    """The model. What it is told is queued in order on one stream."""

    @property
    def stream(self) -> int:
        """As commits want it."""

    def write_prompt(self, slot: int, tokens: Sequence[int]) -> None: ...

    def step(self, work: Work, schedule: Schedule) -> None:
        """Repeatable: writes what the same step would write again."""

    def first_kernel(self) -> None:
        """Queues one kernel of the model, and waits for it."""

    def take_over(self, schedule: Schedule) -> None:
        """Of a predecessor: the pages that its slots have."""

    def sampled(self, step: int) -> Sequence[int]:
        """A token for each slot, once `step` has ended; of the last STEPS_KEPT steps."""

    def wait(self, step: int) -> None:
        """Until that step has ended on the GPU; at once for one that this process has not queued."""

    def ended(self) -> int:
        """How many steps have ended, those of predecessors included. Does not wait."""

    def answer(self, slot: int, first: int, count: int) -> list[int]:
        """Tokens that were computed earlier, from position `first` on."""


class Server:
    """`next_step` 0: nothing was ever committed, and the first commit says that the weights are there."""

    def __init__(
        self, engine: Engine, schedule: Schedule, commits: Commits, next_step: int, vocabulary: int
    ) -> None:
        self._engine = engine
        self._schedule = schedule
        self._commits = commits
        self._next_step = next_step
        self._delivered = next_step
        self._vocabulary = vocabulary
        self._waiting: list[Asked[http_stream.Request]] = []
        self._front: Front[http_stream.Request]
        self.tokens_sent = 0
        self.before_step: Callable[[int], None] = lambda step: None

    # --- beginnings

    def begin(self) -> None:
        """Step 0 does nothing but commit all of the state."""
        if self._next_step == 0:
            self._commits.commit(0, self._schedule.state(), self._engine.stream)
            self._next_step = self._delivered = 1

    def step_before_clients(self) -> None:
        """A successor's first step, so that the GPU works while it looks who is there."""
        if not self._schedule.is_idle(self._next_step):
            self.step()

    def front(self, connections: Connections, listener: int) -> Front[http_stream.Request]:
        known = frozenset(slot.connection for slot in self._schedule.slots if slot.connection != 0)
        parse = functools.partial(http_stream.parse, vocabulary=self._vocabulary)
        return Front(connections, listener, parse, known)

    def go_on(self, front: Front[http_stream.Request]) -> None:
        """With the clients that are there: what each has been told already is the beginning of its stream."""
        self._front = front
        self._waiting += front.poll(0)
        for index, slot in enumerate(self._schedule.slots):
            if slot.connection == 0:
                continue
            count = slot.answered(self._delivered)
            tokens = self._engine.answer(index, slot.prompt_tokens, count) if count > 0 else []
            is_all = count == slot.answer_tokens
            front.extend(slot.connection, http_stream.answer(tokens, is_all), is_all)

    # --- the loop

    def run(self, ends: Callable[[], bool] = lambda: False) -> None:
        while not ends():
            self.turn()

    def turn(self) -> None:
        """One round: who asks is admitted, one step is queued, and what has been computed goes out."""
        is_idle = self._schedule.is_idle(self._next_step)
        has_news = self._delivered < self._next_step
        self._waiting += self._front.poll(0.2 if is_idle and not has_news else 0)
        self._free_slots()
        self._admit()
        if not self._schedule.is_idle(self._next_step):
            self.step()
            self._engine.wait(self._next_step - 1 - STEPS_AHEAD)
        elif has_news:
            self._engine.wait(self._next_step - 1)
        else:
            self._commits.heartbeat(self._engine.stream)
        self._deliver()

    def step(self) -> None:
        step = self._next_step
        self.before_step(step)
        work = self._schedule.begin(step)
        self._engine.step(work, self._schedule)
        self._commits.commit_changes(step, self._schedule.take_changes(), self._engine.stream)
        self._next_step += 1

    def _admit(self) -> None:
        """One a step, since its whole prompt is computed in it."""
        while self._waiting:
            asked = self._waiting[0]
            try:
                slot = self._schedule.admit(
                    asked.identity, len(asked.request.prompt), asked.request.max_tokens, self._next_step
                )
            except ValueError as error:
                self._front.refuse(asked.identity, BadRequestError(str(error)))
                self._waiting.pop(0)
                continue
            if slot is None:
                return
            self._waiting.pop(0)
            self._engine.write_prompt(slot, asked.request.prompt)
            self._front.extend(asked.identity, http_stream.ANSWER_HEAD, False)
            return

    def _deliver(self) -> None:
        """What is committed, and nothing else: a successor would say the same."""
        ended = min(self._commits.committed(), self._next_step)
        for step in range(self._delivered, ended):
            sampled = self._engine.sampled(step)
            for index, slot in enumerate(self._schedule.slots):
                if not slot.works_at(step):
                    continue
                is_last = slot.answered(step + 1) == slot.answer_tokens
                end = http_stream.ANSWER_END if is_last else b""
                self._front.extend(slot.connection, http_stream.chunk(sampled[index]) + end, is_last)
                self.tokens_sent += 1
        self._delivered = max(self._delivered, ended)

    def _free_slots(self) -> None:
        """Of who has all of its answer, or is gone; what is under way for it ends before anybody's next step."""
        for index, slot in enumerate(self._schedule.slots):
            if slot.connection != 0 and self._front.is_done(slot.connection):
                self._schedule.free(index)


def servers_of(
    engine: Engine,
    limits: Limits,
    fingerprint: int,
    vocabulary: int,
    before_step: Callable[[int], None] = lambda step: None,
) -> MakeServer:
    """As tenant.serve wants them, one for each time that this process is the active."""

    def make(commits: TermOfOffice, resume: firebreak.Resume) -> Server:
        schedule = Schedule(limits, fingerprint)
        if resume.state is not None:
            schedule.restore(resume.state)
            engine.take_over(schedule)
        server = Server(engine, schedule, commits, resume.next_step, vocabulary)
        server.before_step = before_step
        return server

    return make
