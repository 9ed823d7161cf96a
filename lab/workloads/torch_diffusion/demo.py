#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server on the software GPU, with a standby and a rogue neighbour: in the middle of each request the neighbour raises a
fault that ends everybody in its MPS domain.

    demo.py BIN ADDRESS:PORT        BIN has the programs; ends with control-C, and all that it started with it"""

from __future__ import annotations

import json
import pathlib
import signal
import sys
import tempfile
import time
from typing import Any

import ask
from stage import LOOK_S, Stage

NAME = "pictures"


def say(text: str) -> None:
    print(text, flush=True)


def half_done(address: str, after: int) -> dict[str, Any] | None:
    """A request with a later number that has half of its steps."""
    try:
        waiting = json.loads(ask.get(address, "/queue"))["waiting"]
    except (OSError, RuntimeError):
        return None
    return next((each for each in waiting if each["number"] > after and 2 * each["done"] >= each["steps"]), None)


def play(stage: Stage, address: str) -> None:
    stage.start_agent()
    stage.start_server(NAME, address, ["--pair"], ["--pace-ms", "100"])
    active = stage.until_protected(NAME)
    say(f"process {active} serves at http://{address}/ and has a standby")
    last = 0
    while True:
        request = half_done(address, last)
        if request is None:
            time.sleep(LOOK_S)
            continue
        last = request["number"]
        say(f"request {last} has {request['done']} of {request['steps']} steps: its neighbour raises a fault")
        stage.inject(NAME)
        before, active = active, stage.until_protected(NAME, active)
        say(f"process {before} has ended, process {active} goes on and has a standby")


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="fbpictures", dir="/tmp") as folder:
        stage = Stage(pathlib.Path(arguments[0]).resolve(), pathlib.Path(folder), on_software=True)
        try:
            play(stage, arguments[1])
        except KeyboardInterrupt:
            pass
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            stage.end()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
