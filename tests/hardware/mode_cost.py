#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What CUDA's core dump mode costs a program that does not fault. For a machine with a GPU and PyTorch.

    mode_cost.py RESULT.json [--rounds N] [--kinds KIND,...]
    mode_cost.py --until KIND FILE      a tenant of parking.py's

Each process works in blocks of a tenth of a second. "calls": it enters the mode by the driver's calls after the first
half of them, as Firebreak's libraries do; "never": it does not, and its halves are compared all the same; "environment":
it is in the mode from its start, as under `firebreak run`. So two halves of one process are compared, and the noise of
that is seen beside them. With CUDA_MPS_PIPE_DIRECTORY set the processes are clients of that MPS domain."""
import argparse
import ctypes
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from core_dump_api import ENABLE, FILE, FLAGS, LIGHTWEIGHT, PTX, SKIP_ALL, Driver

KINDS = ("launches", "memory", "matmul", "inference")
MODES = ("never", "calls", "environment")
BLOCKS, BLOCK_S = 40, 0.1


def work_of(kind):
    """What is repeated, and how often before the program waits for it."""
    import torch

    torch.manual_seed(1)
    torch.zeros(1, device="cuda")  # the context
    if kind == "launches":
        driver, module, function = Driver(), ctypes.c_void_p(), ctypes.c_void_p()
        driver.cuModuleLoadData(ctypes.byref(module), PTX.encode())
        driver.cuModuleGetFunction(ctypes.byref(function), module, b"nothing")
        launch = driver.library.cuLaunchKernel
        return lambda: launch(function, 1, 1, 1, 1, 1, 1, 0, None, None, None), 500
    if kind == "memory":
        a, b = (torch.empty(1 << 28, dtype=torch.uint8, device="cuda") for _ in range(2))
        return lambda: b.copy_(a), 20
    if kind == "matmul":
        a, b = (torch.randn(4096, 4096, dtype=torch.float16, device="cuda") for _ in range(2))
        return lambda: a @ b, 20
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dtype=torch.float16, device="cuda")
    model = torch.nn.TransformerEncoder(layer, 4).eval()
    x = torch.randn(4, 64, 512, dtype=torch.float16, device="cuda")

    def infer():
        with torch.no_grad():
            model(x)
    return infer, 4


def child(kind, mode, path):
    import torch

    work, many = work_of(kind)

    def block():
        count, began = 0, time.monotonic()
        while time.monotonic() - began < BLOCK_S:
            for _ in range(many):
                work()
            torch.cuda.synchronize()
            count += many
        return count / (time.monotonic() - began)

    for _ in range(10):
        block()
    before = [block() for _ in range(BLOCKS)]
    if mode == "calls":
        driver = Driver()
        driver.set(LIGHTWEIGHT, 1, False)
        driver.set(FLAGS, SKIP_ALL, False)
        driver.set(FILE, path.encode() + b"\0", False)
        driver.set(ENABLE, 1, False)
        assert all(result == 0 for _, _, result in driver.said), driver.said
    after = [block() for _ in range(BLOCKS)]
    print(json.dumps([statistics.median(before), statistics.median(after)]))


def until(kind, file):
    """A tenant: blocks until that file is there, and how fast it worked just before the slowest of them and after it."""
    import torch

    work, many = work_of(kind)
    rates = []
    print("working", flush=True)
    try:
        while not os.path.exists(file):
            count, began = 0, time.monotonic()
            while time.monotonic() - began < BLOCK_S / 2:
                for _ in range(many):
                    work()
                torch.cuda.synchronize()
                count += many
            rates.append((count / (time.monotonic() - began), time.monotonic() - began))
    except RuntimeError as wrong:
        print(json.dumps({"error": str(wrong)[:100], "wrong_words": 0}), flush=True)
        os._exit(1)
    longest = max(range(2, len(rates)), key=lambda each: rates[each][1])
    median = lambda part: round(statistics.median(rate for rate, _ in part), 2) if part else None
    print(json.dumps({"error": "", "wrong_words": 0, "longest_ms": round(rates[longest][1] * 1e3, 1),
                      "per_s_before": median(rates[max(2, longest - 8):longest]), "per_s_after": median(rates[longest + 1:])}), flush=True)
    os._exit(0)


def play(kind, mode):
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_COREDUMP")}
        if mode == "environment":
            environment.update({
                "CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP": "1",
                "CUDA_COREDUMP_SHOW_PROGRESS": "1", "CUDA_COREDUMP_FILE": folder + "/dump",
                "CUDA_COREDUMP_GENERATION_FLAGS":
                    "skip_abort,skip_nonrelocated_elf_images,skip_global_memory,skip_shared_memory,skip_local_memory,"
                    "skip_constbank_memory"})
        done = subprocess.run([sys.executable, __file__, "--child", kind, mode, folder + "/dump"], env=environment,
                              timeout=120, capture_output=True, text=True, check=False)
        if done.returncode:
            return {"kind": kind, "mode": mode, "error": done.stderr[-300:]}
        before, after = json.loads(done.stdout)
        return {"kind": kind, "mode": mode, "before_per_s": round(before, 2), "after_per_s": round(after, 2),
                "after_to_before": round(after / before, 5)}


def summary(rows):
    """The median of the processes: of their halves, and of their rates against those that are never in the mode."""
    said = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        halves = {mode: [row["after_to_before"] for row in rows if (row["kind"], row["mode"]) == (kind, mode)
                         and "after_to_before" in row] for mode in MODES}
        rates = {mode: [row["after_per_s"] for row in rows if (row["kind"], row["mode"]) == (kind, mode)
                        and "after_per_s" in row] for mode in MODES}
        if not all(halves.values()):
            continue
        median = statistics.median
        said.append({"kind": kind,
                     "second_half_to_first": {mode: [round(min(its), 4), round(median(its), 4), round(max(its), 4)]
                                              for mode, its in halves.items()},
                     "calls_to_never": round(median(halves["calls"]) / median(halves["never"]), 4),
                     "environment_to_never": round(median(rates["environment"]) / median(rates["never"]), 4),
                     "never_least_to_most": round(min(rates["never"]) / max(rates["never"]), 4)})
    return said


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("result")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, check=True).stdout.splitlines()[0]
    rows = []
    for turn in range(options.rounds):
        for kind in options.kinds.split(","):
            for mode in MODES[turn % 3:] + MODES[:turn % 3]:
                rows.append({"round": turn, **play(kind, mode)})
                print(json.dumps(rows[-1]), flush=True)
        with open(options.result, "w", encoding="utf-8") as file:
            json.dump({"what": "CUDA's core dump mode without a fault: what it costs",
                       "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
                       "commit": os.environ.get("FIREBREAK_COMMIT"), "device": asked,
                       "mps": "CUDA_MPS_PIPE_DIRECTORY" in os.environ,
                       "command": "tests/hardware/mode_cost.py " + " ".join(sys.argv[1:]),
                       "each": f"2 times {BLOCKS} blocks of {BLOCK_S} s, medians", "summary": summary(rows),
                       "rows": rows}, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        sys.exit(child(*sys.argv[2:5]))
    if sys.argv[1] == "--until":
        until(*sys.argv[2:4])
    sys.exit(main())
