# SPDX-License-Identifier: Apache-2.0
"""How a server is a tenant: who begins, who waits, who goes on, who stands down."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable
from typing import Any, Protocol

import firebreak
from serving.commits import say
from serving.front import Front, listen_at


class FirstKernel(Protocol):
    def first_kernel(self) -> None:
        """Queues one kernel of the model, and waits for it."""


class Server(Protocol):
    """From where the tenant is, until it raises that another process goes on."""

    def begin(self) -> None:
        """Where nothing was ever committed: commits all of the state."""

    def step_before_clients(self) -> None:
        """A successor's first step, so that the GPU works while it looks who is there."""

    def front(self, connections: firebreak.Session, listener: int) -> Front[Any]: ...

    def go_on(self, front: Front[Any]) -> None:
        """With the clients that are there: what each has been told already is the beginning of its stream."""

    def run(self) -> None: ...


class NothingWrittenError(RuntimeError):
    """The active ended before the weights were there, and a standby may not write them."""


class StoodDownError(RuntimeError):
    """Another process goes on, and this one is its standby."""


class TermOfOffice:
    """commits.Commits of an active. Where another process is to go on, or does already, the session stands down; where
    nobody can follow it goes on with the same call."""

    def __init__(self, session: firebreak.Session) -> None:
        self._session = session

    def commit(self, step: int, state: bytes, stream: int = 0) -> None:
        self._unless_followed(lambda: self._session.commit(step, state, stream))

    def commit_changes(self, step: int, changes: list[tuple[int, bytes]], stream: int = 0) -> None:
        self._unless_followed(lambda: self._session.commit_changes(step, changes, stream))

    def heartbeat(self, stream: int = 0) -> None:
        self._unless_followed(lambda: self._session.heartbeat(stream))

    def committed(self) -> int:
        return self._session.committed()

    def turn_wanted(self, units: int, deadline_s: float | None) -> None:
        self._unless_followed(lambda: self._session.turn_wanted(units, deadline_s))

    def turn(self, timeout_s: float) -> bool:
        found = False

        def ask() -> None:
            nonlocal found
            found = self._session.turn(timeout_s)

        self._unless_followed(ask)
        return found

    def _unless_followed(self, call: Callable[[], None]) -> None:
        try:
            call()
            return
        except firebreak.FencedError:
            pass
        try:
            self._session.stand_down()
        except firebreak.RefusedError:
            call()  # whom somebody has followed before it could stand down is told so a second time
            return
        raise StoodDownError("another process goes on")


MakeServer = Callable[[TermOfOffice, firebreak.Resume], Server]


def serve(
    session: firebreak.Session,
    engine: FirstKernel,
    address: str,
    make_server: MakeServer,
    write_weights: Callable[[], None] = lambda: None,
    warm_up: Callable[[], None] = lambda: None,
) -> None:
    """Until the process ends; returns where the tenant has finished without us."""
    if session.role is firebreak.Role.STANDBY:
        warm_up()
        resume = wait_to_go_on(session, engine)
    else:
        resume = session.wait_promotion()
        if resume.state is not None:
            say_first_kernel(engine, resume)
        else:
            write_weights()
        warm_up()
    while resume is not None:
        serve_a_term(session, address, make_server, resume)
        resume = wait_to_go_on(session, engine)


def wait_to_go_on(session: firebreak.Session, engine: FirstKernel) -> firebreak.Resume | None:
    """As a standby that has warmed up; None: the tenant has finished."""
    session.ready()
    say("ready", tenant_role="standby")
    try:
        resume = session.wait_promotion()
    except firebreak.RefusedError:
        return None
    say_first_kernel(engine, resume)
    session.resumed()
    if resume.state is None:
        raise NothingWrittenError("the tenant's weights were never written")
    return resume


def serve_a_term(
    session: firebreak.Session, address: str, make_server: MakeServer, resume: firebreak.Resume
) -> None:
    """From where the tenant is until another process goes on, which then has the clients too."""
    server = make_server(TermOfOffice(session), resume)
    try:
        with contextlib.ExitStack() as held:
            server.begin()
            server.step_before_clients()
            listener = held.enter_context(listener_of(session, address))
            front = server.front(session, listener.fileno())
            held.callback(front.close)
            server.go_on(front)
            say("serving", address=address, step=resume.next_step)
            server.run()
    except StoodDownError:
        pass
    except firebreak.FencedError:  # said by a call for a client
        session.stand_down()
    say("stood down")


def say_first_kernel(engine: FirstKernel, resume: firebreak.Resume) -> None:
    engine.first_kernel()
    say("first kernel", promoted_at_ns=resume.promoted_at_ns, step=resume.next_step, epoch=resume.epoch)


def listener_of(session: firebreak.Session, address: str) -> socket.socket:
    """The tenant's, or a new one that is the tenant's from now on."""
    try:
        return socket.socket(fileno=session.listener())
    except firebreak.RefusedError:
        listener = listen_at(address)
    session.listen(listener.fileno())
    return listener
