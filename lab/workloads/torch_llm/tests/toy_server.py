# SPDX-License-Identifier: Apache-2.0
"""toy_server.py ADDRESS PACE_MS: the server with a model of integers, as a tenant."""

import sys

import firebreak
from serving.tenant import serve
from torch_llm.schedule import Limits
from torch_llm.server import servers_of
from toy_engine import VOCABULARY, ToyEngine

LIMITS = Limits(slots=3, pages=40, page_tokens=4, context=64)


def main(address: str, pace_ms: str) -> None:
    session = firebreak.join()
    engine = ToyEngine(session, LIMITS, float(pace_ms) / 1000)
    serve(session, engine, address, servers_of(engine, LIMITS, 4711, VOCABULARY))


if __name__ == "__main__":
    main(*sys.argv[1:])
