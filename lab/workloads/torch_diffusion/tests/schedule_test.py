# SPDX-License-Identifier: Apache-2.0
"""Each policy against brute force, on thousands of small cases by a seed; ageing; and what bad input gets."""

import dataclasses
import itertools
import math
import os
import random
import unittest
from collections.abc import Iterator, Sequence

from torch_diffusion import schedule
from torch_diffusion.schedule import Request, Unit

CASES = 2000


def seeded() -> random.Random:
    seed = int(os.environ.get("FIREBREAK_TEST_SEED", random.randrange(1 << 32)))
    print(f"seed {seed} (replay: FIREBREAK_TEST_SEED={seed})")
    return random.Random(seed)


class Table:
    """schedule.Costs of few shapes: pictures "a" and "b", and a video."""

    def __init__(self, a: float = 1.0, b: float = 2.0, video: float = 3.0, more: float = 0.5, batch: int = 3) -> None:
        self._steps_s = {"a": a, "b": b, "video": video}
        self._more = more
        self._batch = batch

    def step_s(self, shape: str, batch: int) -> float:
        return self._steps_s[shape] * (1 + self._more * (batch - 1))

    def batch_most(self, shape: str) -> int:
        return 1 if shape == "video" else self._batch


def some_requests(chance: random.Random, most: int, tight: float = 1.0) -> list[Request]:
    """All there at 0. Sums of such times are exact."""
    found = []
    for identity in range(chance.randint(1, most)):
        shape = chance.choice(["a", "b", "video"])
        deadline = math.inf if chance.random() < 0.1 else float(chance.randint(0, int(40 * tight)))
        found.append(Request(identity, shape, -identity / 8, deadline, chance.randint(1, 4), 0.0))
    chance.shuffle(found)
    return found


def ends_of(policy: schedule.Policy, requests: Sequence[Request], gpus: int, costs: Table) -> dict[int, float]:
    """When each has ended, where a decision is made after each step."""
    waiting = {each.identity: each for each in requests}
    busy: list[tuple[float, list[Request]]] = []
    now, ends = 0.0, {}
    while waiting or busy:
        for unit in policy(list(waiting.values()), gpus - len(busy), now, costs) if len(busy) < gpus else []:
            members = [waiting.pop(identity) for identity in unit.identities]
            busy.append((now + costs.step_s(unit.shape, len(members)), members))
        now = min(end for end, _ in busy)
        for end, members in [each for each in busy if each[0] <= now]:
            busy.remove((end, members))
            for each in members:
                if each.steps_left == 1:
                    ends[each.identity] = now
                else:
                    waiting[each.identity] = dataclasses.replace(each, steps_left=each.steps_left - 1)
    return ends


def orders(requests: Sequence[Request], gpus: int, costs: Table) -> Iterator[dict[int, float]]:
    """When each ends, for each order in which they can be given to the GPU that is free first."""
    for order in itertools.permutations(requests):
        free, ends = [0.0] * gpus, {}
        for each in order:
            first = free.index(min(free))
            free[first] += schedule.remaining_s(each, costs)
            ends[each.identity] = free[first]
        yield ends


def on_time(requests: Sequence[Request], ends: dict[int, float]) -> int:
    return sum(ends[each.identity] <= each.deadline for each in requests)


