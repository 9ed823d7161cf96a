#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that knows nothing of Firebreak: one step again and again, whose result is the same each time. Says
"working" after the first one, and at the end, in JSON, how many steps there were, how many had another result, and
which took 10 ms or longer: when they began (CLOCK_MONOTONIC, ns), and how long they took.

    steps_torch.py SECONDS | FILE    until that file is there"""
import hashlib
import json
import os
import sys
import time

import torch


def main():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
    given = torch.randn(64, 512, device="cuda")
    first, steps, wrong, stalls = None, 0, 0, []
    begin = time.monotonic_ns()
    until = sys.argv[1]
    is_over = (lambda: os.path.exists(until)) if "/" in until else (
        lambda: time.monotonic_ns() - begin > float(until) * 1e9)
    while not is_over():
        step_began = time.monotonic_ns()
        result = hashlib.sha1(model(given).detach().cpu().numpy().tobytes()).hexdigest()
        took_ms = (time.monotonic_ns() - step_began) / 1e6
        if first is None:
            first = result
            print("working", flush=True)
        elif took_ms >= 10 and len(stalls) < 10_000:
            stalls.append([step_began, round(took_ms, 3)])
        wrong += result != first
        steps += 1
    print(json.dumps({"hash": first, "launches": steps, "wrong_words": wrong, "error": "", "stalls": stalls}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
