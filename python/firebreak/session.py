# SPDX-License-Identifier: Apache-2.0
"""One process's membership in its tenant."""

from __future__ import annotations

import ctypes
import dataclasses
import enum
import time
from collections.abc import Iterable
from types import TracebackType

from firebreak import _library
from firebreak.errors import Status, error_of

# Between two calls that wait, Python may run the handlers of signals; a promotion ends the call at once.
_SLICE_MS = 200


class Role(enum.IntEnum):
    """fb_role."""

    ACTIVE = 1
    STANDBY = 2


class Memory(enum.IntEnum):
    """fb_memory: what GPU memory is for."""

    STATE = 1
    WEIGHTS = 2
    SHARED = 3


@dataclasses.dataclass(frozen=True)
class Resume:
    """Where to go on. `state` is None where nothing was committed; `promoted_at_ns` is of CLOCK_MONOTONIC, 0 without a
    promotion."""

    epoch: int
    next_step: int
    state: bytes | None
    promoted_at_ns: int


@dataclasses.dataclass(frozen=True)
class Connection:
    """A client's; `descriptor` is the caller's to close."""

    id: int
    descriptor: int


class Session:
    """Of one thread at a time, but for role and committed(), as the C ABI says. A session that is left can do nothing any
    more. As a context manager it is left at the end, unless an exception comes through: then the tenant is not done."""

    def __init__(self, handle: int) -> None:
        self._library = _library.library()
        self._handle: int | None = handle

    # --- who we are

    @property
    def handle(self) -> int:
        """The fb_session*, for other libraries; valid until leave()."""
        if self._handle is None:
            raise error_of(Status.INVALID_ARGUMENT, "the session has been left")
        return self._handle

    @property
    def role(self) -> Role:
        """STANDBY turns into ACTIVE by promotion."""
        return Role(self._library.fb_session_role(self.handle))

    @property
    def last_error(self) -> str:
        """One line about the last call's failure; empty where it did not fail."""
        return _text(self._library.fb_last_error(self.handle))

    # --- memory

    def allocate(
        self, name: str, size_bytes: int, memory: Memory = Memory.STATE, timeout: float | None = None
    ) -> int:
        """The device address of GPU memory under `name`, the same in every process of the tenant. A standby waits for the
        active's for `timeout` seconds (None: for ever)."""
        address = ctypes.c_uint64()
        milliseconds = -1 if timeout is None else max(0, round(timeout * 1000))
        self._check(
            self._library.fb_alloc_as(
                self.handle, name.encode(), size_bytes, memory, milliseconds, ctypes.byref(address)
            )
        )
        return address.value

    def share(self) -> None:
        """All memory of this tenant that is Memory.SHARED is written: others may map it. Waits for the GPU."""
        self._check(self._library.fb_share(self.handle))

    def map_shared(self, owner: str, name: str, timeout: float | None = None) -> int:
        """The device address of what that tenant shares under `name`, read-only; waits for it for `timeout` seconds (None:
        for ever), and then is a TimedOutError."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        address = ctypes.c_uint64()
        while True:
            left_ms = (deadline - time.monotonic()) * 1000
            slice_ms = max(0, round(min(_SLICE_MS, left_ms)))
            status = self._library.fb_map_shared(
                self.handle, owner.encode(), name.encode(), slice_ms, ctypes.byref(address)
            )
            if status != Status.TIMEOUT or left_ms <= slice_ms:
                self._check(status)
                return address.value

    # --- promotion

    def ready(self) -> None:
        """This standby could take over at once."""
        self._check(self._library.fb_ready(self.handle))

    def wait_promotion(self, timeout: float | None = None) -> Resume:
        """Until this standby is promoted (TimedOutError after `timeout` seconds; None: for ever). At once for an active,
        with where it begins. RefusedError: the tenant has finished, and nobody is needed any more."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        found = _library.Resume()
        status: int = Status.TIMEOUT
        while status == Status.TIMEOUT:
            left_ms = (deadline - time.monotonic()) * 1000
            slice_ms = max(0, round(min(_SLICE_MS, left_ms)))
            status = self._library.fb_wait_promotion(self.handle, slice_ms, ctypes.byref(found))
            if left_ms <= slice_ms:
                break
        self._check(status)
        state = ctypes.string_at(found.state, found.state_bytes) if found.state is not None else None
        return Resume(found.epoch, found.next_step, state, found.promoted_at_ns)

    def resumed(self) -> None:
        """The first kernel after a promotion has completed."""
        self._check(self._library.fb_resumed(self.handle))

    def stand_down(self) -> None:
        """Waits for the GPU and makes this process the standby of its successor: of who replaced it (FencedError), or of
        its standby, which goes on. RefusedError: no standby is ready, or it is too late."""
        self._check(self._library.fb_stand_down(self.handle))

    # --- turns

    def turn(self, timeout: float | None = None) -> bool:
        """Before each step: True once it is this tenant's turn; False where it is not within `timeout` seconds (None: for
        ever)."""
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            left_ms = (deadline - time.monotonic()) * 1000
            slice_ms = max(0, round(min(_SLICE_MS, left_ms)))
            status = self._library.fb_turn(self.handle, slice_ms)
            if status != Status.TIMEOUT:
                self._check(status)
                return True
            if left_ms <= slice_ms:
                return False

    def turn_wanted(self, units: int, deadline: float | None = None) -> None:
        """What is still to do: so many steps, by `deadline` on time.monotonic()'s clock (None: some time). 0 steps:
        nothing."""
        deadline_ns = 0 if deadline is None else max(1, round(deadline * 1e9))
        self._check(self._library.fb_turn_wanted(self.handle, deadline_ns, units))

    # --- commits

    def step(self, number: int, stream: int = 0) -> Step:
        """A context manager that commits `number` at its end, with the changes that it was given."""
        return Step(self, number, stream)

    def commit(self, step: int, state: bytes, stream: int = 0) -> None:
        """`state` is all of the forward state as of `step`, once all work queued on `stream` has ended."""
        self._check(self._library.fb_commit(self.handle, stream, step, state, len(state)))

    def commit_changes(
        self, step: int, changes: Iterable[tuple[int, bytes]] = (), stream: int = 0
    ) -> None:
        """The same for what this step changed: pairs of an offset and the bytes from there on."""
        array, count = _changes(changes)
        self._check(self._library.fb_commit_changes(self.handle, stream, step, array, count))

    def prepare_changes(
        self, step: int, changes: Iterable[tuple[int, bytes]] = (), stream: int = 0
    ) -> None:
        """commit_changes for tenants whose own kernel counts the step, at counter()."""
        array, count = _changes(changes)
        self._check(self._library.fb_prepare_changes(self.handle, stream, step, array, count))

    def counter(self) -> int:
        """The device address of the 8 bytes in which the GPU counts steps."""
        address = ctypes.c_uint64()
        self._check(self._library.fb_counter(self.handle, ctypes.byref(address)))
        return address.value

    def committed(self) -> int:
        """The last step whose commit has taken effect, plus one. For any thread."""
        next_step = ctypes.c_uint64()
        status = self._library.fb_committed(self.handle, ctypes.byref(next_step))
        if status != Status.OK:
            raise error_of(status, "fb_committed")
        return next_step.value

    def heartbeat(self, stream: int = 0) -> None:
        """Tells a hang from a long step."""
        self._check(self._library.fb_heartbeat(self.handle, stream))

    # --- the tenant's own clients

    def listen(self, descriptor: int) -> None:
        """The agent keeps this listening TCP socket for this process and those after it."""
        self._check(self._library.fb_listen(self.handle, descriptor))

    def listener(self) -> int:
        """A descriptor of that socket, the caller's to close; RefusedError where there is none yet. To be polled, not
        accepted from."""
        descriptor = ctypes.c_int()
        self._check(self._library.fb_listener(self.handle, ctypes.byref(descriptor)))
        return descriptor.value

    def next_connection(self, after: int) -> Connection | None:
        """The next client with an id above `after`; None where nobody is there. Begin with 0."""
        found = _library.Connection()
        status = self._library.fb_next_connection(self.handle, after, ctypes.byref(found))
        if status == Status.TIMEOUT:
            return None
        self._check(status)
        return Connection(found.id, found.descriptor)

    def send(self, descriptor: int, offset: int, content: bytes) -> int:
        """Writes what is not written yet of `content`, which is the stream from `offset` on; returns how long the stream is
        now, which is less than asked for where the client is slow."""
        taken = ctypes.c_uint64()
        self._check(
            self._library.fb_send(self.handle, descriptor, offset, content, len(content), ctypes.byref(taken))
        )
        return taken.value

    def release_connection(self, identity: int) -> None:
        """The connection ends when its descriptor is closed as well."""
        self._check(self._library.fb_release_connection(self.handle, identity))

    # --- the end

    def leave(self) -> None:
        """In good order: the tenant is done, and its standby is told so. The session is gone, also where this fails."""
        handle, self._handle = self.handle, None
        status = self._library.fb_leave(handle)
        if status != Status.OK:
            raise error_of(status, _text(self._library.fb_last_error(None)))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._handle is not None:
            self.leave()

    def _check(self, status: int) -> None:
        if status != Status.OK:
            raise error_of(status, self.last_error)


