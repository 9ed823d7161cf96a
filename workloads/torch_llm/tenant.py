# SPDX-License-Identifier: Apache-2.0
"""How a server is a tenant: who begins, who waits, who goes on."""

from __future__ import annotations

from collections.abc import Callable

import firebreak
from torch_llm.front import Front, listen_at
from torch_llm.schedule import Limits, Schedule
from torch_llm.server import Engine, Server, say


class NothingWrittenError(RuntimeError):
    """The active ended before the weights were there, and a standby may not write them."""


def serve(
    session: firebreak.Session,
    engine: Engine,
    limits: Limits,
    fingerprint: int,
    address: str,
    vocabulary: int,
    write_weights: Callable[[], None] = lambda: None,
    warm_up: Callable[[], None] = lambda: None,
    before_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Until the process ends; returns where the tenant has finished without us."""
    if session.role is firebreak.Role.STANDBY:
        warm_up()
        session.ready()
        say("ready", tenant_role="standby")
        try:
            resume = session.wait_promotion()
        except firebreak.RefusedError:
            return
        say_first_kernel(engine, resume)
        session.resumed()
        if resume.state is None:
            raise NothingWrittenError("the tenant's weights were never written")
    else:
        resume = session.wait_promotion()
        if resume.state is not None:
            say_first_kernel(engine, resume)
        else:
            write_weights()
        warm_up()
    schedule = Schedule(limits, fingerprint)
    if resume.state is not None:
        schedule.restore(resume.state)
        engine.take_over(schedule)
    server = Server(engine, schedule, session, resume.next_step)
    server.before_step = before_step
    server.begin()
    server.step_before_clients()
    front = Front(session, listener_of(session, address), vocabulary, server.known())
    server.go_on(front)
    say("serving", address=address, step=resume.next_step)
    server.run()


def say_first_kernel(engine: Engine, resume: firebreak.Resume) -> None:
    engine.first_kernel()
    say("first kernel", promoted_at_ns=resume.promoted_at_ns, step=resume.next_step, epoch=resume.epoch)


def listener_of(session: firebreak.Session, address: str) -> int:
    """The tenant's, or a new one that is the tenant's from now on."""
    try:
        return session.listener()
    except firebreak.RefusedError:
        listener = listen_at(address)
    session.listen(listener.fileno())
    return listener.detach()
