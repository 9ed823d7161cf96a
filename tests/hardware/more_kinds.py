#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of instructions that Hopper and its neighbours have: asynchronous and bulk copies, matrix loads, barriers in
memory, clusters, tensor maps, wgmma. For a machine with such a GPU; needs the driver alone.

    more_kinds.py --list
    more_kinds.py KIND             raises it, and says what the driver answers
    more_kinds.py --wait KIND      the same once a line comes on standard input, as firebreak-lab inject --wait does
    more_kinds.py --all RESULT.json    all of them, each in a process of its own, with the Xids in the kernel log"""
import ctypes
import datetime
import json
import os
import subprocess
import sys
import time

FAR = "0x7000dead0000"
ARRIVE = ("mbarrier.init.shared.b64 [%b], 1; fence.mbarrier_init.release.cluster; "
          "mbarrier.arrive.expect_tx.shared.b64 %state, [%b], {bytes};")
WAIT = "again: mbarrier.try_wait.parity.shared::cta.b64 %p, [%b], 0; @!%p bra again;"
BULK_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%w], [%t], {bytes}, [%b];"
TENSOR_LOAD = ("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes "
               "[%w], [%t, {{%r}}], [%b];")
USE = "ld.shared.u32 %r, [%w]; st.u32 [%s], %r;"
STORE = "st.u32 [%s], %r;"


def bulk_load(before, size="1024"):
    return " ".join([before, ARRIVE.format(bytes=size), BULK_LOAD.format(bytes=size), WAIT, USE])


def tensor_load():
    return " ".join(["mov.u32 %r, 0;", ARRIVE.format(bytes=1024), TENSOR_LOAD.format(), WAIT, STORE])


class Kind:
    def __init__(self, what, body, threads=1, fill=0, cluster=False, outside=""):
        self.what, self.body, self.threads, self.fill = what, body, threads, fill
        self.cluster, self.outside = cluster, outside

    def ptx(self):
        """%t: 1 MiB of memory, full of `fill`. %s: another. %w: 4 KiB of shared memory. %b: 8 bytes of it."""
        return f""".version 8.3
