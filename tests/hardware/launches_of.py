#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which launches of real programs may run again: records what they launch, and decides it.

    tests/hardware/launches_of.py PROGRAMS OUTPUT.json [--keep FOLDER] [--only NAME,...] [--seconds 95]

PROGRAMS: the folder with firebreak-idempotency; the preload is in ../lib. Programs: a small transformer in PyTorch, eagerly
and compiled (inductor, Triton), answering and in one step of training; kernels written in Triton; CuPy. What is not
installed is told. Machine code that Triton made is decided by the PTX that Triton made it of: both lie in its cache.
--keep: the recorded launches and that PTX go there, to be decided again without a GPU. `-- COMMAND` after the options
records that program alone. FIREBREAK_COMMIT says what was built."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

from spare_faults import machine_at


# ---- The programs, each in a process of its own ----

def small_transformer(torch):
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, width = x.shape
            parts = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.between(x))))

    class Model(nn.Module):
        def __init__(self, words=1000, width=256, heads=4, layers=2):
            super().__init__()
            self.embedding = nn.Embedding(words, width)
            self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
            self.last, self.head = nn.LayerNorm(width), nn.Linear(width, words)

        def forward(self, words):
            x = self.embedding(words)
            for layer in self.layers:
                x = layer(x)
            return self.head(self.last(x))

    torch.manual_seed(1)
    return Model().cuda()


def answer(is_compiled):
    import torch
    model = small_transformer(torch).eval()
    step = torch.compile(model) if is_compiled else model
    words = torch.randint(0, 1000, (4, 128), device="cuda")
    with torch.no_grad():
        for _ in range(3):
            torch.softmax(step(words)[:, -1].float(), -1).argmax(-1)
    torch.cuda.synchronize()


def train(is_compiled):
    import torch
    model = small_transformer(torch).train()
    step = torch.compile(model) if is_compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    words = torch.randint(0, 1000, (4, 129), device="cuda")
    for _ in range(2):
        optimizer.zero_grad()
        said = step(words[:, :-1])
        torch.nn.functional.cross_entropy(said.flatten(0, 1), words[:, 1:].flatten()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    torch.cuda.synchronize()


def triton_kernels():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, count, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.store(out + at, tl.load(x + at, at < count) + tl.load(y + at, at < count), at < count)

    @triton.jit
    def softmax(x, out, columns, size: tl.constexpr):
        at = tl.arange(0, size)
        row = tl.program_id(0) * columns
        values = tl.load(x + row + at, at < columns, -float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row + at, powers / tl.sum(powers, 0), at < columns)

    @triton.jit
    def count_values(x, counts, count, size: tl.constexpr):
        at = tl.program_id(0) * size + tl.arange(0, size)
        tl.atomic_add(counts + tl.load(x + at, at < count), 1, at < count)

    numbers = torch.randn(10_000, device="cuda")
    rows = torch.randn(64, 1000, device="cuda")
    for _ in range(3):
        add[(10,)](numbers, numbers, torch.empty_like(numbers), 10_000, size=1024)
        add[(10,)](numbers, numbers, numbers, 10_000, size=1024)
        softmax[(64,)](rows, torch.empty_like(rows), 1000, size=1024)
        count_values[(10,)](torch.zeros(10_000, dtype=torch.int32, device="cuda"),
                            torch.zeros(16, dtype=torch.int32, device="cuda"), 10_000, size=1024)
    torch.cuda.synchronize()


def cupy_kernels():
    import cupy
    x = cupy.arange(10_000, dtype=cupy.float32)
    for _ in range(3):
        y = x * 2 + 1
        y += x
        cupy.exp(y / 1e6).sum()
    cupy.cuda.Device().synchronize()


# By name: what it needs, and what it does.
WORKLOADS = {
    "eager answer": (["torch"], lambda: answer(False)),
    "eager training": (["torch"], lambda: train(False)),
    "triton": (["torch", "triton"], triton_kernels),
    "compiled answer": (["torch", "triton"], lambda: answer(True)),
    "compiled training": (["torch", "triton"], lambda: train(True)),
    "cupy": (["cupy"], cupy_kernels),
}


# ---- Recording and deciding ----

def pair_with_ptx(images, caches):
    """Gives images of Triton's machine code the PTX that lies beside the same machine code in its cache."""
    waiting = {path: path.read_bytes() for path in images.glob("*.cubin")}
    paired = set()
    for cubin in caches.rglob("*.cubin"):
        text = cubin.with_suffix(".ptx")
        made = cubin.read_bytes() if text.exists() else b""
        # The recorder takes what the file's header names: there may be something behind it.
        found = next((path for path, bytes_ in waiting.items() if made and made.startswith(bytes_)), None)
        if found is not None and found not in paired:
            shutil.copyfile(text, found.with_suffix(".ptx"))
            paired.add(found)
    for path in waiting:
        path.unlink()
    return {"machine_code_images": len(waiting), "paired_with_ptx": len(paired)}


def decide(programs, folder):
    try:
        done = subprocess.run([str(programs / "firebreak-idempotency"), "--recorded", str(folder)], text=True,
                              capture_output=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return {"error": str(problem)}
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr.strip()[-500:]}


def recording(programs, folder):
    """The environment of a program that is recorded, and where its compilers' caches lie."""
    caches = folder / "caches"
    caches.mkdir(parents=True)
    return {**os.environ, "FIREBREAK_RECORD_LAUNCHES": str(folder / "recorded"), "FIREBREAK_GUARD": "0",
            "TRITON_CACHE_DIR": str(caches / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1", "CUPY_CACHE_DIR": str(caches / "cupy"),
            "LD_PRELOAD": str(programs.parent / "lib" / "libfirebreak-guard.so")}, caches


def record(programs, command, folder, limit_s):
    """Runs the command with the recorder; what is decided of it, and what went wrong."""
    environment, caches = recording(programs, folder)
    begin = time.monotonic()
    try:
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=limit_s, check=False)
        ended = {"exit_code": done.returncode, **({"said": done.stderr[-1000:]} if done.returncode else {})}
    except subprocess.TimeoutExpired:
        ended = {"error": f"did not end within {limit_s:.0f} s"}
    ended["seconds"] = round(time.monotonic() - begin, 1)
    recorded = folder / "recorded"
    if not recorded.is_dir():
        return {**ended, "launches": None}
    images = pair_with_ptx(recorded / "images", caches)
    shutil.rmtree(caches)
    return {**ended, **images, "launches": decide(programs, recorded)}


def missing(needed):
    return [name for name in needed
            if subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False).returncode]


