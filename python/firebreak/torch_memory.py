# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors in the vault: torch.cuda.MemPool over libfirebreak. Needs PyTorch 2.5; the only module that imports it.

    memory = VaultMemory(session)
    with memory.weights():
        weights = torch.empty(shape, dtype=torch.bfloat16, device="cuda")   # read-only in the standby: fill them as active
    with memory.state():
        cache = torch.empty(shape, dtype=torch.bfloat16, device="cuda")

A process that allocates the same sizes in the same order as the active did gets the same memory at the same addresses.
Inside of the two contexts only allocate: what a computation needs for itself would land in the vault as well.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import torch

from firebreak import _library
from firebreak.errors import NoMemoryError, Status, error_of
from firebreak.session import Session

_SONAME = "libfirebreak-torch.so.0"


class VaultMemory:
    """The process's, one at a time; keeps its tensors' memory for as long as it lives. Close it before the session is left,
    and touch no tensor of it afterwards."""

    def __init__(self, session: Session, timeout: float | None = 60.0) -> None:
        """A standby waits `timeout` seconds for each allocation of the active's (None: for ever)."""
        _refuse_expandable_segments()
        torch.cuda.init()
        torch.cuda.synchronize()  # CUDA's context is made at its first use, and must be current from here on
        self._session = session
        path = _library.beside(_SONAME)
        self._attach = ctypes.CDLL(path).fb_torch_attach
        self._attach.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        status = self._attach(session.handle, -1 if timeout is None else round(timeout * 1000))
        if status != Status.OK:
            raise error_of(status, "another session's memory is attached")
        # Each pool keeps its allocator alive only from 2.6 on.
        self._allocators = [
            torch.cuda.memory.CUDAPluggableAllocator(path, f"fb_torch_allocate_{kind}", "fb_torch_free")
            for kind in ("weights", "state")
        ]
        self._weights, self._state = (torch.cuda.MemPool(each.allocator()) for each in self._allocators)

    def weights(self) -> contextlib.AbstractContextManager[None]:
        """What this thread allocates here is Memory.WEIGHTS."""
        return self._allocating(self._weights)

    def state(self) -> contextlib.AbstractContextManager[None]:
        """What this thread allocates here is Memory.STATE."""
        return self._allocating(self._state)

    def close(self) -> None:
        """Nothing more is allocated."""
        self._attach(None, 0)

    @contextlib.contextmanager
    def _allocating(self, pool: torch.cuda.MemPool) -> Iterator[None]:
        try:
            with torch.cuda.use_mem_pool(pool):
                yield
        except torch.cuda.OutOfMemoryError as error:
            why = self._session.last_error
            if not why:
                raise
            raise NoMemoryError(why, Status.NO_MEMORY) from error


def current_stream() -> int:
    """PyTorch's current stream, as commits want it."""
    return int(torch.cuda.current_stream().cuda_stream)


def _refuse_expandable_segments() -> None:
    """They map memory by themselves, past every allocator of ours."""
    for variable in ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"):
        if "expandable_segments:true" in os.environ.get(variable, "").replace(" ", "").lower():
            raise error_of(Status.INVALID_ARGUMENT, f"{variable} has expandable_segments")
