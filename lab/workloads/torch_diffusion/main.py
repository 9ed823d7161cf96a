# SPDX-License-Identifier: Apache-2.0
"""The image and video server: python3 -m torch_diffusion.main --help. Says what it does in JSON, one object a line."""

from __future__ import annotations

import argparse
import os
import sys
import zlib

import firebreak
from serving.commits import NoCommits, say
from serving.fault import KINDS, Fault
from serving.front import OwnConnections, listen_at
from serving.tenant import serve
from torch_diffusion import schedule
from torch_diffusion.denoise_engine import DenoiseEngine
from torch_diffusion.forward import Forward
from torch_diffusion.server import Options, Server, servers_of

# As of the driver's errors in the other sample tenants.
EXIT_FAULT = 3


def options_of(options: argparse.Namespace) -> Options:
    return Options(policy=options.policy, patience_s=options.patience_s)


def run_tenant(options: argparse.Namespace) -> None:
    session = firebreak.join()
    say("joined", tenant_role=session.role.name)
    engine = DenoiseEngine(options.slots, session, options.pace_ms / 1000)
    fingerprint = zlib.crc32(repr((options.engine, options.slots, options.seed)).encode())
    servers = servers_of(engine, options.slots, fingerprint, options_of(options), Fault(options.fault).before_step)
    serve(session, engine, options.listen, servers, lambda: engine.write_weights(options.seed))
    session.leave()


def run_alone(options: argparse.Namespace) -> None:
    """Without Firebreak."""
    engine = DenoiseEngine(options.slots, None, options.pace_ms / 1000)
    engine.write_weights(options.seed)
    server = Server(engine, Forward(options.slots, 0), NoCommits(engine), 0, options_of(options))
    server.before_step = Fault(options.fault).before_step
    server.begin()
    listener = listen_at(options.listen)
    server.go_on(server.front(OwnConnections(listener), listener.fileno()))
    say("serving", address=options.listen)
    server.run()


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torch_diffusion", description=__doc__)
    parser.add_argument("--engine", choices=("denoise",), default="denoise")
    parser.add_argument("--listen", default="127.0.0.1:8000", metavar="ADDRESS:PORT")
    parser.add_argument("--slots", type=int, choices=range(1, 257), metavar="1..256", default=16, help="of requests, and of pictures that are kept")
    parser.add_argument("--policy", choices=schedule.POLICIES, default="program", help="who is next")
    parser.add_argument("--patience-s", type=float, default=30.0, help="who waits longer has a step before all others")
    parser.add_argument("--seed", type=int, default=1, help="weights follow from it")
    parser.add_argument("--pace-ms", type=int, default=0, help="of each step, so that people can watch")
    parser.add_argument("--alone", action="store_true", help="without Firebreak")
    parser.add_argument("--fault", choices=KINDS, default="trap", help="what SIGUSR2 raises")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    say("started", pid=os.getpid())
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
