# SPDX-License-Identifier: Apache-2.0
"""The server's loop against a GPU that crashes anywhere: each client gets the bytes of a run without a fault."""

import json
import os
import random
import unittest

from fake_gpu import KINDS, FakeGpu, Vault, picture_of
from serving import http
from serving.front import Asked
from torch_diffusion import asked, server
from torch_diffusion.asked import Look, Wanted
from torch_diffusion.forward import Forward, Slot
from torch_diffusion.server import Options, Server

SLOTS = 5


class Clients:
    """In the place of a front.Front: whoever asks reads at once, and their streams outlive the server's process."""

    def __init__(self) -> None:
        self.wanted: dict[int, Wanted | Look] = {}
        self.received: dict[int, bytes] = {}
        self.complete: set[int] = set()
        self.known: set[int] = set()
        self._said: dict[int, bytes] = {}

    def ask(self, wanted: Wanted | Look) -> int:
        identity = len(self.wanted) + 1
        self.wanted[identity] = wanted
        self.received[identity] = b""
        return identity

    def begin(self, known: set[int]) -> None:
        """With another process, which knows these from the state."""
        self.known, self._said = set(known), {}

    def hang_up(self, identity: int) -> None:
        self.complete.add(identity)

    def poll(self, timeout: float | None) -> list[Asked[Wanted | Look]]:
        new = [each for each in self.wanted if each not in self.known and each not in self.complete]
        self.known.update(new)
        return [Asked(each, self.wanted[each]) for each in new]

    def extend(self, identity: int, more: bytes, is_complete: bool) -> None:
        if identity in self.complete:
            return
        said = self._said[identity] = self._said.get(identity, b"") + more
        both = min(len(said), len(self.received[identity]))
        assert said[:both] == self.received[identity][:both], "what was said has changed"
        self.received[identity] = max(said, self.received[identity], key=len)
        if is_complete:
            self.complete.add(identity)

    def refuse(self, identity: int, error: http.BadRequestError) -> None:
        self.extend(identity, error.answer(), True)

    def is_done(self, identity: int) -> bool:
        return identity in self.complete


class Life:
    """A server, and those after it."""

    def __init__(self, chance: random.Random, options: Options = Options()) -> None:
        self.chance, self.vault, self.clients, self._options = chance, Vault(), Clients(), options
        self.begin()

    def begin(self) -> None:
        self.gpu = FakeGpu(self.vault, self.chance)
        self.forward = Forward(SLOTS, 7)
        if self.vault.state:
            self.forward.restore(self.vault.state)
        self.clients.begin({slot.connection for slot in self.forward.slots if slot.connection})
        self.server = Server(self.gpu, self.forward, self.gpu, self.vault.committed, self._options)
        self.server.begin()
        self.server.step_before_clients()
        self.server.go_on(self.clients)  # type: ignore[arg-type]

    def turn(self) -> None:
        self.server.turn()
        self.gpu.some_time_passes()

    def crash(self) -> None:
        self.gpu.crash()
        self.begin()

    def until_all_have_ended(self) -> None:
        for _ in range(3000):
            self.turn()
            if self.clients.complete >= set(self.clients.wanted):
                return
        raise AssertionError("somebody still waits")

    def show(self, look: Look) -> tuple[bytes, bytes]:
        identity = self.clients.ask(look)
        self.turn()
        head, _, body = self.clients.received[identity].partition(b"\r\n\r\n")
        return head, body


def expected(number: int, wanted: Wanted) -> bytes:
    shape = [kind.name for kind in KINDS].index(wanted.shape)
    steps = KINDS[shape].units(wanted.steps or KINDS[shape].steps)
    slot = Slot(number, 1, wanted.seed, shape=shape, steps=steps)
    return asked.answer(slot, wanted.shape, steps, picture_of(wanted.seed, shape, steps).png())


def number_of(received: bytes) -> int:
    return int(received.split(b"request ")[1].split(b":")[0])


class AnyCrash(unittest.TestCase):
    def test_each_client_gets_the_bytes_of_a_run_without_a_fault(self) -> None:
        seed = int(os.environ.get("FIREBREAK_TEST_SEED", random.randrange(1 << 32)))
        print(f"seed {seed} (replay: FIREBREAK_TEST_SEED={seed})")
        chance = random.Random(seed)
        answered = crashes = 0
        for _ in range(60):
            life, before = Life(chance), crashes
            for _ in range(chance.randint(20, 80)):
                if chance.random() < 0.25:
                    steps = chance.choice([None, 1, 2, 5])
                    life.clients.ask(Wanted(chance.randrange(99), chance.choice(KINDS).name, steps))
                if chance.random() < 0.05 and life.clients.wanted:
                    life.clients.hang_up(chance.choice(list(life.clients.wanted)))
                if chance.random() < 0.15:
                    life.crash()
                    crashes += 1
                life.gpu.held = chance.random() < 0.1
                life.turn()
            life.gpu.held = False
            gone = set(life.clients.complete)
            life.until_all_have_ended()
            numbers = []
            for identity, wanted in life.clients.wanted.items():
                received = life.clients.received[identity]
                if received.startswith(b"HTTP/1.1 200"):
                    numbers.append(number_of(received))
                    whole = expected(numbers[-1], wanted)
                    self.assertTrue(whole.startswith(received))
                    self.assertTrue(received == whole or identity in gone)
                    answered += received == whole
                elif received:
                    self.assertIn(b"503 Service Unavailable", received)
            self.assertEqual(len(numbers), len(set(numbers)))
            # A step has two pictures at most, and a tile is one of its own: that much is computed again.
            self.assertLessEqual(life.vault.units_computed - life.vault.units_committed, 2 * (crashes - before + 1))
        self.assertGreater(answered, 200)
        self.assertGreater(crashes, 80)


