# SPDX-License-Identifier: Apache-2.0
"""What turns and the schedule give an image and video server, and what faults cost it. For a machine with a GPU, MPS and
PyTorch 2.5: python3 -m torch_diffusion.measure BIN RESULT.json (--help); an estimated hour and a half on one H200.

Requests come by chance at one load, with deadlines of 1.5, 2 and 6 times what each takes alone. Ways to serve them:

  first_come, shortest_remaining, earliest_deadline, program    one tenant has all shapes, and decides so
  slices     pictures and videos are tenants with a domain each: time slices
  mps        both in one domain, free for all
  shares     the same with half of the SMs each
  deadline   the same with the agent's turns
  faults     program, with a standby and a neighbour's fault each minute

Further: `tiles`, a 4K picture with a fault in each tile. What a look at the word and a decision take, and how long it is from
hold until the GPU is the other's, is measured by tests/hardware/turns.py and firebreak_bench."""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from typing import Any

from serving.addresses import free_address
from serving.machine import machine
from torch_diffusion import ask, schedule, simulator
from torch_diffusion.shapes import SHAPES, STEPS
from torch_diffusion.simulator import MIX, Arrival, Outcome
from torch_diffusion.stage import Stage

# Seeds of pictures; each is drawn alone once, and its bits are to be the same in any company.
PICTURE_SEEDS = range(4)
IMAGES = [name for name in MIX if not SHAPES[name].is_video]
VIDEOS = [name for name in MIX if SHAPES[name].is_video]
# What plays a shape's part where there is no PyTorch.
STAND_INS = {"512": "picture", "1024": "picture", "480p": "video", "4k": "large"}


@dataclasses.dataclass(frozen=True)
class Way:
    agent: Sequence[str] = ()
    run: Sequence[str] = ()
    policy: str = "program"
    servers: int = 2
    one_domain: bool = True
    faults: bool = False


WAYS = {
    **{policy: Way(policy=policy, servers=1) for policy in schedule.POLICIES},
    "slices": Way(one_domain=False),
    "mps": Way(),
    "shares": Way(run=["--sm-percent", "50"]),
    "deadline": Way(agent=["--turns", "deadline"]),
    "faults": Way(run=["--pair"], servers=1, faults=True),
}


@dataclasses.dataclass
class Solo:
    """schedule.Costs, as measured: what each shape takes alone, and the digest of each picture."""

    solo_s: dict[str, float]
    digests: dict[str, str]

    def step_s(self, shape: str, batch: int) -> float:
        return self.solo_s[shape] / STEPS

    def batch_most(self, shape: str) -> int:
        return SHAPES[shape].batch


class Client(threading.Thread):
    """One request, sent when it is its time."""

    def __init__(self, address: str, arrival: Arrival, shape: str, seed: int, begin: float) -> None:
        super().__init__(daemon=True)
        self.outcome, self.digest, self.error = Outcome(arrival), "", ""
        self.key = f"{arrival.shape}/{seed}"
        self._address, self._begin = address, begin
        self._wanted = {"seed": seed, "shape": shape, "deadline_ms": 1e3 * arrival.deadline_s}
        self.start()

    def run(self) -> None:
        time.sleep(max(0.0, self._begin + self.outcome.arrival.at_s - time.monotonic()))
        try:
            for line in ask.lines_of(self._address, self._wanted):
                last = line
            self.outcome.ended_s = time.monotonic() - self._begin
            self.digest = last.rpartition(" ")[2]
        except (OSError, RuntimeError, ValueError) as error:
            self.error = str(error)


