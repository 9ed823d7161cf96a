# SPDX-License-Identifier: Apache-2.0
"""A whole tenant in Python: its active is killed, and its standby writes what it would have written."""

import os
import pathlib
import signal
import unittest

from numbers_tenant import STEPS, next_number
from soft_gpu import PATIENCE_S, SoftGpuTest

TENANT = str(pathlib.Path(__file__).parent / "numbers_tenant.py")


def expected_numbers() -> str:
    text, number = "", 1
    for _ in range(STEPS):
        number = next_number(number)
        text += f"{number}\n"
    return text


class Failover(SoftGpuTest):
    def setUp(self) -> None:
        super().setUp()
        self.output = self.folder / "numbers"

    def test_alone(self) -> None:
        active = self.run_tenant("numbers", [], [TENANT, str(self.output), "0"])
        self.assertEqual(active.wait(PATIENCE_S), 0)
        self.assertEqual(self.output.read_text(), expected_numbers())

    def test_the_standby_goes_on_where_the_active_was_killed(self) -> None:
        # Slow, so that the standby is up long before its end.
        active = self.run_tenant("numbers", [], [TENANT, str(self.output), "500"])
        self.until_tenant("numbers", lambda now: now["phase"] == "serving")
        standby = self.run_tenant("numbers", ["--standby"], [TENANT, str(self.output), "0"])
        now = self.until_tenant(
            "numbers", lambda now: now["standby_state"] == "ready" and now["committed_steps"] >= 3
        )
        os.kill(now["active"]["pid"], signal.SIGKILL)
        self.assertEqual(active.wait(PATIENCE_S), -signal.SIGKILL)
        self.assertEqual(standby.wait(PATIENCE_S), 0)
        self.assertEqual(self.output.read_text(), expected_numbers())

    def test_a_standby_of_who_finishes_ends_too(self) -> None:
        active = self.run_tenant("numbers", [], [TENANT, str(self.output), "20"])
        self.until_tenant("numbers", lambda now: now["phase"] == "serving")
        standby = self.run_tenant("numbers", ["--standby"], [TENANT, str(self.folder / "other"), "0"])
        self.assertEqual(active.wait(PATIENCE_S), 0)
        self.assertEqual(standby.wait(PATIENCE_S), 0)
        self.assertFalse((self.folder / "other").exists())


if __name__ == "__main__":
    unittest.main()
