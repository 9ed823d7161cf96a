# SPDX-License-Identifier: Apache-2.0
"""A fault on purpose, in the server's own process: on SIGUSR2 the next step begins with a kernel that does not survive."""

from __future__ import annotations

import ctypes
import signal

from torch_llm.server import say

KINDS = ("trap", "misaligned")

_PTX = b"""
.version 7.0
.target sm_70
.address_size 64

.visible .entry trap()
{
  trap;
}

.visible .entry misaligned()
{
  .shared .align 8 .b8 bytes[16];
  .reg .u32 %at, %value;
  mov.u32 %at, bytes;
  add.u32 %at, %at, 1;
  ld.volatile.shared.u32 %value, [%at];
  ret;
}
"""


class Fault:
    """Prepared where a CUDA context is current, so that raising it takes one launch."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._is_wanted = False
        self._driver = ctypes.CDLL("libcuda.so.1")
        module, self._kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("cuModuleLoadData", ctypes.byref(module), _PTX)
        self._call("cuModuleGetFunction", ctypes.byref(self._kernel), module, kind.encode())
        signal.signal(signal.SIGUSR2, self._want)

    def before_step(self, step: int) -> None:
        if not self._is_wanted:
            return
        self._is_wanted = False
        self._call("cuCtxSynchronize")  # so that the time is the fault's own
        say("fault raised", step=step, kind=self._kind)
        one = (1, 1, 1)
        self._call("cuLaunchKernel", self._kernel, *one, *one, 0, None, None, None)

    def _want(self, number: int, frame: object) -> None:
        self._is_wanted = True

    def _call(self, name: str, *arguments: object) -> None:
        result = getattr(self._driver, name)(*arguments)
        if result != 0:
            raise RuntimeError(f"{name}: {result}")