class Baselines(unittest.TestCase):
    def test_first_come_ends_nobody_before_who_came_before(self) -> None:
        chance, costs = seeded(), Table()
        for _ in range(CASES // 4):
            requests = some_requests(chance, 6)
            ends = ends_of(schedule.first_come, requests, 1, costs)
            by_arrival = sorted(requests, key=lambda each: each.arrived)
            at = 0.0
            for each in by_arrival:
                at += schedule.remaining_s(each, costs)
                self.assertEqual(ends[each.identity], at)

    def test_no_order_waits_less_than_the_shortest_remaining_first(self) -> None:
        chance, costs = seeded(), Table()
        for _ in range(CASES // 4):
            requests, gpus = some_requests(chance, 5), chance.randint(1, 2)
            least = min(sum(ends.values()) for ends in orders(requests, gpus, costs))
            self.assertEqual(sum(ends_of(schedule.shortest_remaining, requests, gpus, costs).values()), least)

    def test_where_any_order_meets_all_deadlines_the_earliest_first_does(self) -> None:
        chance, costs = seeded(), Table()
        possible = 0
        for _ in range(CASES // 2):
            requests = some_requests(chance, 4, tight=1.5)
            if any(on_time(requests, ends) == len(requests) for ends in orders(requests, 1, costs)):
                possible += 1
                ends = ends_of(schedule.earliest_deadline, requests, 1, costs)
                self.assertEqual(on_time(requests, ends), len(requests))
        self.assertGreater(possible, CASES // 20)

    def test_each_gpu_gets_one_request(self) -> None:
        requests = some_requests(random.Random(1), 6)
        for policy in (schedule.first_come, schedule.shortest_remaining, schedule.earliest_deadline):
            for gpus in range(1, 9):
                units = policy(requests, gpus, 0.0, Table())
                self.assertEqual(len(units), min(gpus, len(requests)))
                self.assertEqual(len({unit.identities for unit in units}), len(units))


def most_gain(ordered: Sequence[Request], gpus: int, costs: Table, gains: dict[int, float]) -> float:
    """Every way to leave a request out, or to begin a unit with it."""
    if not ordered or gpus == 0:
        return 0.0
    found = most_gain(ordered[1:], gpus, costs, gains)
    for size in range(1, len(ordered) + 1):
        gain = schedule.gain_of_unit(ordered[:size], 0.0, costs, gains)
        if gain is not None:
            found = max(found, gain + most_gain(ordered[size:], gpus - 1, costs, gains))
    return found


def most_on_time_in_one_round(requests: Sequence[Request], gpus: int, costs: Table) -> int:
    """Every set of any pictures of one shape as a batch, neighbours or not."""
    if not requests or gpus == 0:
        return 0
    first, others = requests[0], requests[1:]
    found = most_on_time_in_one_round(others, gpus, costs)
    for size in range(costs.batch_most(first.shape)):
        for joined in itertools.combinations([each for each in others if each.shape == first.shape], size):
            members = [first, *joined]
            if all(schedule.remaining_s(each, costs, len(members)) <= each.deadline for each in members):
                left = [each for each in others if each not in joined]
                found = max(found, len(members) + most_on_time_in_one_round(left, gpus - 1, costs))
    return found


class Program(unittest.TestCase):
    def test_no_units_have_a_larger_gain(self) -> None:
        chance = seeded()
        for _ in range(CASES):
            costs = Table(more=chance.choice([0.0, 0.5, 1.0]), batch=chance.randint(1, 4))
            requests, gpus = some_requests(chance, 7), chance.randint(1, 3)
            gains = {each.identity: float(chance.randint(1, 9)) for each in requests}
            units = schedule.best_units(requests, gpus, 0.0, costs, gains)
            given = [identity for unit in units for identity in unit.identities]
            self.assertEqual(len(given), len(set(given)))
            self.assertLessEqual(len(units), gpus)
            by_identity = {each.identity: each for each in requests}
            for unit in units:
                members = [by_identity[identity] for identity in unit.identities]
                self.assertIsNotNone(schedule.gain_of_unit(members, 0.0, costs, gains))
            ordered = schedule.in_order(requests)
            self.assertEqual(sum(gains[each] for each in given), most_gain(ordered, gpus, costs, gains))

    def test_batches_of_neighbours_lose_nothing(self) -> None:
        """Pictures with the same work each: no batch of others than neighbours by deadline would have more of them on time."""
        chance = seeded()
        for _ in range(CASES // 2):
            costs = Table(more=chance.choice([0.25, 0.5, 1.0]), batch=chance.randint(1, 3))
            requests = [
                dataclasses.replace(each, steps_left=2, shape=chance.choice(["a", "b"]))
                for each in some_requests(chance, 6, tight=0.2)
            ]
            gpus = chance.randint(1, 2)
            can_be = [each for each in requests if schedule.remaining_s(each, costs) <= each.deadline]
            gains = {each.identity: 1.0 for each in can_be}
            units = schedule.best_units(can_be, gpus, 0.0, costs, gains)
            found = sum(len(unit.identities) for unit in units)
            self.assertEqual(found, most_on_time_in_one_round(requests, gpus, costs))

    def test_as_many_are_on_time_as_in_the_best_order(self) -> None:
        """Of one GPU, for requests that are all there."""
        chance = seeded()
        costs = Table(batch=1)
        missed = 0
        for _ in range(CASES // 2):
            requests = some_requests(chance, 5, tight=0.8)
            best = max(on_time(requests, ends) for ends in orders(requests, 1, costs))
            ends = ends_of(schedule.program(round_s=3.0), requests, 1, costs)
            self.assertEqual(on_time(requests, ends), best, requests)
            missed += best < len(requests)
        self.assertGreater(missed, CASES // 20)

    def test_who_would_be_late_next_goes_first_and_a_batch_never_makes_its_anchor_late(self) -> None:
        costs = Table()
        picture, other = Request(1, "a", 0, 4.0, 4, 0), Request(2, "a", 0, 90.0, 4, 0)
        video = Request(3, "video", 0, 12.5, 4, 0)
        units = schedule.program(1.0)([picture, other, video], 2, 0.0, costs)
        self.assertEqual(units, [Unit("a", (1,)), Unit("video", (3,))])
        patient = dataclasses.replace(picture, deadline=6.0)
        units = schedule.program(1.0)([patient, other, video], 2, 0.0, costs)
        self.assertEqual(set(units), {Unit("a", (1, 2)), Unit("video", (3,))})


class Ageing(unittest.TestCase):
    def test_a_video_ends_though_pictures_never_end_to_come(self) -> None:
        costs = Table()
        for name in schedule.POLICIES[1:]:
            policy = schedule.policy_of(name, 3.0)
            self.assertIsNone(self.end_of_a_video(policy, costs, math.inf), name)
            self.assertIsNotNone(self.end_of_a_video(policy, costs, 5.0), name)

    def end_of_a_video(self, policy: schedule.Policy, costs: Table, patience_s: float) -> int | None:
        """The round in which it ends, of the first that are looked at; a new picture comes in each round."""
        video, ages, now = Request(0, "video", 0.0, math.inf, 6, 0.0), schedule.Ages(patience_s), 0.0
        for number in range(1, 400):
            picture = Request(number, "a", now, now + 1.5, 1, now)
            units, ages = schedule.choose(policy, [video, picture], 1, now, costs, ages)
            now += costs.step_s(units[0].shape, 1)
            if units[0].identities == (0,):
                video = dataclasses.replace(video, steps_left=video.steps_left - 1, served=now)
                if video.steps_left == 0:
                    return number
        return None

    def test_nobody_waits_longer_than_it_says(self) -> None:
        chance, costs = seeded(), Table()
        patience_s = 20.0
        for _ in range(CASES // 100):
            requests = {n: Request(n, chance.choice("ab"), 0.0, 5.0, 10**6, 0.0) for n in range(chance.randint(2, 6))}
            policy, ages, now = schedule.policy_of("program", 3.0), schedule.Ages(patience_s), 0.0
            bound = (len(requests) + 1) * patience_s + costs.step_s("b", 3)
            for _ in range(300):
                units, ages = schedule.choose(policy, list(requests.values()), 1, now, costs, ages)
                for each in requests.values():
                    self.assertLessEqual(now - each.served, bound)
                now += costs.step_s(units[0].shape, len(units[0].identities))
                for each in units[0].identities:
                    requests[each] = dataclasses.replace(requests[each], served=now)

    def test_the_others_have_all_gpus_but_one(self) -> None:
        old, new = Request(0, "video", 0.0, math.inf, 6, 0.0), Request(1, "a", 9.0, 12.0, 2, 9.0)
        ages = schedule.Ages(5.0)
        units, later = schedule.choose(schedule.shortest_remaining, [new, old], 2, 10.0, Table(), ages)
        self.assertEqual(units, [Unit("video", (0,)), Unit("a", (1,))])
        units, _ = schedule.choose(schedule.shortest_remaining, [new, old], 1, 11.0, Table(), later)
        self.assertEqual(units, [Unit("a", (1,))])


class BadInput(unittest.TestCase):
    def test_deadlines(self) -> None:
        self.assertEqual(schedule.deadline_of(5.0, 9.0), 9.0)
        self.assertEqual(schedule.deadline_of(-1e9, 9.0), 9.0)
        self.assertEqual(schedule.deadline_of(10.0, 9.0), 10.0)
        self.assertEqual(schedule.deadline_of(9.0 + schedule.FURTHEST_S, 9.0), 9.0 + schedule.FURTHEST_S)
        self.assertEqual(schedule.deadline_of(10.0 + schedule.FURTHEST_S, 9.0), math.inf)
        self.assertEqual(schedule.deadline_of(None, 9.0), math.inf)
        with self.assertRaisesRegex(ValueError, "is a time"):
            schedule.deadline_of(math.nan, 9.0)

    def test_nobody_and_nothing(self) -> None:
        ages = schedule.Ages(1.0)
        for name in schedule.POLICIES:
            policy = schedule.policy_of(name, 1.0)
            self.assertEqual(schedule.choose(policy, [], 3, 0.0, Table(), ages), ([], ages))
            one = [Request(1, "a", 0.0, 0.0, 1, 0.0)]
            self.assertEqual(schedule.choose(policy, one, 0, 0.0, Table(), ages), ([], ages))
            self.assertEqual(schedule.choose(policy, one, 3, 0.0, Table(), ages)[0], [Unit("a", (1,))])
        with self.assertRaisesRegex(ValueError, "one of first_come"):
            schedule.policy_of("last_come", 1.0)


if __name__ == "__main__":
    unittest.main()
