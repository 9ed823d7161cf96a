#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What parking costs where nobody faults: the same programs in domains that can be parked and in domains that cannot,
in turns, one at a time. For a machine with a GPU, root and MPS.

  tests/hardware/parking_cost.py BIN RESULT.json [--seconds S] [--repeat N]

BIN: the folder with the programs. FIREBREAK_GPU=soft: without a GPU, and only the first of them. A ratio is the median with
parking through the median without. Ends everything that it started."""

import argparse
import json
import os
import re
import statistics
import sys
import tempfile

from parking import Agent, machine


def programs_to_play(programs, seconds):
    checker = [programs + "/firebreak-checker", "--seconds", str(seconds)]
    torch = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "steps_torch.py"), str(seconds)]
    if os.environ.get("FIREBREAK_GPU", "real") == "soft":
        return {"launch-bound": checker}
    return {"launch-bound": checker, "whole-GPU": [*checker, "--blocks", "264", "--rounds", "20000"],
            "PyTorch-inference": torch}


def count(output):
    found = re.search(r'"launches": (\d+)|steps (\d+)', output)
    if found is None:
        raise ValueError("the program did not say how often it worked: " + output)
    return int(found[1] or found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs")
    parser.add_argument("result")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    programs = os.path.realpath(options.programs)
    plays = programs_to_play(programs, options.seconds)
    counted = {name: {"with": [], "without": []} for name in plays}
    with tempfile.TemporaryDirectory(prefix="fbc", dir="/tmp") as scratch:
        for turn in range(2 * options.repeat):
            way = "with" if turn % 2 == 0 else "without"
            agent = Agent(programs, f"{scratch}/{turn}", options.result + ".agent.log",
                          ["--park-s", "8"] if way == "with" else [])
            try:
                ready = agent.await_all(lambda domain: way == "without" or domain["parking"]["state"] == "ready")
                if not ready:
                    raise TimeoutError("the domains do not become ready to be parked")
                for name, command in plays.items():
                    output, _ = agent.run(name, [], *command).communicate(timeout=options.seconds + 60)
                    counted[name][way].append(count(output))
                    print(name, way, counted[name][way][-1], flush=True)
            finally:
                agent.end()
    rows = [{"program": name, **of, "ratio": statistics.median(of["with"]) / statistics.median(of["without"])}
            for name, of in counted.items()]
    with open(options.result, "w", encoding="utf-8") as file:
        json.dump({"what": "tests/hardware/parking_cost.py", "format": 1, "machine": machine(programs),
                   "command": "tests/hardware/parking_cost.py BIN RESULT.json " + " ".join(sys.argv[3:]),
                   "rows": rows}, file, indent=1)
    for row in rows:
        print(f"{row['program']}: {row['ratio']:.4f}")


if __name__ == "__main__":
    main()