class Step:
    """What one step changes of the forward state, committed at the end of its `with`."""

    def __init__(self, session: Session, number: int, stream: int) -> None:
        self.number = number
        self._session = session
        self._stream = stream
        self._changes: list[tuple[int, bytes]] = []
        self._state: bytes | None = None

    def change(self, offset: int, new_bytes: bytes) -> None:
        """Bytes of the forward state from `offset` on; the rest stays as it was."""
        if self._state is not None:
            raise error_of(Status.INVALID_ARGUMENT, "all of the state was given already")
        self._changes.append((offset, new_bytes))

    def replace(self, state: bytes) -> None:
        """All of the forward state, in the place of changes."""
        self._changes.clear()
        self._state = state

    def __enter__(self) -> Step:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            return
        if self._state is not None:
            self._session.commit(self.number, self._state, self._stream)
        else:
            self._session.commit_changes(self.number, self._changes, self._stream)


def join(
    *, socket_path: str | None = None, tenant: str | None = None, role: Role | None = None
) -> Session:
    """As active or standby. What is None comes from the environment, as `firebreak run` set it. NoAgentError where there is
    no agent."""
    loaded = _library.library()
    options = _library.JoinOptions(
        ctypes.sizeof(_library.JoinOptions),
        None if socket_path is None else socket_path.encode(),
        None if tenant is None else tenant.encode(),
        0 if role is None else role,
    )
    handle = ctypes.c_void_p()
    status = loaded.fb_join(ctypes.byref(options), ctypes.byref(handle))
    if status != Status.OK or handle.value is None:
        raise error_of(status, _text(loaded.fb_last_error(None)))
    return Session(handle.value)


def small_context(device: int = 0, multiprocessors: int = 8) -> tuple[int, bool]:
    """A CUDA context for a standby to wait in, current on this thread, and whether it is small: outside of MPS it is a
    full one. The caller destroys it (CUcontext). PyTorch does not use it: its context is the device's primary one."""
    loaded = _library.library()
    context, is_small = ctypes.c_void_p(), ctypes.c_int()
    status = loaded.fb_small_context(device, multiprocessors, ctypes.byref(context), ctypes.byref(is_small))
    if status != Status.OK:
        raise error_of(status, _text(loaded.fb_last_error(None)))
    return context.value or 0, is_small.value != 0


def _changes(changes: Iterable[tuple[int, bytes]]) -> tuple[ctypes.Array[_library.Change] | None, int]:
    listed = [_library.Change(offset, new_bytes, len(new_bytes)) for offset, new_bytes in changes]
    if not listed:
        return None, 0
    return (_library.Change * len(listed))(*listed), len(listed)


def _text(message: bytes | None) -> str:
    return (message or b"").decode(errors="replace")
