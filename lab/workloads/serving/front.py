# SPDX-License-Identifier: Apache-2.0
"""Clients: who comes, what they ask, and the stream that each gets. A request is only looked at, and stays in the kernel
until its answer is complete: a successor finds it there."""

from __future__ import annotations

import dataclasses
import selectors
import socket
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import firebreak
from serving import http

Request = TypeVar("Request")
# What is looked at of a request: the longest there may be, and whether there is more.
_LOOK_BYTES = http.HEAD_BYTES_MAX + http.BODY_BYTES_MAX + 1


class Connections(Protocol):
    """A firebreak.Session, or OwnConnections where there is none."""

    def next_connection(self, after: int) -> firebreak.Connection | None: ...

    def send(self, descriptor: int, offset: int, content: bytes) -> int: ...

    def release_connection(self, identity: int) -> None: ...


class OwnConnections:
    """Of a server without Firebreak: they end with it."""

    def __init__(self, listener: socket.socket) -> None:
        listener.setblocking(False)
        self._listener = listener
        self._last = 0
        self._taken: dict[int, int] = {}

    def next_connection(self, after: int) -> firebreak.Connection | None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return None
        self._last += 1
        descriptor = accepted.detach()
        self._taken[descriptor] = 0
        return firebreak.Connection(self._last, descriptor)

    def send(self, descriptor: int, offset: int, content: bytes) -> int:
        taken = self._taken[descriptor]
        borrowed = socket.socket(fileno=descriptor)
        try:
            taken += borrowed.send(content[taken - offset :], socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError as error:
            raise firebreak.ClientGoneError(str(error), firebreak.Status.CLIENT_GONE) from error
        finally:
            borrowed.detach()
        self._taken[descriptor] = taken
        return taken

    def release_connection(self, identity: int) -> None:
        """Closing it is all."""


@dataclasses.dataclass
class Client:
    """`content` is the stream from its beginning, `taken` how much of it the kernel has."""

    identity: int
    socket: socket.socket
    seen_bytes: int = 0
    content: bytes = b""
    taken: int = 0
    is_complete: bool = False

    @property
    def is_done(self) -> bool:
        return self.is_complete and self.taken >= len(self.content)


@dataclasses.dataclass(frozen=True)
class Asked(Generic[Request]):
    identity: int
    request: Request


class Front(Generic[Request]):
    """Of one thread."""

    def __init__(
        self,
        connections: Connections,
        listener: int,
        parse: Callable[[bytes], Request | None],
        known: frozenset[int] = frozenset(),
    ) -> None:
        """`parse` makes a request of what came so far: None where it is not all there, http.BadRequestError where it is
        none. `known`: clients whose requests a predecessor has read."""
        self._connections = connections
        self._known = known
        self._parse = parse
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._clients: dict[int, Client] = {}
        self._last = 0
        self._look_for_clients = True  # whom a predecessor had, or who came before us

    def poll(self, timeout: float | None) -> list[Asked[Request]]:
        """Whoever has asked; None: waits until somebody has, or wants more of its stream."""
        asked: list[Asked[Request]] = []
        if self._look_for_clients:
            asked += self._take_clients()
            timeout = 0 if asked else timeout
        for key, events in self._selector.select(timeout):
            if key.data is None:
                asked += self._take_clients()
            elif events & selectors.EVENT_READ:
                asked += self._look(key.data)
            else:
                self._unregister(key.data)
                self._push(key.data)
        return asked

    def extend(self, identity: int, more: bytes, is_complete: bool) -> None:
        """The next bytes of a client's stream, sent as far as it takes them. Of one that is gone: nothing."""
        client = self._clients.get(identity)
        if client is not None:
            client.content += more
            client.is_complete = is_complete
            self._push(client)

    def close(self) -> None:
        """Clients stay with whoever goes on."""
        self._selector.close()
        for client in self._clients.values():
            client.socket.close()
        self._clients.clear()

    def is_done(self, identity: int) -> bool:
        """It has all, or is gone."""
        return identity not in self._clients

    def _take_clients(self) -> list[Asked[Request]]:
        self._look_for_clients = False
        asked = []
        while (found := self._connections.next_connection(self._last)) is not None:
            self._last = found.id
            client = Client(found.id, socket.socket(fileno=found.descriptor))
            client.socket.setblocking(False)
            client.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._clients[found.id] = client
            if found.id in self._known:
                continue
            self._selector.register(client.socket, selectors.EVENT_READ, client)
            asked += self._look(client)
        return asked

    def _look(self, client: Client) -> list[Asked[Request]]:
        try:
            received = client.socket.recv(_LOOK_BYTES, socket.MSG_PEEK)
        except BlockingIOError:
            return []
        except OSError:
            received = b""
        if len(received) == client.seen_bytes:  # readable without a new byte: it has hung up
            self._drop(client)
            return []
        client.seen_bytes = len(received)
        try:
            request = self._parse(received)
        except http.BadRequestError as error:
            self._refuse(client, error)
            return []
        if request is None:
            # Readable again with one byte more.
            client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, len(received) + 1)
            return []
        self._unregister(client)
        return [Asked(client.identity, request)]

    def refuse(self, identity: int, error: http.BadRequestError) -> None:
        client = self._clients.get(identity)
        if client is not None:
            self._refuse(client, error)

    def _refuse(self, client: Client, error: http.BadRequestError) -> None:
        self._unregister(client)
        self.extend(client.identity, error.answer(), True)

    def _push(self, client: Client) -> None:
        try:
            client.taken = self._connections.send(client.socket.fileno(), 0, client.content)
        except firebreak.ClientGoneError:
            self._drop(client)
            return
        if client.is_done:
            self._drop(client)
        elif client.taken < len(client.content):
            self._unregister(client)
            self._selector.register(client.socket, selectors.EVENT_WRITE, client)

    def _drop(self, client: Client) -> None:
        """The request is taken out first: a socket that is closed with unread bytes resets its connection, and what the
        client has not read of its answer is lost."""
        self._unregister(client)
        try:
            while client.socket.recv(_LOOK_BYTES):
                pass
        except OSError:
            pass
        del self._clients[client.identity]
        self._connections.release_connection(client.identity)
        client.socket.close()

    def _unregister(self, client: Client) -> None:
        if client.socket in self._selector.get_map():
            self._selector.unregister(client.socket)


def listen_at(address: str) -> socket.socket:
    """`address` is HOST:PORT. Waits while another process still has it."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + 30
    while True:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, int(port)))
            listener.listen(128)
            return listener
        except OSError:
            listener.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