.target sm_90a
.address_size 64
{self.outside}
.visible .entry kernel(.param .u64 target, .param .u64 sink){" .reqnctapercluster 2, 1, 1" if self.cluster else ""}
{{
  .shared .align 128 .b8 window[4096];
  .shared .align 8 .b64 barrier;
  .reg .u64 %t, %s, %a;
  .reg .u32 %w, %b, %r, %v<4>;
  .reg .f32 %f<4>;
  .reg .pred %p;
  .reg .b64 %state, %d;
  ld.param.u64 %t, [target];
  ld.param.u64 %s, [sink];
  mov.u32 %w, window;
  mov.u32 %b, barrier;
  {self.body}
  ret;
}}
"""


ASSERT = Kind("an assertion fails", """{ .param .b64 message; .param .b64 file; .param .b32 line;
    .param .b64 function; .param .b64 size;
    mov.u64 %a, text; cvta.global.u64 %a, %a;
    st.param.b64 [message], %a; st.param.b64 [file], %a; st.param.b32 [line], 7;
    st.param.b64 [function], %a; st.param.b64 [size], 1;
    call.uni __assertfail, (message, file, line, function, size); }""", outside="""
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s) .noreturn;
.global .align 1 .b8 text[5] = {119, 114, 111, 110, 0};""")
LDMATRIX = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r}, [%w]; " + STORE
ASYNC_COPY = "cp.async.ca.shared.global [%w], [%t], 16; cp.async.wait_all; " + USE
WGMMA = ("mov.b64 %d, 0x3fff3fff3fff3fff; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; "
         "mov.f32 %f3, %f0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
         "{%f0,%f1,%f2,%f3}, %d, %d, 1, 1, 1, 0, 0; wgmma.commit_group.sync.aligned; "
         "wgmma.wait_group.sync.aligned 0; st.f32 [%s], %f0;")
KINDS = {
    "device-assert": ASSERT,
    "misaligned-atomic-64": Kind("an atomic of 8 bytes, 4 bytes off",
                                 "atom.global.add.u64 %a, [%t+4], 1; st.u64 [%s], %a;"),
    "misaligned-reduction-64": Kind("the same without an answer", "red.global.add.u64 [%t+4], 1;"),
    "misaligned-vector-load": Kind("a load of 16 bytes, 4 bytes off",
                                   "ld.volatile.global.v4.u32 {%v0,%v1,%v2,%v3}, [%t+4]; st.u32 [%s], %v3;"),
    "async-copy-misaligned-source": Kind("cp.async of 16 bytes from 4 bytes off",
                                         "add.u64 %t, %t, 4; " + ASYNC_COPY),
    "async-copy-misaligned-destination": Kind("cp.async of 16 bytes to 4 bytes off",
                                              "add.u32 %w, %w, 4; " + ASYNC_COPY),
    "async-copy-beyond-shared": Kind("cp.async to 64 MiB beyond shared memory",
                                     "add.u32 %w, %w, 67108864; " + ASYNC_COPY),
    "async-copy-unmapped": Kind("cp.async from where nothing is", f"mov.u64 %t, {FAR}; " + ASYNC_COPY),
    "ldmatrix-misaligned": Kind("a row of ldmatrix 4 bytes off", "add.u32 %w, %w, 4; " + LDMATRIX, threads=32),
    "ldmatrix-beyond-shared": Kind("ldmatrix from 64 MiB beyond shared memory",
                                   "add.u32 %w, %w, 67108864; " + LDMATRIX, threads=32),
    "stmatrix-misaligned": Kind("a row of stmatrix 4 bytes off",
                                "add.u32 %w, %w, 4; mov.u32 %r, 1; "
                                "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%w], {%r};", threads=32),
    "mbarrier-misaligned": Kind("an mbarrier 4 bytes off",
                                "add.u32 %b, %b, 4; mbarrier.init.shared.b64 [%b], 1; "
                                "mbarrier.arrive.shared.b64 %state, [%b]; st.u64 [%s], %state;"),
    "mbarrier-not-initialised": Kind("arrivals at an mbarrier of zeros",
                                     "st.shared.u64 [%b], 0; mbarrier.arrive.shared.b64 %state, [%b]; "
                                     "mbarrier.arrive.shared.b64 %state, [%b]; st.u64 [%s], %state;"),
    "cluster-rank-without-cluster": Kind("a load from block 5 of a cluster of one",
                                         "mapa.shared::cluster.u32 %w, %w, 5; "
                                         "ld.volatile.shared::cluster.u32 %r, [%w]; " + STORE),
    "cluster-rank-too-high": Kind("a load from block 5 of a cluster of two",
                                  "mapa.shared::cluster.u32 %w, %w, 5; "
                                  "ld.volatile.shared::cluster.u32 %r, [%w]; " + STORE, cluster=True),
    "cluster-beyond-shared": Kind("a load from 2 MiB beyond a block's shared memory",
                                  "mapa.shared::cluster.u32 %w, %w, 0; add.u32 %w, %w, 2097152; "
                                  "ld.volatile.shared::cluster.u32 %r, [%w]; " + STORE),
    "cluster-block-gone": Kind("a load from a block of the cluster that has ended",
                               "mov.u32 %r, %cluster_ctarank; setp.eq.u32 %p, %r, 1; @%p ret; "
                               "nanosleep.u32 1000000; mapa.shared::cluster.u32 %w, %w, 1; "
                               "ld.volatile.shared::cluster.u32 %r, [%w]; " + STORE, cluster=True),
    "bulk-load-unmapped": Kind("a bulk copy (TMA) from where nothing is", bulk_load(f"mov.u64 %t, {FAR};")),
    "bulk-load-misaligned": Kind("a bulk copy from 4 bytes off", bulk_load("add.u64 %t, %t, 4;")),
    "bulk-store-unmapped": Kind("a bulk copy to where nothing is",
                                f"mov.u64 %t, {FAR}; cp.async.bulk.global.shared::cta.bulk_group [%t], [%w], 1024; "
                                "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; st.u32 [%s], 1;"),
    "tensor-map-of-zeros": Kind("a tensor load (TMA) whose map is zeros", tensor_load()),
    "tensor-map-of-ones": Kind("the same with a map of ones", tensor_load(), fill=255),
    "texture-unknown": Kind("a texture handle that is none",
                            "mov.u64 %a, 0x7fffff; mov.u32 %r, 0; tex.1d.v4.f32.s32 {%f0,%f1,%f2,%f3}, [%a, {%r}]; "
                            "st.f32 [%s], %f0;"),
    "wgmma-beyond-shared": Kind("wgmma with descriptors beyond shared memory", WGMMA, threads=128),
}


def prepared(kind):
    """Answers what raises it."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def check(result, what):
        if result:
            raise SystemExit(f"{what}: {result}")
    check(cuda.cuInit(0), "cuInit")
    context, module, kernel = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "the context")
    check(cuda.cuCtxSetCurrent(context), "the context")
    check(cuda.cuModuleLoadData(ctypes.byref(module), kind.ptx().encode() + b"\0"), "the PTX")
    check(cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"kernel"), "the kernel")
    target, sink = ctypes.c_uint64(), ctypes.c_uint64()
    for memory in (target, sink):
        check(cuda.cuMemAlloc_v2(ctypes.byref(memory), 1 << 20), "memory")
    check(cuda.cuMemsetD8_v2(target, kind.fill, 1 << 20), "a fill")
    check(cuda.cuCtxSynchronize(), "a fill")

    def raise_it():
        arguments = (ctypes.c_void_p * 2)(
            *(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (target, sink)))
        queued = cuda.cuLaunchKernel(kernel, 2, 1, 1, kind.threads, 1, 1, 0, None, arguments, None)
        result = queued or cuda.cuCtxSynchronize()
        name = ctypes.c_char_p()
        cuda.cuGetErrorName(result, ctypes.byref(name))
        print("answered", time.monotonic_ns(), (name.value or b"?").decode(), flush=True)
    return raise_it


