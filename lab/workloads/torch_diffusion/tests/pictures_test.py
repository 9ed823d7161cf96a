# SPDX-License-Identifier: Apache-2.0
"""Pictures on the software GPU, whose server faults, is killed or hands over: they are firebreak-denoise's, bit for bit, and
what its clients read is what a run without a fault says."""

import os
import random
import signal
import unittest

from pictures import NAME, SEED, Client, PicturesTest
from soft_gpu import PATIENCE_S, PROGRAMS


class AnyEnd(PicturesTest):
    def test_a_neighbour_faults_in_the_middle(self) -> None:
        wanted: list[dict[str, object]] = [
            {"seed": SEED},
            {"seed": 2, "shape": "video"},
            {"seed": 3, "shape": "large", "steps": 1},
        ]
        self.serve("--pair")
        first = self.until_protected(NAME)
        clients = [Client(self.address, each) for each in wanted]
        self.until("steps", lambda: len(clients[0].lines) > 5)
        self.inject()
        self.until_protected(NAME, first)
        self.assertEqual([client.all_lines() for client in clients], self.without_a_fault(wanted))
        self.assertEqual(len(clients[2].lines), 2 + 10 + 1 + 16)
        self.assertEqual(self.picture(clients[0]), self.drawn_by_denoise(20))

    def test_the_active_is_killed_wherever_it_is(self) -> None:
        seed = int(os.environ.get("FIREBREAK_TEST_SEED", random.randrange(1 << 32)))
        print(f"seed {seed} (replay: FIREBREAK_TEST_SEED={seed})")
        chance = random.Random(seed)
        self.serve("--pair", pace_ms=3)
        active = self.until_protected(NAME)
        wanted: list[dict[str, object]] = []
        clients: list[Client] = []
        for _ in range(2):
            shapes = [chance.choice(["picture", "video", "large"]) for _ in range(3)]
            new = [{"seed": chance.randrange(99), "shape": each, "steps": 1 if each == "large" else 15} for each in shapes]
            wanted += new
            clients += [Client(self.address, each) for each in new]
            lines = chance.randrange(1, 15)
            some = clients[-1]
            self.until("lines", lambda: len(some.lines) >= lines)
            os.kill(active, signal.SIGKILL)
            active = self.until_protected(NAME, active)
        self.assertEqual([client.all_lines() for client in clients], self.without_a_fault(wanted))

    def test_it_hands_over_and_comes_back(self) -> None:
        self.serve("--pair")
        first = self.until_protected(NAME)
        client = Client(self.address, {"seed": SEED})
        self.until("steps", lambda: len(client.lines) > 5)
        asked = self.start([str(PROGRAMS / "firebreak"), "hand-over", NAME, "--socket", self.socket])
        self.assertEqual(asked.wait(PATIENCE_S), 0)
        os.kill(self.until_protected(NAME, first), signal.SIGKILL)
        self.assertEqual(self.picture(client), self.drawn_by_denoise(20))
        # All state, the request, and each of its steps; whoever goes on begins nothing anew.
        now = self.until_tenant(NAME, lambda now: now["phase"] == "serving")
        self.assertEqual(now["committed_steps"], 1 + 1 + 20)


if __name__ == "__main__":
    unittest.main()
