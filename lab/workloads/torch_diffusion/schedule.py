# SPDX-License-Identifier: Apache-2.0
"""Whose denoising steps are next: what the server and the simulator both ask. Pure. Times are in seconds, of whatever clock
the caller has.

Pictures of one shape may be batched, a video has a GPU to itself. Between two steps everybody can be paused at no cost, so
each decision is for the next round only: for as many steps as fit into it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol

# Whose deadline is further away than this has none.
FURTHEST_S = 24 * 3600.0

NO_DEADLINE = math.inf


@dataclasses.dataclass(frozen=True)
class Request:
    """`served` is when it last had a GPU; its arrival until then. `deadline` is as deadline_of gives it."""

    identity: int
    shape: str
    arrived: float
    deadline: float
    steps_left: int
    served: float


@dataclasses.dataclass(frozen=True)
class Unit:
    """What one GPU does next: a video, or pictures of one shape."""

    shape: str
    identities: tuple[int, ...]


class Costs(Protocol):
    def step_s(self, shape: str, batch: int) -> float:
        """Of one denoising step of `batch` requests together; grows with `batch`."""

    def batch_most(self, shape: str) -> int:
        """How many of that shape may be computed together; 1 for a video."""


Policy = Callable[[Sequence[Request], int, float, Costs], list[Unit]]


def deadline_of(given: float | None, now: float) -> float:
    """One in the past counts as now, one that is too far as none. ValueError: that is no time."""
    if given is None or given == math.inf or given > now + FURTHEST_S:
        return NO_DEADLINE
    if not math.isfinite(given):
        raise ValueError("a deadline is a time")
    return max(given, now)


def remaining_s(request: Request, costs: Costs, batch: int = 1) -> float:
    return request.steps_left * costs.step_s(request.shape, batch)


# --- the baselines: one request a GPU


def first_come(requests: Sequence[Request], gpus: int, now: float, costs: Costs) -> list[Unit]:
    return _alone(sorted(requests, key=lambda each: (each.arrived, each.identity))[:gpus])


def shortest_remaining(requests: Sequence[Request], gpus: int, now: float, costs: Costs) -> list[Unit]:
    return _alone(sorted(requests, key=lambda each: (remaining_s(each, costs), each.arrived, each.identity))[:gpus])


def earliest_deadline(requests: Sequence[Request], gpus: int, now: float, costs: Costs) -> list[Unit]:
    return _alone(sorted(requests, key=_by_deadline)[:gpus])


def _alone(chosen: Sequence[Request]) -> list[Unit]:
    return [Unit(each.shape, (each.identity,)) for each in chosen]


def _by_deadline(request: Request) -> tuple[float, float, int]:
    return request.deadline, request.arrived, request.identity


# --- the program


def program(round_s: float) -> Policy:
    """GENSERVE's idea in a version of ours: gains say what it is worth that a request has a GPU in this round, and a dynamic
    program finds the units with the largest sum of gains."""

    def choose(requests: Sequence[Request], gpus: int, now: float, costs: Costs) -> list[Unit]:
        gains = gains_of(requests, gpus, now, costs, round_s)
        return best_units(requests, gpus, now, costs, gains)

    return choose


# Whoever must run now outweighs all who may, and those outweigh all who are late anyway. Sums of so many stay apart.
_MUST, _MAY, _LATE = 1e6, 1.0, 1e-6


def gains_of(
    requests: Sequence[Request], gpus: int, now: float, costs: Costs, round_s: float
) -> dict[int, float]:
    """By the request. Who can be on time is found as Moore and Hodgson do for one machine: by deadline, and whenever there
    is too much to do, the longest is given up. Of those, whoever a round of idling would make late must run now, the
    earliest deadline first; all others may, the shortest first."""
    kept: list[Request] = []
    work = 0.0
    for request in sorted(requests, key=_by_deadline):
        kept.append(request)
        work += remaining_s(request, costs)
        if _is_late(request, now, work / gpus, costs):
            longest = max(kept, key=lambda each: remaining_s(each, costs))
            kept.remove(longest)
            work -= remaining_s(longest, costs)
    gains = {each.identity: _LATE / remaining_s(each, costs) for each in requests}
    work, must = 0.0, 0
    for count, request in enumerate(kept, 1):
        gains[request.identity] = _MAY / remaining_s(request, costs)
        work += remaining_s(request, costs)
        if _is_late(request, now + round_s, work / gpus, costs):
            must = count
    for rank, request in enumerate(kept[:must]):
        gains[request.identity] = _MUST / (1 + rank)
    return gains


def _is_late(request: Request, now: float, wait_s: float, costs: Costs) -> bool:
    """Where GPUs are shared evenly it ends after `wait_s`, and never sooner than alone."""
    return now + max(wait_s, remaining_s(request, costs)) > request.deadline


def in_order(requests: Sequence[Request]) -> list[Request]:
    """As the program numbers them: shape by shape, by deadline in each. Requests that may be batched are neighbours."""
    return sorted(requests, key=lambda each: (each.shape, *_by_deadline(each)))


def gain_of_unit(
    members: Sequence[Request], now: float, costs: Costs, gains: dict[int, float]
) -> float | None:
    """None: that is no unit. The first member is the batch's anchor: who joins it does not make it late."""
    anchor = members[0]
    if len(members) > costs.batch_most(anchor.shape) or any(each.shape != anchor.shape for each in members):
        return None
    batch = len(members)
    could_be = now + remaining_s(anchor, costs) <= anchor.deadline
    if batch > 1 and could_be and now + remaining_s(anchor, costs, batch) > anchor.deadline:
        return None
    return sum(gains[each.identity] for each in members)


