# SPDX-License-Identifier: Apache-2.0
"""A fault on purpose, in the server's own process: on SIGUSR2 the next step begins with a kernel that does not survive."""

from __future__ import annotations

import signal

from serving.commits import say
from serving.driver import Driver

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
        self._driver = Driver()
        self._kernel = self._driver.kernels(_PTX, [kind])[kind]
        signal.signal(signal.SIGUSR2, self._want)

    def before_step(self, step: int) -> None:
        if not self._is_wanted:
            return
        self._is_wanted = False
        self._driver.call("cuCtxSynchronize")  # so that the time is the fault's own
        say("fault raised", step=step, kind=self._kind)
        one = (1, 1, 1)
        self._driver.call("cuLaunchKernel", self._kernel, *one, *one, 0, None, None, None)

    def _want(self, number: int, frame: object) -> None:
        self._is_wanted = True
