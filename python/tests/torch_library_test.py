# SPDX-License-Identifier: Apache-2.0
"""What PyTorch would call, without PyTorch: the same sizes in the same order are the same memory."""

import os
import pathlib
import signal
import sys
import unittest

from soft_gpu import PATIENCE_S, SoftGpuTest

TENANT = str(pathlib.Path(__file__).parent / "torch_library_tenant.py")


class SameMemory(SoftGpuTest):
    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []

    def run_one(self, role: str, *sizes: int) -> None:
        arguments = [TENANT, str(self.folder / role), *map(str, sizes)]
        self.run_tenant("pool", ["--standby"] if role == "standby" else [], arguments)
        self.until(role, lambda: len(self.lines(role)) > 0 and self.lines(role)[-1] in ("up", "down"))

    def test_a_standby_has_the_same_addresses_and_what_the_active_wrote(self) -> None:
        self.run_one("active", 2 << 20, 20 << 20, 6 << 20)
        self.run_one("standby", 2 << 20, 20 << 20, 6 << 20)
        active, standby = self.lines("active"), self.lines("standby")
        self.assertEqual(len(active), 7)
        self.assertEqual(standby, active)
        now = self.until_tenant("pool", lambda now: now["standby_state"] == "ready")
        os.kill(now["active"]["pid"], signal.SIGKILL)
        self.until("the promotion", lambda: self.lines("standby")[-1] == "promoted")

    def test_a_standby_that_allocates_something_else_is_told(self) -> None:
        self.run_one("active", 2 << 20, 20 << 20)
        self.run_one("standby", 2 << 20, 22 << 20)
        said = self.lines("standby")
        self.assertEqual(said[-1], "down")
        self.assertIn("the tenant has no allocation 'torch.state.1.23068672'", said[-2])


if __name__ == "__main__":
    sys.exit(unittest.main())
