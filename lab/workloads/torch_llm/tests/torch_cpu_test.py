# SPDX-License-Identifier: Apache-2.0
"""The model itself, in the smallest shape and without a GPU; skipped where there is no PyTorch."""

import unittest

from serving.alone import served_alone
from torch_llm.client import StreamClient
from torch_llm.schedule import Limits, Schedule
from torch_llm.shapes import SHAPES

try:
    import torch
except ModuleNotFoundError:
    torch = None  # type: ignore[assignment]

LIMITS = Limits(slots=4, pages=40, page_tokens=4, context=64)
# When it comes, its connection, its prompt, and how long its answer is.
REQUESTS = [
    (1, 1, [5, 6, 7], 30),
    (1, 2, [8], 20),
    (4, 3, [1, 2, 3, 4, 5, 6], 9),
    (5, 4, [9, 9], 12),
    (6, 5, [77, 3], 25),
]
Requests = list[tuple[int, int, list[int], int]]


@unittest.skipIf(torch is None, "for want of PyTorch")
class Model(unittest.TestCase):
    def setUp(self) -> None:
        torch.set_num_threads(1)

    def engine(self):  # type: ignore[no-untyped-def]
        from torch_llm.torch_engine import TorchEngine

        engine = TorchEngine(SHAPES["tiny"], LIMITS, "cpu")
        engine.weights.fill(1)
        return engine

    def answers(self, requests: Requests, taken_over_after: int = 0) -> dict[int, list[int]]:
        engine, schedule, left = self.engine(), Schedule(LIMITS, 1), list(requests)
        found: dict[int, list[int]] = {}
        for step in range(1, 120):
            if left and left[0][0] <= step:
                _, connection, prompt, count = left[0]
                slot = schedule.admit(connection, len(prompt), count, step)
                if slot is not None:
                    engine.write_prompt(slot, prompt)
                    left.pop(0)
            work = schedule.begin(step)
            engine.step(work, schedule)
            for index in (*work.prompts, *work.decodes):
                found.setdefault(schedule.slots[index].connection, []).append(engine.sampled(step)[index])
            for index, each in enumerate(schedule.slots):
                if each.connection != 0 and not each.works_at(step + 1):
                    in_memory = engine.answer(index, each.prompt_tokens, each.answer_tokens)
                    self.assertEqual(in_memory, found[each.connection])
                    schedule.free(index)
            if step == taken_over_after:
                engine, schedule = self.successor(engine, schedule)
        return found

    def successor(self, engine, schedule):  # type: ignore[no-untyped-def]
        """Has what the vault has, the state, and nothing else."""
        other, its = self.engine(), Schedule(LIMITS, 1)
        other._cache.copy_(engine._cache)
        other._tokens.copy_(engine._tokens)
        other.warm_up()
        its.restore(schedule.state())
        other.take_over(its)
        return other, its

    def test_answers_are_the_same_after_a_takeover_at_any_step(self) -> None:
        undisturbed = self.answers(REQUESTS)
        self.assertEqual([len(undisturbed[n]) for n in range(1, 6)], [30, 20, 9, 12, 25])
        self.assertGreater(len({token for answer in undisturbed.values() for token in answer}), 20)
        for step in (1, 2, 5, 6, 17, 40):
            self.assertEqual(self.answers(REQUESTS, step), undisturbed)

    def test_answers_are_the_same_in_any_company(self) -> None:
        together = self.answers(REQUESTS)
        for request in REQUESTS:
            self.assertEqual(self.answers([request])[request[1]], together[request[1]])

    def test_a_prompt_is_computed_as_an_answer_is(self) -> None:
        """But for rounding: the sums are of other lengths."""
        prompt, count = [5, 6, 7], 10
        token_by_token, tokens = self.cache_after(prompt, count)
        at_once, _ = self.cache_after(tokens[: len(prompt) + count], 1)
        self.assertGreater(float(token_by_token.abs().max()), 0.5)
        self.assertLess(float((token_by_token - at_once).abs().max()), 0.1)

    def cache_after(self, prompt: list[int], steps: int):  # type: ignore[no-untyped-def]
        """Of the positions that have been computed, and all tokens so far."""
        engine, schedule = self.engine(), Schedule(LIMITS, 1)
        slot = schedule.admit(1, len(prompt), 20, 1)
        engine.write_prompt(slot, prompt)
        for step in range(1, steps + 1):
            engine.step(schedule.begin(step), schedule)
        count = len(prompt) + steps - 1
        rows = engine._rows[slot, : min(count, 12)]
        return engine._cache[:, :, rows].float(), engine.answer(slot, 0, count + 1)


@unittest.skipIf(torch is None, "for want of PyTorch")
class Program(unittest.TestCase):
    def test_it_answers_over_http(self) -> None:
        options = ["--device", "cpu", "--size", "tiny", "--context", "64", "--slots", "2"]
        with served_alone("torch_llm.main", *options) as address:
            # The first and the last ask the same, in other company.
            clients = [StreamClient(address, [n % 3 + 1, 2], 20) for n in range(4)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
        self.assertEqual([(len(client.tokens), client.failures) for client in clients], [(20, 0)] * 4)
        self.assertEqual(clients[0].tokens, clients[3].tokens)
        self.assertNotEqual(clients[0].tokens, clients[1].tokens)


if __name__ == "__main__":
    unittest.main()
