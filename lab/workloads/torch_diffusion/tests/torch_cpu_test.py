# SPDX-License-Identifier: Apache-2.0
"""The models themselves, in the smallest shapes and without a GPU; skipped where there is no PyTorch."""

import unittest
from unittest import mock

from serving.alone import served_alone
from torch_diffusion import ask
from torch_diffusion.forward import Slot
from torch_diffusion.server import Work
from torch_diffusion.shapes import SHAPES

try:
    import torch
except ModuleNotFoundError:
    torch = None  # type: ignore[assignment]

NAMES = ["tiny", "tiny-video", "tiny-large"]
SLOTS = 4


@unittest.skipIf(torch is None, "for want of PyTorch")
class Models(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)

    def engine(self):  # type: ignore[no-untyped-def]
        from torch_diffusion.torch_engine import TorchEngine

        engine = TorchEngine([SHAPES[name] for name in NAMES], SLOTS, "cpu")
        engine.weights.fill(1)
        return engine

    def slot(self, engine, name: str, seed: int, steps: int) -> Slot:  # type: ignore[no-untyped-def]
        shape = NAMES.index(name)
        return Slot(1, 1, seed, shape=shape, steps=engine.kinds[shape].units(steps))

    def png(self, engine, index: int, slot: Slot) -> bytes:  # type: ignore[no-untyped-def]
        return bytes(engine.picture(index, slot).png())

    def solo(self, name: str, seed: int, steps: int) -> bytes:
        engine = self.engine()
        slot = self.slot(engine, name, seed, steps)
        for number in range(slot.steps):
            engine.step(Work(number + 1, slot.shape, [2]), [Slot(), Slot(), slot])
            slot.done += 1
        return self.png(engine, 2, slot)

    def test_a_picture_is_the_same_in_any_company(self) -> None:
        engine = self.engine()
        slots = [self.slot(engine, "tiny", seed, 5) for seed in (1, 2, 3)]
        # Together, alone, with others, and from another place in the batch.
        for number, indices in enumerate(([0, 1], [2], [1, 0], [0], [2, 1], [2, 0], [1, 2], [1, 2], [0])):
            engine.step(Work(number + 1, 0, indices), slots)
            for index in indices:
                slots[index].done += 1
        self.assertEqual([slot.done for slot in slots], [5, 5, 5])
        pngs = [self.png(engine, index, slot) for index, slot in enumerate(slots)]
        self.assertEqual(pngs, [self.solo("tiny", seed, 5) for seed in (1, 2, 3)])
        self.assertEqual(len(set(pngs)), 3)

    def test_a_torn_step_is_repeated_by_a_successor(self) -> None:
        for name, steps in (("tiny", 4), ("tiny-video", 3), ("tiny-large", 2)):
            engine = self.engine()
            slot = self.slot(engine, name, 9, steps)
            kind = engine.kinds[slot.shape]
            for number in range(slot.steps):
                # A step that was computed, and whose commit has not come: its latents are anything.
                engine.step(Work(number + 1, slot.shape, [0]), [slot])
                if not kind.sketch_steps:
                    engine._latents[0, 1 - kind.reads(slot)].fill_(float("nan"))
                successor = self.engine()
                successor._latents.copy_(engine._latents)
                successor.warm_up()
                engine = successor
                engine.step(Work(number + 1, slot.shape, [0]), [slot])
                slot.done += 1
            self.assertEqual(self.png(engine, 0, slot), self.solo(name, 9, steps), name)

    def test_pictures_are_as_large_as_their_latents(self) -> None:
        engine = self.engine()
        for name, size, frames in (("tiny", (8, 8), 1), ("tiny-video", (8, 4), 2), ("tiny-large", (32, 32), 1)):
            slot = self.slot(engine, name, 3, 1)
            while slot.works:
                engine.step(Work(slot.done + 1, slot.shape, [0]), [slot])
                slot.done += 1
            picture = engine.picture(0, slot)
            self.assertEqual(((picture.width, picture.height), len(picture.frames)), (size, frames))
            self.assertGreater(len(set(picture.frames[0])), 20)

    def test_each_token_hears_of_all_others_and_of_the_time(self) -> None:
        engine, shape = self.engine(), SHAPES["tiny-video"]
        latents = torch.randn(1, shape.tokens, shape.model.token_floats, generator=torch.Generator().manual_seed(1))
        with torch.inference_mode():
            before = engine._velocity(shape, latents, torch.tensor([0.5]))
            later = engine._velocity(shape, latents, torch.tensor([0.25]))
            latents[0, -1] += 1
            after = engine._velocity(shape, latents, torch.tensor([0.5]))
        self.assertTrue(bool((before != after).any(-1).all()))
        self.assertTrue(bool((before != later).any(-1).all()))


class Event:
    """In the place of a GPU's."""

    def __init__(self, blocking: bool) -> None:
        self.is_over = False

    def record(self, stream: object) -> None:
        pass

    def query(self) -> bool:
        return self.is_over


@unittest.skipIf(torch is None, "for want of PyTorch")
class Ends(unittest.TestCase):
    def test_steps_on_a_gpu_have_ended_in_their_order_from_the_first_on(self) -> None:
        from serving.torch_steps import Steps

        steps = Steps("cpu", kept=8)
        steps._on_gpu = True
        with mock.patch.object(torch.cuda, "Event", Event), mock.patch.object(torch.cuda, "current_stream"):
            for step in (1, 2, 3):
                steps._note_end(step)
        events = [steps._events[step] for step in (1, 2, 3)]
        self.assertEqual(steps.ended(), 1)
        events[1].is_over = True  # type: ignore[attr-defined]
        self.assertEqual(steps.ended(), 1)
        events[0].is_over = True  # type: ignore[attr-defined]
        self.assertEqual(steps.ended(), 3)


@unittest.skipIf(torch is None, "for want of PyTorch")
class Program(unittest.TestCase):
    def test_it_draws_over_http(self) -> None:
        options = ["--engine", "torch", "--shapes", "tiny,tiny-video", "--device", "cpu"]
        with served_alone("torch_diffusion.main", *options) as address:
            found = [list(ask.lines_of(address, {"seed": seed})) for seed in (1, 2, 1)]
            pngs = [ask.get(address, lines[-1].split(" ")[1]) for lines in found]
        self.assertEqual([len(lines) for lines in found], [22, 22, 22])
        self.assertEqual(pngs[0], pngs[2])
        self.assertNotEqual(pngs[0], pngs[1])


if __name__ == "__main__":
    unittest.main()
