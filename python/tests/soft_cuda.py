# SPDX-License-Identifier: Apache-2.0
"""As much of the driver API as tests need, for either GPU: a context, a stream, fills and copies."""

from __future__ import annotations

import ctypes


class Cuda:
    """With a context that is current in the thread that made it."""

    def __init__(self) -> None:
        self._driver = ctypes.CDLL("libcuda.so.1")
        self.stream_handle = ctypes.c_void_p()
        context = ctypes.c_void_p()
        self._call("cuInit", 0)
        self._call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)
        self._call("cuStreamCreate", ctypes.byref(self.stream_handle), 1)

    @property
    def stream(self) -> int:
        return self.stream_handle.value or 0

    def fill(self, address: int, word: int, count: int = 1) -> None:
        self._call("cuMemsetD32Async", ctypes.c_uint64(address), word, ctypes.c_size_t(count), self.stream_handle)

    def synchronize(self) -> None:
        self._call("cuStreamSynchronize", self.stream_handle)

    def read(self, address: int, size_bytes: int) -> bytes:
        into = ctypes.create_string_buffer(size_bytes)
        self._call("cuMemcpyDtoH_v2", into, ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))
        return into.raw

    def write(self, address: int, content: bytes) -> None:
        """Queued on the stream; `content` is copied before it returns."""
        self._call(
            "cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), content, ctypes.c_size_t(len(content)), self.stream_handle
        )

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")
