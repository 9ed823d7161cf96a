#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that knows nothing of Firebreak and launches an empty kernel back to back, by the driver's own functions.
Says "working" after the first one; at the end, in JSON, how long a launch took in µs: the median of batches of 1,000,
each with one wait at its end that is not counted; and what cuMemAlloc and cuMemFree took, by size. With a file it goes on until that is there, SECONDS at most, and says
what a batch and its wait took before the longest of them and after it: where a neighbour's fault stopped it.

    launches.py SECONDS [FILE]"""
import ctypes
import json
import os
import statistics
import sys
import time

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""


def allocations_us(call, rounds=40):
    """Medians of cuMemAlloc and of cuMemFree, each the only one at its time."""
    figures = {}
    for name, size_bytes in (("64_kib", 64 << 10), ("2_mib", 2 << 20), ("64_mib", 64 << 20)):
        took = {"allocation": [], "free": []}
        for _ in range(rounds):
            address = ctypes.c_uint64()
            began = time.perf_counter_ns()
            call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size_bytes))
            between = time.perf_counter_ns()
            call("cuMemFree_v2", address)
            took["allocation"].append(between - began)
            took["free"].append(time.perf_counter_ns() - between)
        for what, all_ns in took.items():
            figures[f"{what}_of_{name}_us"] = round(statistics.median(all_ns) / 1e3, 1)
    return figures


def main():
    driver = ctypes.CDLL("libcuda.so.1")
    seconds, until = float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None

    def call(name, *arguments):
        result = getattr(driver, name)(*arguments)
        if result != 0:
            if until is None:
                sys.exit(f"{name} answers {result}")
            print(json.dumps({"error": f"{name} answers {result}", "wrong_words": 0}), flush=True)
            os._exit(1)

    begin = time.monotonic()
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
    call("cuModuleGetFunction", ctypes.byref(kernel), module, ctypes.c_char_p(b"nothing"))
    launch = driver.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    one = (kernel, 1, 1, 1, 32, 1, 1, 0, None, None, None)
    call("cuLaunchKernel", *one)
    call("cuCtxSynchronize")
    print("working", flush=True)
    first_ms = (time.monotonic() - begin) * 1e3
    batches, wholes = [], []
    while time.monotonic() - begin < seconds and not (until and os.path.exists(until)):
        batch_began = time.perf_counter_ns()
        for _ in range(1000):
            launch(*one)
        batches.append((time.perf_counter_ns() - batch_began) / 1e6)
        call("cuCtxSynchronize")
        wholes.append((time.perf_counter_ns() - batch_began) / 1e6)
    seen = {"launch_us": round(statistics.median(batches), 4), "batches": len(batches),
            "first_launch_ms": round(first_ms, 1), **({} if until else allocations_us(call))}
    if until:
        longest = wholes.index(max(wholes))
        # Before it the last ones alone: neighbours may have begun to work since the first.
        parts = {"before": wholes[max(0, longest - 40):longest], "after": wholes[longest + 1:]}
        seen.update({"error": "", "wrong_words": 0, "longest_ms": round(wholes[longest], 3),
                     **{f"batches_{when}": len(part) for when, part in parts.items()},
                     **{f"us_a_launch_{when}": round(statistics.median(part), 4) for when, part in parts.items()
                        if part}})
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