class Bench:
    def __init__(self, options: argparse.Namespace, folder: pathlib.Path) -> None:
        self._options = options
        self._folder = folder
        self._runs = 0

    def stage(self) -> Stage:
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir()
        return Stage(self._options.bin.resolve(), folder, on_software=self._options.engine == "denoise")

    def name_of(self, shape: str) -> str:
        return STAND_INS[shape] if self._options.engine == "denoise" else shape

    def start(self, stage: Stage, name: str, shapes: Sequence[str], run: Sequence[str], *more: str) -> str:
        """A server's address, once it listens."""
        address = free_address()
        weights = str(self._folder / f"{name}.weights")
        options = ["--engine", self._options.engine, "--shapes", ",".join(shapes), "--slots", "64"]
        stage.start_server(name, address, run, [*options, "--weights-file", weights, *more])
        return address

    # --- alone

    def solo(self) -> Solo:
        stage = self.stage()
        try:
            stage.start_agent("--end-domains")
            address = self.start(stage, "all", list(MIX), [])
            found = Solo({}, {})
            for shape in MIX:
                took_s = []
                for seed in PICTURE_SEEDS:
                    arrival = Arrival(0.0, shape, 3600.0)
                    client = Client(address, arrival, self.name_of(shape), seed, time.monotonic())
                    client.join()
                    took_s.append(client.outcome.ended_s)
                    found.digests[client.key] = client.digest
                found.solo_s[shape] = statistics.median(took_s)
            return found
        finally:
            stage.end()

    # --- the ways

    def play(self, way: Way, solo: Solo, seed: int) -> dict[str, Any]:
        arrivals = simulator.arrivals_of(seed, self._options.requests, self._options.load, 1, solo)
        stage = self.stage()
        try:
            addresses = self._start_way(stage, way)
            chance = random.Random(seed)
            begin = time.monotonic() + 0.5
            clients = [
                Client(addresses[each.shape], each, self.name_of(each.shape), chance.choice(PICTURE_SEEDS), begin)
                for each in arrivals
            ]
            faults = self._raise_faults(stage, clients) if way.faults else 0
            for client in clients:
                client.join()
        finally:
            stage.end()
        found: dict[str, Any] = simulator.summary([client.outcome for client in clients])
        policy = schedule.policy_of(way.policy, simulator.round_of(solo))
        patience_s = 30.0 if way.policy == "program" else float("inf")
        simulated = simulator.simulate(arrivals, policy, 1, solo, simulator.round_of(solo), patience_s)
        return {
            **found,
            "simulated_on_time": simulator.summary(simulated)["on_time"] if way.servers == 1 else None,
            "other_bits": sum(client.digest not in ("", solo.digests[client.key]) for client in clients),
            "errors": sorted({client.error for client in clients if client.error}),
            "faults": faults,
        }

    def _start_way(self, stage: Stage, way: Way) -> dict[str, str]:
        """The address for each shape."""
        stage.start_agent("--end-domains", *way.agent)
        policy = ["--policy", way.policy]
        if way.servers == 1:
            address = self.start(stage, "all", list(MIX), way.run, *policy)
            if way.faults:
                stage.until_protected("all")
            return dict.fromkeys(MIX, address)
        videos = self.start(stage, "videos", VIDEOS, [*way.run, "--class", "batch"], *policy)
        if way.one_domain:  # the next tenant comes where fewer are
            stage.start("firebreak", "run", "--socket", stage.socket, "--name", "nobody", "--", "sleep", "100000")
            while not stage.tenant("nobody"):
                time.sleep(0.05)
        images = self.start(stage, "images", IMAGES, [*way.run, "--class", "live"], *policy)
        return {**dict.fromkeys(IMAGES, images), **dict.fromkeys(VIDEOS, videos)}

    def _raise_faults(self, stage: Stage, clients: Sequence[Client]) -> int:
        count, last = 0, time.monotonic()
        while any(client.is_alive() for client in clients):
            time.sleep(0.1)
            if time.monotonic() - last >= self._options.fault_every_s:
                active = stage.until_protected("all")
                count += stage.inject("all") == 0
                stage.until_protected("all", active)
                last = time.monotonic()
        return count

    # --- tiles

    def tiles(self) -> dict[str, Any]:
        """The same picture twice; the second time with a fault in as many units as refine it."""
        wanted = {"seed": 1, "shape": self.name_of("4k"), "steps": 1, "deadline_ms": 3.6e6}
        said, faults = [], 0
        for with_faults in (False, True):
            stage = self.stage()
            try:
                stage.start_agent()
                pace = ["--pace-ms", str(self._options.tile_ms)] if with_faults else []
                address = self.start(stage, "tiles", ["4k"], ["--pair"], *pace)
                active = stage.until_protected("tiles")
                lines = []
                for line in ask.lines_of(address, wanted):
                    lines.append(line.rpartition(" ")[2] if line.startswith("picture") else line)
                    units = int(lines[1].split(" ")[3]) if len(lines) > 1 else 0
                    if with_faults and units - 16 <= len(lines) - 1 < units:
                        active = stage.until_protected("tiles", 0)
                        faults += stage.inject("tiles") == 0
                        stage.until_protected("tiles", active)
                said.append(lines)
            finally:
                stage.end()
        return {"faults": faults, "same_bits": said[0] == said[1], "units": len(said[0]) - 2}


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="torch_diffusion.measure", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("result", type=pathlib.Path)
    parser.add_argument("--ways", default=",".join([*WAYS, "tiles"]))
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--requests", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--fault-every-s", type=float, default=60.0)
    parser.add_argument("--tile-ms", type=int, default=8000, help="between two units, so that a standby is there for each")
    parser.add_argument("--engine", choices=("torch", "denoise"), default="torch", help="denoise: on the software GPU")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = " ".join(arguments[2:])
    seen: dict[str, Any] = {
        "what": "torch_diffusion.measure",
        "machine": machine(str(options.bin)),
        "command": f"python3 -m torch_diffusion.measure BIN {options.result.name} {given}".strip(),
    }
    with tempfile.TemporaryDirectory(prefix="fbdiffusion", dir="/tmp") as folder:
        bench = Bench(options, pathlib.Path(folder))
        solo = bench.solo()
        seen |= {"load": options.load, "solo_s": solo.solo_s, "ways": {}}
        for name in options.ways.split(","):
            if name == "tiles":
                seen["tiles"] = bench.tiles()
            else:
                seen["ways"][name] = [bench.play(WAYS[name], solo, seed + 1) for seed in range(options.seeds)]
            print(name, json.dumps(seen["ways"].get(name, seen.get("tiles"))), flush=True)
            options.result.write_text(json.dumps(seen, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