class Loop(unittest.TestCase):
    def setUp(self) -> None:
        self.life = Life(random.Random(1))

    def test_nothing_is_answered_before_it_is_committed(self) -> None:
        identity = self.life.clients.ask(Wanted(3, "small"))
        self.life.gpu.held = True
        for _ in range(3):
            self.life.turn()
        self.assertEqual(self.life.clients.received[identity], b"")
        self.assertEqual(json.loads(self.life.show(Look())[1])["waiting"], [])
        self.life.gpu.held = False
        self.life.until_all_have_ended()
        self.assertEqual(self.life.clients.received[identity], expected(1, Wanted(3, "small")))

    def test_pictures_of_one_shape_are_one_step(self) -> None:
        for seed in (1, 2):
            self.life.clients.ask(Wanted(seed, "small", deadline_ms=60_000))
        self.life.until_all_have_ended()
        self.assertEqual(sum(self.life.gpu.batches), 8)
        self.assertIn(2, self.life.gpu.batches)

    def test_what_it_wants_of_the_others_is_what_is_left(self) -> None:
        self.life.clients.ask(Wanted(1, "video", deadline_ms=3_600_000))
        now = server.now_ns() / 1e9
        self.life.until_all_have_ended()
        for _ in range(2):
            self.life.turn()
        units = [units for units, _ in self.life.gpu.wanted if units > 0]
        # Once to be admitted, and once a step.
        self.assertEqual(units, [6, 6, 5, 4, 3, 2, 1])
        deadlines = {deadline for units, deadline in self.life.gpu.wanted if units > 0}
        self.assertEqual(len(deadlines), 1)
        self.assertAlmostEqual(deadlines.pop(), now + 3600, delta=60)
        self.assertEqual(self.life.gpu.wanted[-1], (0, None))

    def test_deadlines_in_the_past_and_too_far(self) -> None:
        self.life.clients.ask(Wanted(1, "small", deadline_ms=-5000.0))
        self.life.clients.ask(Wanted(2, "small", deadline_ms=1e15))
        self.life.clients.ask(Wanted(3, "small"))
        before = server.now_ns()
        self.life.turn()
        slots = sorted(self.life.forward.slots[:3], key=lambda slot: slot.seed)
        self.assertEqual(slots[0].deadline_ns, slots[0].arrived_ns)
        self.assertGreaterEqual(slots[0].deadline_ns, before)
        self.assertEqual(slots[1].deadline_ns, 0)
        self.assertGreater(slots[2].deadline_ns, slots[2].arrived_ns)
        self.life.until_all_have_ended()

    def test_who_has_no_slot_is_told_when_to_ask_again(self) -> None:
        for seed in range(SLOTS):
            self.life.clients.ask(Wanted(seed, "video", steps=1000))
        self.life.turn()
        identity = self.life.clients.ask(Wanted(9, "small"))
        self.life.turn()
        received = self.life.clients.received[identity]
        self.assertTrue(received.startswith(b"HTTP/1.1 503 Service Unavailable\r\n"))
        self.assertRegex(received, rb"\r\nRetry-After: [1-9][0-9]*\r\n")
        # Whoever hangs up makes room.
        self.life.clients.hang_up(1)
        again = self.life.clients.ask(Wanted(9, "small", deadline_ms=600_000))
        for _ in range(3000):
            self.life.turn()
            if self.life.clients.is_done(again):
                break
        self.assertEqual(self.life.clients.received[again], expected(SLOTS + 1, Wanted(9, "small")))

    def test_a_finished_picture_stays_until_its_slot_is_needed(self) -> None:
        for seed in range(SLOTS):
            self.life.clients.ask(Wanted(seed, "small"))
            self.life.until_all_have_ended()
        self.life.crash()
        png = picture_of(0, 0, 4).png()
        head, body = self.life.show(Look(1))
        self.assertIn(b"image/png", head)
        self.assertEqual(body, png)
        found = json.loads(self.life.show(Look())[1])
        self.assertEqual([each["path"] for each in found["pictures"]], [f"/pictures/{n}.png" for n in range(1, 6)])
        self.assertIn(b'<img src="/pictures/5.png"', self.life.show(Look(as_page=True))[1])
        self.life.clients.ask(Wanted(8, "small"))
        self.life.until_all_have_ended()
        self.assertIn(b"404 Not Found", self.life.show(Look(1))[0])
        self.assertEqual(self.life.show(Look(6))[1], picture_of(8, 0, 4).png())

    def test_a_fault_costs_one_tile(self) -> None:
        self.life.clients.ask(Wanted(5, "large"))
        crashes = 0
        while 1 not in self.life.clients.complete:
            self.life.turn()
            self.life.crash()
            crashes += 1
        self.assertEqual(self.life.clients.received[1], expected(1, Wanted(5, "large")))
        self.assertEqual(self.life.vault.units_committed, 3 + 1 + 16)
        self.assertGreaterEqual(crashes, 16)
        self.assertLessEqual(self.life.vault.units_computed - 20, crashes)

    def test_the_page_shows_who_waits(self) -> None:
        self.life.clients.ask(Wanted(77, "video"))
        for _ in range(4):
            self.life.turn()
        page = self.life.show(Look(as_page=True))[1].decode()
        self.assertIn("<td>77</td>", page)
        self.assertIn("This tenant computes", page)
        self.life.gpu.held = True
        self.life.turn()
        self.assertIn("waits for its turn; 1 turns were waited for", self.life.show(Look(as_page=True))[1].decode())


if __name__ == "__main__":
    unittest.main()
