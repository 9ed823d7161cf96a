#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a server for a picture, shows how far it is, and keeps it.

    ask.py ADDRESS:PORT SEED FILE.png [--shape NAME] [--steps N] [--deadline-ms MS]"""

from __future__ import annotations

import argparse
import http.client
import json
import pathlib
import sys
from collections.abc import Iterator


def lines_of(address: str, wanted: dict[str, object]) -> Iterator[str]:
    """Of the answer, as they come. RuntimeError: it is a refusal, and this is why."""
    connection = http.client.HTTPConnection(address)
    connection.request("POST", "/pictures", json.dumps(wanted))
    answer = connection.getresponse()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {answer.read().decode().strip()}")
    for line in answer:
        yield line.decode().rstrip("\n")


def get(address: str, path: str) -> bytes:
    connection = http.client.HTTPConnection(address)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{answer.status}: {body.decode().strip()}")
    return body


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("seed", type=int)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--shape")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--deadline-ms", type=float)
    options = parser.parse_args(arguments)
    given = {"seed": options.seed, "shape": options.shape, "steps": options.steps, "deadline_ms": options.deadline_ms}
    try:
        for line in lines_of(options.address, {name: value for name, value in given.items() if value is not None}):
            print(line, flush=True)
        options.file.write_bytes(get(options.address, line.split(" ")[1]))
    except (OSError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
