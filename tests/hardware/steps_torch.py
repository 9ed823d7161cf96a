#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch program that knows nothing of Firebreak, for tests/hardware/spare.py: one step again and again, whose result
is the same each time. Prints its hash, and how many steps there were in SECONDS."""
import hashlib
import sys
import time

import torch


def main():
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
    given = torch.randn(64, 512, device="cuda")
    first, steps, wrong = None, 0, 0
    begin = time.monotonic()
    while time.monotonic() - begin < float(sys.argv[1]):
        result = hashlib.sha1(model(given).detach().cpu().numpy().tobytes()).hexdigest()
        first = first or result
        wrong += result != first
        steps += 1
    print(f"hash {first}, steps {steps}, wrong {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
