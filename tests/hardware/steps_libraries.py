#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of other libraries that do the same again and again, and compare the bits of each result with the first.
They know nothing of Firebreak.

    steps_libraries.py LIBRARY SECONDS      cupy, jax, triton, compile (torch.compile), random (PyTorch's generators)

Says "working" once, and at the end how many steps there were, and of how many each result had other bits. Exit 1: of
some."""
import hashlib
import json
import sys
import time


def bits(arrays):
    return [hashlib.sha1(array.tobytes()).hexdigest() for array in arrays]


def cupy_steps():
    import cupy
    add = cupy.RawKernel(r'''extern "C" __global__ void add(const float* x, float* y, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] += 2.0f * x[i]; }''', "add")
    x = cupy.arange(1 << 16, dtype=cupy.float32) / 1000

    def step():
        y = cupy.ones_like(x)
        add((256,), (256,), (x, y, y.size))
        square = y[:65536].reshape(256, 256)
        return [cupy.asnumpy(each) for each in (
            y, square @ square, cupy.sort(-y), cupy.cumsum(x.astype(cupy.int32)), cupy.fft.rfft(x), cupy.linalg.cholesky(
                square @ square.T + 1e9 * cupy.eye(256, dtype=cupy.float32)), cupy.where(y > 5, x, y).sum())]
    return step


def jax_steps():
    import os
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_gpu_deterministic_ops=true"
    import jax
    import numpy
    from jax import numpy as jnp

    @jax.jit
    def forward(x, w):
        y = jnp.tanh(x @ w)
        return y, jnp.fft.fft(y).real, jnp.sort(y, axis=1), jax.nn.softmax(y @ w), jnp.cumsum(y, axis=0)

    x, w = (jax.random.normal(jax.random.PRNGKey(i), (256, 256)) for i in (1, 2))
    loss = jax.jit(jax.grad(lambda w: (forward(x, w)[3] ** 2).sum()))
    return lambda: [numpy.asarray(each) for each in (*forward(x, w), loss(w))]


def triton_steps():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def softmax(to, source, columns: tl.constexpr):
        at = tl.program_id(0) * columns + tl.arange(0, columns)
        row = tl.load(source + at)
        exponent = tl.exp(row - tl.max(row, axis=0))
        tl.store(to + at, exponent / tl.sum(exponent, axis=0))

    @triton.jit
    def product(to, a, b, size: tl.constexpr, block: tl.constexpr):
        rows = tl.program_id(0) * block + tl.arange(0, block)
        columns = tl.program_id(1) * block + tl.arange(0, block)
        total = tl.zeros((block, block), dtype=tl.float32)
        for k in range(0, size, block):
            inner = k + tl.arange(0, block)
            total += tl.dot(tl.load(a + rows[:, None] * size + inner[None, :]),
                            tl.load(b + inner[:, None] * size + columns[None, :]))
        tl.store(to + rows[:, None] * size + columns[None, :], total)

    torch.manual_seed(1)
    a, b = (torch.randn(512, 512, device="cuda").half() for _ in range(2))

    def step():
        out = torch.empty(512, 512, device="cuda")
        product[(8, 8)](out, a, b, 512, 64)
        soft = torch.empty_like(out)
        softmax[(512,)](soft, out, 512)
        return [out.cpu().numpy(), soft.cpu().numpy()]
    return step


def compile_steps():
    import torch
    torch.manual_seed(1)
    layer = torch.nn.TransformerEncoderLayer(256, 4, 512, dropout=0, batch_first=True).cuda().eval()
    compiled = torch.compile(layer, mode="reduce-overhead")
    x = torch.randn(8, 64, 256, device="cuda")

    def step():
        with torch.no_grad():
            return [compiled(x).clone().cpu().numpy()]
    for _ in range(3):
        step()  # it captures its graph
    return step


def random_steps():
    import torch

    def step():
        torch.manual_seed(7)
        x = torch.randn(1 << 16, device="cuda")
        y = torch.nn.functional.dropout(x, 0.3)
        return [each.cpu().numpy() for each in (x, y, torch.rand(1000, device="cuda"), torch.randperm(
            4096, device="cuda"), torch.multinomial(x.softmax(0), 100))]
    return step


def main(library, seconds):
    step = {"cupy": cupy_steps, "jax": jax_steps, "triton": triton_steps, "compile": compile_steps,
            "random": random_steps}[library]()
    first = bits(step())
    print("working", flush=True)
    steps, others, longest, until = 0, [0] * len(first), 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        for i, each in enumerate(bits(step())):
            others[i] += each != first[i]
        longest = max(longest, time.monotonic() - began)
        steps += 1
    print(json.dumps({"library": library, "steps": steps, "other_bits": others, "longest_ms": round(longest * 1e3, 1)}),
          flush=True)
    return 1 if any(others) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
