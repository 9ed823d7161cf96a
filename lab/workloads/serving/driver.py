# SPDX-License-Identifier: Apache-2.0
"""As much of the driver API as a server without PyTorch needs, for either GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence


class Driver:
    """Its calls are for the context that is current. RuntimeError: what the driver answers."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")

    def call(self, name: str, *arguments: object) -> None:
        result = getattr(self._library, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")

    def kernels(self, ptx: bytes, names: Sequence[str]) -> dict[str, ctypes.c_void_p]:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ptx)
        found = {}
        for name in names:
            found[name] = ctypes.c_void_p()
            self.call("cuModuleGetFunction", ctypes.byref(found[name]), module, name.encode())
        return found


class Gpu(Driver):
    """With a context, current in the thread that made it, and one stream."""

    def __init__(self) -> None:
        super().__init__()
        self._stream, context = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
        self.call("cuStreamCreate", ctypes.byref(self._stream), 1)

    @property
    def stream(self) -> int:
        return self._stream.value or 0

    def allocate(self, size_bytes: int) -> int:
        """The process's own memory, for as long as it lives."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
        return address.value

    def launch(self, kernel: ctypes.c_void_p, blocks: tuple[int, int], threads: int, arguments: ctypes.Structure) -> None:
        """Queues a kernel whose one parameter is `arguments`."""
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(arguments))
        self.call("cuLaunchKernel", kernel, *blocks, 1, threads, 1, 1, 0, self._stream, parameters, None)

    def synchronize(self) -> None:
        self.call("cuStreamSynchronize", self._stream)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Waits for what is queued."""
        into = ctypes.create_string_buffer(size_bytes)
        self.synchronize()
        self.call("cuMemcpyDtoH_v2", into, ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))
        return into.raw
