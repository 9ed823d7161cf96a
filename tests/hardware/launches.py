#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program that knows nothing of Firebreak and launches an empty kernel back to back, by the driver's own functions.
Says "working" after the first one; at the end, in JSON, how long a launch took in µs: the median of batches of 1,000,
each with one wait at its end that is not counted.

    launches.py SECONDS"""
import ctypes
import json
import statistics
import sys
import time

PTX = b""".version 7.0
.target sm_70
.address_size 64
.visible .entry nothing() { ret; }
"""


def main():
    driver = ctypes.CDLL("libcuda.so.1")
    seconds = float(sys.argv[1])

    def call(name, *arguments):
        result = getattr(driver, name)(*arguments)
        if result != 0:
            sys.exit(f"{name} answers {result}")

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
    batches = []
    while time.monotonic() - begin < seconds:
        batch_began = time.perf_counter_ns()
        for _ in range(1000):
            launch(*one)
        batches.append((time.perf_counter_ns() - batch_began) / 1e6)
        call("cuCtxSynchronize")
    print(json.dumps({"launch_us": round(statistics.median(batches), 4), "batches": len(batches),
                      "first_launch_ms": round(first_ms, 1)}))


if __name__ == "__main__":
    main()
