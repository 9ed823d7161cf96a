# SPDX-License-Identifier: Apache-2.0
"""Every failure of the C ABI as an exception of its own, with the library's message."""

from __future__ import annotations

import enum


class Status(enum.IntEnum):
    """fb_status."""

    OK = 0
    INVALID_ARGUMENT = 1
    NO_AGENT = 2
    REFUSED = 3
    FENCED = 4
    TIMEOUT = 5
    CUDA = 6
    NO_MEMORY = 7
    CORRUPT = 8
    CLIENT_GONE = 9


class Error(Exception):
    """A call of libfirebreak failed; `status` says how, the text why."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class InvalidArgumentError(Error, ValueError):
    """An argument that is none, or a call in the wrong role."""


class NoAgentError(Error):
    """There is no agent, or it is gone. Without one a tenant may go on unprotected."""


class RefusedError(Error):
    """The agent said no; to a waiting standby: the tenant has finished."""


class FencedError(Error):
    """Another process is the active one now; nothing that this one writes counts any more."""


class TimedOutError(Error, TimeoutError):
    """It did not happen in the given time."""


class CudaError(Error):
    """The driver failed."""


class NoMemoryError(Error, MemoryError):
    """GPU or host memory, or the tenant's quota."""


class CorruptError(Error):
    """Shared state that is torn or of another version; it is never used."""


class ClientGoneError(Error, ConnectionError):
    """The tenant's client has closed its connection."""


_CLASSES: dict[int, type[Error]] = {
    Status.INVALID_ARGUMENT: InvalidArgumentError,
    Status.NO_AGENT: NoAgentError,
    Status.REFUSED: RefusedError,
    Status.FENCED: FencedError,
    Status.TIMEOUT: TimedOutError,
    Status.CUDA: CudaError,
    Status.NO_MEMORY: NoMemoryError,
    Status.CORRUPT: CorruptError,
    Status.CLIENT_GONE: ClientGoneError,
}


def error_of(status: int, message: str) -> Error:
    """The exception for a status that is not OK; a status of a newer library is a plain Error."""
    return _CLASSES.get(status, Error)(message, status)
