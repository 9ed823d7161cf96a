# SPDX-License-Identifier: Apache-2.0
"""As much of the driver API as a server without PyTorch needs, for either GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence


class _Copy2d(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = [
        (end + name, kind)
        for end in ("src", "dst")
        for name, kind in (
            ("XInBytes", ctypes.c_size_t),
            ("Y", ctypes.c_size_t),
            ("MemoryType", ctypes.c_uint),
            ("Host", ctypes.c_void_p),
            ("Device", ctypes.c_uint64),
            ("Array", ctypes.c_void_p),
            ("Pitch", ctypes.c_size_t),
        )
    ] + [("WidthInBytes", ctypes.c_size_t), ("Height", ctypes.c_size_t)]


_DEVICE_MEMORY = 2


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

    def copy_rows(self, source: tuple[int, int], target: tuple[int, int], row_bytes: int, rows: int) -> None:
        """Queues a copy between two places, each an address and how far its rows are from each other."""
        copy = _Copy2d(srcMemoryType=_DEVICE_MEMORY, dstMemoryType=_DEVICE_MEMORY, WidthInBytes=row_bytes, Height=rows)
        copy.srcDevice, copy.srcPitch = source
        copy.dstDevice, copy.dstPitch = target
        self.call("cuMemcpy2DAsync_v2", ctypes.byref(copy), self._stream)

    def synchronize(self) -> None:
        self.call("cuStreamSynchronize", self._stream)

    def read(self, address: int, size_bytes: int) -> bytes:
        """Waits for what is queued."""
        into = ctypes.create_string_buffer(size_bytes)
        self.synchronize()
        self.call("cuMemcpyDtoH_v2", into, ctypes.c_uint64(address), ctypes.c_size_t(size_bytes))
        return into.raw

    def write(self, address: int, content: bytes) -> None:
        """Queued on the stream; `content` is copied before it returns."""
        self.call(
            "cuMemcpyHtoDAsync_v2", ctypes.c_uint64(address), content, ctypes.c_size_t(len(content)), self._stream
        )
