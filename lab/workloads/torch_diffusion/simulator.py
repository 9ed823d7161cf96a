# SPDX-License-Identifier: Apache-2.0
"""Requests on simulated GPUs, by the server's own schedule.py: python3 -m torch_diffusion.simulator --help."""

from __future__ import annotations

import argparse
import dataclasses
import heapq
import json
import math
import pathlib
import random
import sys
from collections.abc import Iterable, Sequence

from torch_diffusion import schedule
from torch_diffusion.costs import MEASURED, H200
from torch_diffusion.shapes import SHAPES, STEPS

# Of all requests that come, so many are of each shape.
MIX = {"512": 0.6, "1024": 0.25, "480p": 0.15}


@dataclasses.dataclass(frozen=True)
class Arrival:
    """One line of a trace. `deadline_s` counts from its arrival; none: inf."""

    at_s: float
    shape: str
    deadline_s: float
    steps: int = STEPS


class CutTraceError(ValueError):
    """What is wrong with a trace, and in which line."""


def arrivals_of(seed: int, count: int, load: float, gpus: int, costs: schedule.Costs) -> list[Arrival]:
    """By chance. `load` 1: as much work comes as that many GPUs can do, each request by itself."""
    chance = random.Random(seed)
    solo = {shape: STEPS * costs.step_s(shape, 1) for shape in MIX}
    mean_s = sum(share * solo[shape] for shape, share in MIX.items())
    at, found = 0.0, []
    for _ in range(count):
        at += chance.expovariate(load * gpus / mean_s)
        shape = chance.choices(list(MIX), list(MIX.values()))[0]
        found.append(Arrival(at, shape, SHAPES[shape].patience * solo[shape]))
    return found


def write_trace(arrivals: Iterable[Arrival]) -> str:
    lines = (f"{each.at_s!r} {each.shape} {each.deadline_s!r} {each.steps}\n" for each in arrivals)
    return "".join(lines) + "end\n"


def read_trace(text: str) -> list[Arrival]:
    """CutTraceError: it does not close with 'end', or a line is none."""
    found: list[Arrival] = []
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line == "end" and number < len(lines):
            return found
        try:
            at, shape, deadline, steps = line.split(" ")
            found.append(Arrival(float(at), shape, float(deadline), int(steps)))
            is_good = shape in SHAPES and math.isfinite(found[-1].at_s) and found[-1].steps > 0
            is_good = is_good and not math.isnan(found[-1].deadline_s)
        except ValueError:
            is_good = False
        if not is_good:
            raise CutTraceError(f"line {number} of the trace is cut or wrong: '{line}'")
        if len(found) > 1 and found[-1].at_s < found[-2].at_s:
            raise CutTraceError(f"line {number} of the trace comes before the line above it")
    raise CutTraceError(f"the trace is cut behind line {len(lines)}")


@dataclasses.dataclass
class Outcome:
    """Of one request."""

    arrival: Arrival
    ended_s: float = math.inf
    paused_most_s: float = 0.0

    @property
    def latency_s(self) -> float:
        return self.ended_s - self.arrival.at_s

    @property
    def is_on_time(self) -> bool:
        return self.latency_s <= self.arrival.deadline_s


