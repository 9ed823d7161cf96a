# SPDX-License-Identifier: Apache-2.0
"""The server with the model in PyTorch: python3 -m torch_llm.main --help. Says what it does in JSON, one object a line."""

from __future__ import annotations

import argparse
import os
import sys
import zlib

import torch

import firebreak
from serving.commits import NoCommits, say
from serving.fault import KINDS, Fault
from serving.front import OwnConnections, listen_at
from serving.tenant import serve
from torch_llm.schedule import Limits, Schedule
from torch_llm.server import Server, servers_of
from torch_llm.shapes import SHAPES, Shape
from torch_llm.torch_engine import TorchEngine

# As of the driver's errors in the other sample tenants.
EXIT_FAULT = 3
PAGE_TOKENS = 16


def used_mib(device: str) -> int:
    """Of the GPU, by everybody."""
    if device == "cpu":
        return 0
    free, total = torch.cuda.mem_get_info()
    return int((total - free) >> 20)


def run_tenant(options: argparse.Namespace, shape: Shape, limits: Limits) -> None:
    from firebreak.torch_memory import VaultMemory

    session = firebreak.join()
    say("joined", tenant_role=session.role.name)
    memory = VaultMemory(session, timeout=None)
    engine = TorchEngine(shape, limits, "cuda", memory)
    say("memory", addresses=engine.addresses(), gpu_mib=used_mib("cuda"))
    fingerprint = zlib.crc32(repr((shape, limits, options.seed)).encode())

    def write_weights() -> None:
        engine.weights.load(options.seed, options.weights_file)
        say("weights", gpu_mib=used_mib("cuda"))

    servers = servers_of(engine, limits, fingerprint, shape.vocabulary, Fault(options.fault).before_step)
    serve(session, engine, options.listen, servers, write_weights, lambda: warm_up(options, engine))
    memory.close()
    session.leave()


def warm_up(options: argparse.Namespace, engine: TorchEngine) -> None:
    engine.warm_up()
    if options.device == "cuda":
        if not options.eager:
            engine.capture()
        torch.cuda.empty_cache()
    say("warm", gpu_mib=used_mib(options.device))


def run_alone(options: argparse.Namespace, shape: Shape, limits: Limits) -> None:
    """Without Firebreak; with `--asleep` it has its weights on the host until a line comes on standard input."""
    if options.asleep:
        engine = wake_up(options, shape, limits)
    else:
        engine = TorchEngine(shape, limits, options.device)
        engine.weights.load(options.seed, options.weights_file)
        say("weights", gpu_mib=used_mib(options.device))
    engine.first_kernel()
    say("first kernel")
    if not options.asleep:
        warm_up(options, engine)
    server = Server(engine, Schedule(limits, 0), NoCommits(engine), 0, shape.vocabulary)
    if options.device != "cpu":
        server.before_step = Fault(options.fault).before_step
    server.begin()
    listener = listen_at(options.listen)
    server.go_on(server.front(OwnConnections(listener), listener.fileno()))
    say("serving", address=options.listen, gpu_mib=used_mib(options.device))
    server.run()


def wake_up(options: argparse.Namespace, shape: Shape, limits: Limits) -> TorchEngine:
    """All kernels have run once; weights are in pinned memory, and nothing of the model is on the GPU."""
    engine = TorchEngine(shape, limits, options.device)
    engine.weights.load(options.seed, options.weights_file)
    engine.warm_up()
    on_host = torch.empty(engine.weights.flat.shape, dtype=engine.weights.flat.dtype, pin_memory=options.device != "cpu")
    on_host.copy_(engine.weights.flat)
    del engine
    if options.device != "cpu":
        torch.cuda.empty_cache()
    say("asleep", gpu_mib=used_mib(options.device))
    sys.stdin.readline()
    say("woken")
    engine = TorchEngine(shape, limits, options.device)
    engine.weights.flat.copy_(on_host, non_blocking=True)
    return engine


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torch_llm", description=__doc__)
    parser.add_argument("--size", choices=sorted(SHAPES), default="0.5b")
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="ADDRESS:PORT")
    parser.add_argument("--slots", type=int, choices=range(1, 17), metavar="1..16", default=16, help="requests that are worked on at once")
    parser.add_argument("--context", type=int, default=1024, help="the most tokens of a prompt and its answer")
    parser.add_argument("--seed", type=int, default=1, help="weights follow from it")
    parser.add_argument("--weights-file", default="", help="where weights are read from, or kept once they are made")
    parser.add_argument("--alone", action="store_true", help="without Firebreak")
    parser.add_argument("--asleep", action="store_true", help="alone, and not on the GPU until standard input has a line")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: only alone")
    parser.add_argument("--eager", action="store_true", help="a launch for each kernel, instead of a graph a step")
    parser.add_argument("--fault", choices=KINDS, default="trap", help="what SIGUSR2 raises")
    options = parser.parse_args(arguments)
    if options.context < 2 * PAGE_TOKENS or options.context % PAGE_TOKENS != 0:
        parser.error(f"--context is a multiple of {PAGE_TOKENS}, and not the smallest")
    if options.device == "cpu" and not (options.alone or options.asleep):
        parser.error("--device cpu is for --alone and --asleep")
    return options


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    say("started", torch=torch.__version__, size=options.size, pid=os.getpid())
    shape = SHAPES[options.size]
    pages = options.slots * (options.context // PAGE_TOKENS) + 1
    limits = Limits(options.slots, pages, PAGE_TOKENS, options.context)
    try:
        if options.alone or options.asleep:
            run_alone(options, shape, limits)
        else:
            run_tenant(options, shape, limits)
    except (RuntimeError, firebreak.Error) as error:
        say("fault seen", error=str(error).splitlines()[0])
        sys.stdout.flush()
        os._exit(EXIT_FAULT)  # a context that has faulted would only fail again on the way out
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