def best_units(
    requests: Sequence[Request], gpus: int, now: float, costs: Costs, gains: dict[int, float]
) -> list[Unit]:
    """F[g][n] is the largest sum of gains that g GPUs give of the first n requests: without the last of them, or with a unit
    that ends with it on one GPU. Among equals the smaller batch; with the best first."""
    ordered = in_order(requests)
    count = len(ordered)
    best = [[0.0] * (count + 1) for _ in range(gpus + 1)]
    taken = [[0] * (count + 1) for _ in range(gpus + 1)]
    units: list[list[tuple[int, float]]] = [[]]
    for n in range(1, count + 1):
        most = costs.batch_most(ordered[n - 1].shape)
        found = ((size, gain_of_unit(ordered[n - size : n], now, costs, gains)) for size in range(1, min(n, most) + 1))
        units.append([(size, gain) for size, gain in found if gain is not None])
    for g in range(1, gpus + 1):
        for n in range(1, count + 1):
            best[g][n] = best[g][n - 1]
            for size, gain in units[n]:
                if best[g - 1][n - size] + gain > best[g][n]:
                    best[g][n] = best[g - 1][n - size] + gain
                    taken[g][n] = size
    chosen: list[tuple[float, Unit]] = []
    g, n = gpus, count
    while g > 0 and n > 0:
        size = taken[g][n]
        if size == 0:
            n -= 1
            continue
        members = ordered[n - size : n]
        gain = sum(gains[each.identity] for each in members)
        chosen.append((gain, Unit(members[0].shape, tuple(each.identity for each in members))))
        g, n = g - 1, n - size
    return [unit for _, unit in sorted(chosen, key=lambda each: -each[0])]


# --- ageing


@dataclasses.dataclass(frozen=True)
class Ages:
    """Whoever has waited for `patience_s` has one round before all others; there is one such round in that time, on one GPU.
    So of n requests nobody waits longer than n + 1 times that and a round."""

    patience_s: float
    last_round: float = -math.inf

    def oldest(self, requests: Sequence[Request], now: float) -> Request | None:
        """Who has such a round now."""
        if not requests or now < self.last_round + self.patience_s:
            return None
        oldest = min(requests, key=lambda each: (each.served, each.identity))
        return oldest if now >= oldest.served + self.patience_s else None


def choose(
    policy: Policy, requests: Sequence[Request], gpus: int, now: float, costs: Costs, ages: Ages
) -> tuple[list[Unit], Ages]:
    """At most one unit a free GPU, the most urgent first; and the ages as of now."""
    if gpus < 1 or not requests:
        return [], ages
    oldest = ages.oldest(requests, now)
    if oldest is None:
        return policy(requests, gpus, now, costs), ages
    others = [each for each in requests if each is not oldest]
    units = [Unit(oldest.shape, (oldest.identity,))]
    if gpus > 1 and others:
        units += policy(others, gpus - 1, now, costs)
    return units, dataclasses.replace(ages, last_round=now)


POLICIES = ("first_come", "shortest_remaining", "earliest_deadline", "program")


def policy_of(name: str, round_s: float) -> Policy:
    """ValueError: there is none of that name."""
    if name == "program":
        return program(round_s)
    baselines = {each.__name__: each for each in (first_come, shortest_remaining, earliest_deadline)}
    if name not in baselines:
        raise ValueError(f"a policy is one of {', '.join(POLICIES)}")
    return baselines[name]