def kernel_log():
    return [line for line in subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout.splitlines()
            if "Xid" in line]


def all_kinds(output):
    rows = []
    for name, kind in KINDS.items():
        before = len(kernel_log())
        try:
            said = subprocess.run([sys.executable, os.path.abspath(__file__), name], capture_output=True, text=True,
                                  timeout=15, check=False).stdout
            answered = next((line.split()[2] for line in said.splitlines() if line.startswith("answered ")), "nothing")
        except subprocess.TimeoutExpired:
            answered = "not in 15 s"
        time.sleep(0.2)
        lines = [line[line.index("Xid"):] for line in kernel_log()[before:]]
        xids = sorted({int(line.split("): ")[1].split(",")[0]) for line in lines})
        words = sorted({line.rsplit("): ", 1)[1] for line in lines if "Exception on" in line})
        rows.append({"kind": name, "what": kind.what, "answered": answered, "xids": xids, "words": words})
        print(json.dumps(rows[-1]), flush=True)
    asked = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], text=True,
                           capture_output=True, timeout=30, check=False).stdout.strip().split(", ")
    with open(output, "w", encoding="utf-8") as file:
        json.dump({"what": "tests/hardware/more_kinds.py", "format": 1,
                   "command": "tests/hardware/more_kinds.py --all RESULT.json",
                   "machine": {"gpu": asked[0], "driver": asked[-1], "linux": os.uname().release,
                               "commit": os.environ.get("FIREBREAK_COMMIT", "unknown"),
                               "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat()},
                   "rows": rows}, file, indent=1)


def main():
    if sys.argv[1] == "--list":
        for name, kind in KINDS.items():
            print(f"{name:36}{kind.what}")
    elif sys.argv[1] == "--all":
        all_kinds(sys.argv[2])
    else:
        raise_it = prepared(KINDS[sys.argv[-1]])
        if sys.argv[1] == "--wait":
            print("prepared", flush=True)
            sys.stdin.readline()
        raise_it()


if __name__ == "__main__":
    main()
