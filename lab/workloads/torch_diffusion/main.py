# SPDX-License-Identifier: Apache-2.0
"""The image and video server: python3 -m torch_diffusion.main --help. Says what it does in JSON, one object a line."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import zlib
from collections.abc import Callable

import firebreak
from serving.commits import NoCommits, say
from serving.fault import KINDS, Fault
from serving.front import OwnConnections, listen_at
from serving.tenant import serve
from torch_diffusion import schedule
from torch_diffusion.denoise_engine import DenoiseEngine
from torch_diffusion.forward import Forward
from torch_diffusion.server import Engine, Options, Server, servers_of
from torch_diffusion.shapes import SHAPES

# As of the driver's errors in the other sample tenants.
EXIT_FAULT = 3


@dataclasses.dataclass(frozen=True)
class Made:
    """An engine, and what a process does before it serves."""

    engine: Engine
    write_weights: Callable[[], None]
    warm_up: Callable[[], None] = lambda: None
    close: Callable[[], None] = lambda: None


def make(options: argparse.Namespace, session: firebreak.Session | None) -> Made:
    if options.engine == "denoise":
        denoise = DenoiseEngine(options.slots, session)
        return Made(denoise, lambda: denoise.write_weights(options.seed))
    from torch_diffusion.torch_engine import TorchEngine

    shapes = [SHAPES[name] for name in options.shapes]

    def write_weights() -> None:
        engine.weights.load(options.seed, options.weights_file)

    if session is None:
        engine = TorchEngine(shapes, options.slots, options.device)
        return Made(engine, write_weights, engine.warm_up)
    from firebreak.torch_memory import VaultMemory

    memory = VaultMemory(session, timeout=None)
    engine = TorchEngine(shapes, options.slots, options.device, memory)
    return Made(engine, write_weights, engine.warm_up, memory.close)


def options_of(options: argparse.Namespace) -> Options:
    return Options(policy=options.policy, patience_s=options.patience_s, pace_s=options.pace_ms / 1000)


def run_tenant(options: argparse.Namespace) -> None:
    session = firebreak.join()
    say("joined", tenant_role=session.role.name)
    made = make(options, session)
    fingerprint = zlib.crc32(repr((options.engine, options.shapes, options.slots, options.seed)).encode())
    before_step = Fault(options.fault).before_step
    servers = servers_of(made.engine, options.slots, fingerprint, options_of(options), before_step)
    serve(session, made.engine, options.listen, servers, made.write_weights, made.warm_up)
    made.close()
    session.leave()


def run_alone(options: argparse.Namespace) -> None:
    """Without Firebreak."""
    made = make(options, None)
    made.write_weights()
    made.warm_up()
    server = Server(made.engine, Forward(options.slots, 0), NoCommits(made.engine), 0, options_of(options))
    if options.device != "cpu":
        server.before_step = Fault(options.fault).before_step
    server.begin()
    listener = listen_at(options.listen)
    server.go_on(server.front(OwnConnections(listener), listener.fileno()))
    say("serving", address=options.listen)
    server.run()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torch_diffusion", description=__doc__)
    parser.add_argument("--engine", choices=("denoise", "torch"), default="denoise", help="denoise: small, without PyTorch")
    parser.add_argument("--shapes", default="512,1024", help=f"of torch: some of {', '.join(SHAPES)}; the first is whose nobody names another")
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="ADDRESS:PORT")
    parser.add_argument("--slots", type=int, choices=range(1, 257), metavar="1..256", default=16, help="of requests, and of pictures that are kept")
    parser.add_argument("--policy", choices=schedule.POLICIES, default="program", help="who is next")
    parser.add_argument("--patience-s", type=float, default=30.0, help="who waits longer has a step before all others")
    parser.add_argument("--seed", type=int, default=1, help="weights follow from it")
    parser.add_argument("--pace-ms", type=int, default=0, help="of each step, so that people can watch")
    parser.add_argument("--weights-file", default="", help="of torch: where weights are read from, or kept once they are made")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: torch, and only alone")
    parser.add_argument("--alone", action="store_true", help="without Firebreak")
    parser.add_argument("--fault", choices=KINDS, default="trap", help="what SIGUSR2 raises")
    options = parser.parse_args(arguments)
    options.shapes = options.shapes.split(",")
    unknown = [name for name in options.shapes if name not in SHAPES]
    if unknown:
        parser.error(f"there is no shape {unknown[0]}")
    if options.device == "cpu" and not (options.alone and options.engine == "torch"):
        parser.error("--device cpu is for --engine torch --alone")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    say("started", engine=options.engine, pid=os.getpid())
    try:
        if options.alone:
            run_alone(options)
        else:
            run_tenant(options)
    except (RuntimeError, firebreak.Error) as error:
        say("fault seen", error=str(error).splitlines()[0])
        os._exit(EXIT_FAULT)  # a context that has faulted would only fail again on the way out
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