def machine():
    its = machine_at(os.environ.get("FIREBREAK_COMMIT"))
    if its["gpu"] == "software":
        return its
    version = subprocess.run([sys.executable, "-c", "import torch; print(torch.__version__)"], text=True,
                             capture_output=True, check=False).stdout.strip()
    return {**its, "pytorch": version or None}


def keep(recorded, folder, name):
    """What a decision needs: launches whose PTX is there, and that PTX."""
    if recorded.is_dir():
        shutil.copytree(recorded, folder / re.sub(r"\W+", "-", name), dirs_exist_ok=True)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", help="names of programs, with commas: " + ", ".join(WORKLOADS))
    parser.add_argument("--seconds", type=float, default=95, help="for all of them")
    own, command = sys.argv[1:], []
    if "--" in own:
        own, command = own[:own.index("--")], own[own.index("--") + 1:]
    return parser.parse_args(own), command


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--workload":
        WORKLOADS[sys.argv[2]][1]()
        return
    arguments, command = parse()
    programs = arguments.programs.resolve()
    end = time.monotonic() + arguments.seconds
    names = arguments.only.split(",") if arguments.only else list(WORKLOADS)
    jobs = {name: [sys.executable, __file__, "--workload", name] for name in names}
    if command:
        jobs = {pathlib.Path(command[0]).name: command}
    results = {}
    with tempfile.TemporaryDirectory(prefix="fb-launches-") as folder:
        for name, job in jobs.items():
            left_s = end - time.monotonic()
            lacking = missing(WORKLOADS[name][0]) if not command else []
            if lacking or left_s < 5:
                results[name] = {"left_out": "not installed: " + ", ".join(lacking) if lacking else "no time was left"}
                continue
            own = pathlib.Path(folder) / re.sub(r"\W+", "-", name)
            results[name] = record(programs, job, own, left_s)
            if arguments.keep:
                keep(own / "recorded", arguments.keep, name)
            shutil.rmtree(own)
            print(name, json.dumps({key: value for key, value in results[name].items() if key != "launches"}), flush=True)
    document = {"what": "which launches of programs may run again", "format": 1, "machine": machine(),
                "command": " ".join(["tests/hardware/launches_of.py", *sys.argv[1:]]), "programs": results}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    if not any(result.get("launches") for result in results.values()):
        sys.exit("no program's launches were recorded")


if __name__ == "__main__":
    main()