def simulate(
    arrivals: Sequence[Arrival],
    policy: schedule.Policy,
    gpus: int,
    costs: schedule.Costs,
    round_s: float,
    patience_s: float = math.inf,
) -> list[Outcome]:
    """Until all have ended. A GPU that has ended its round, or that waits when somebody comes, is given its next one."""
    outcomes = [Outcome(each) for each in arrivals]
    waiting: dict[int, schedule.Request] = {}
    busy: list[tuple[float, int, list[schedule.Request]]] = []
    ages, free, coming, now, rounds = schedule.Ages(patience_s), gpus, 0, 0.0, 0
    while coming < len(arrivals) or waiting or busy:
        next_arrival = arrivals[coming].at_s if coming < len(arrivals) else math.inf
        now = min(next_arrival, busy[0][0] if busy else math.inf)
        while coming < len(arrivals) and arrivals[coming].at_s <= now:
            each = arrivals[coming]
            deadline = schedule.deadline_of(each.at_s + each.deadline_s, now)
            waiting[coming] = schedule.Request(coming, each.shape, each.at_s, deadline, each.steps, each.at_s)
            coming += 1
        while busy and busy[0][0] <= now:
            for request in heapq.heappop(busy)[2]:
                if request.steps_left > 0:
                    waiting[request.identity] = request
                else:
                    outcomes[request.identity].ended_s = now
            free += 1
        units, ages = schedule.choose(policy, list(waiting.values()), free, now, costs, ages)
        for unit in units:
            members = [waiting.pop(identity) for identity in unit.identities]
            step_s = costs.step_s(unit.shape, len(members))
            steps = min(max(1, int(round_s / step_s)), min(each.steps_left for each in members))
            ends = now + steps * step_s
            for each in members:
                outcome = outcomes[each.identity]
                outcome.paused_most_s = max(outcome.paused_most_s, now - each.served)
            after = [dataclasses.replace(each, steps_left=each.steps_left - steps, served=ends) for each in members]
            heapq.heappush(busy, (ends, rounds, after))
            free, rounds = free - 1, rounds + 1
    return outcomes


def summary(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Shares in percent, times in seconds."""

    def of(is_video: bool) -> list[Outcome]:
        return [each for each in outcomes if SHAPES[each.arrival.shape].is_video == is_video]

    def on_time(some: Sequence[Outcome]) -> float:
        return round(100 * sum(each.is_on_time for each in some) / max(1, len(some)), 1)

    images, videos = of(False), of(True)
    latencies = sorted(each.latency_s for each in images) or [0.0]
    return {
        "on_time": on_time(outcomes),
        "images_on_time": on_time(images),
        "videos_on_time": on_time(videos),
        "image_p50_s": round(latencies[len(latencies) // 2], 3),
        "image_p90_s": round(latencies[len(latencies) * 9 // 10], 3),
        "video_most_s": round(max((each.latency_s for each in videos), default=0.0), 3),
        "paused_most_s": round(max((each.paused_most_s for each in outcomes), default=0.0), 3),
    }


def round_of(costs: schedule.Costs) -> float:
    """As long as the longest step: nobody waits for less."""
    return max(costs.step_s(shape, 1) for shape in MIX)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="torch_diffusion.simulator", description=__doc__)
    parser.add_argument("--costs", type=pathlib.Path, default=MEASURED, help="what tests/hardware/turns.py has measured")
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--load", type=float, default=0.9, help="1: as much work as the GPUs can do")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--patience-s", type=float, default=30.0, help="who waits longer has a round before all others")
    parser.add_argument("--trace", type=pathlib.Path, help="arrivals from a file, instead of by a seed")
    parser.add_argument("--write-trace", type=pathlib.Path, help="keeps the arrivals of seed 1 there, and ends")
    options = parser.parse_args(arguments)
    costs = H200.read(options.costs)

    def by_seed(seed: int) -> list[Arrival]:
        return arrivals_of(seed, options.requests, options.load, options.gpus, costs)

    if options.write_trace:
        options.write_trace.write_text(write_trace(by_seed(1)))
        return 0
    try:
        loads = [read_trace(options.trace.read_text())] if options.trace else [by_seed(n + 1) for n in range(options.seeds)]
    except CutTraceError as error:
        print(f"{options.trace}: {error}", file=sys.stderr)
        return 1
    round_s = round_of(costs)
    for name in schedule.POLICIES:
        policy = schedule.policy_of(name, round_s)
        patience_s = options.patience_s if name == "program" else math.inf
        outcomes = [each for load in loads for each in simulate(load, policy, options.gpus, costs, round_s, patience_s)]
        print(json.dumps({"policy": name, **summary(outcomes)}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
