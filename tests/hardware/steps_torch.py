#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that knows nothing of Firebreak: one step again and again, whose result is the same each time. Says
"working" after the first one, and at the end, in JSON, how many steps there were, how many had another result, and
which took 10 ms or longer: when they began (CLOCK_MONOTONIC, ns), and how long they took; how many steps a second there
were after the first one.

    steps_torch.py SECONDS | FILE [graph | train]    until that file is there; graph: the step is captured once, and
    replayed; train: a step begins at the same weights, and is three of training, forth and back"""
import hashlib
import json
import os
import sys
import time

import torch


def step_of(model, given, as_graph):
    """Answers the step's result, which is the same tensor each time where it is a graph."""
    if not as_graph:
        return lambda: model(given)
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.no_grad(), torch.cuda.stream(aside):
        for _ in range(3):  # what is made at the first use is no part of a graph
            model(given)
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph):
        result = model(given)

    def replay():
        graph.replay()
        return result
    return replay


def training_of(model, given):
    """Answers the weights after three steps from where they are now."""
    begin = {name: value.clone() for name, value in model.state_dict().items()}
    wanted = torch.randn(64, 512, device="cuda")

    def train():
        model.load_state_dict(begin)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        for _ in range(3):
            optimizer.zero_grad()
            torch.nn.functional.mse_loss(model(given), wanted).backward()
            optimizer.step()
        return torch.cat([value.flatten() for value in model.state_dict().values()])
    return train


def main():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
    given = torch.randn(64, 512, device="cuda")
    if "train" in sys.argv[2:]:
        step = training_of(model, given)
    else:
        step = step_of(model, given, "graph" in sys.argv[2:])
    first, first_end, steps, wrong, stalls = None, None, 0, 0, []
    begin = time.monotonic_ns()
    until = sys.argv[1]
    is_over = (lambda: os.path.exists(until)) if "/" in until else (
        lambda: time.monotonic_ns() - begin > float(until) * 1e9)
    while not is_over():
        step_began = time.monotonic_ns()
        result = hashlib.sha1(step().detach().cpu().numpy().tobytes()).hexdigest()
        took_ms = (time.monotonic_ns() - step_began) / 1e6
        if first is None:
            first, first_end = result, time.monotonic_ns()
            print("working", flush=True)
        elif took_ms >= 10 and len(stalls) < 10_000:
            stalls.append([step_began, round(took_ms, 3)])
        wrong += result != first
        steps += 1
    print(json.dumps({"hash": first, "launches": steps, "wrong_words": wrong, "error": "", "stalls": stalls,
                      "a_second": round((steps - 1) * 1e9 / max(1, time.monotonic_ns() - first_end), 2)}))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
