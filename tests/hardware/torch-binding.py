# SPDX-License-Identifier: Apache-2.0
"""The tenant of torch-binding.sh: torch-binding.py alone|tenant|stranger OUTPUT STEPS PAUSE_MS.

Row s of `rows` follows from row s-1 and the weights, all in bfloat16, so that a step may be repeated. Says what it does in
JSON, one object a line; times are of CLOCK_MONOTONIC, in nanoseconds."""

import contextlib
import ctypes
import hashlib
import json
import statistics
import sys
import time

import torch

import firebreak
from firebreak.torch_memory import VaultMemory, current_stream

WIDTH = 1024
LAYERS = 24


def say(what: str, **more: object) -> None:
    print(json.dumps({"what": what, "at_ns": time.clock_gettime_ns(time.CLOCK_MONOTONIC), **more}), flush=True)


def digest(tensor: torch.Tensor) -> str:
    on_host = tensor.cpu()
    content = (ctypes.c_char * (on_host.numel() * on_host.element_size())).from_address(on_host.data_ptr())
    return hashlib.sha256(content).hexdigest()[:16]


def used_mib() -> int:
    """Of the GPU, by everybody."""
    free, total = torch.cuda.mem_get_info()
    return (total - free) >> 20


class Work:
    """Matrices of several sizes, so that PyTorch asks for segments of each of its kinds; and rows."""

    def __init__(self, memory: VaultMemory | None, steps: int, stranger: bool = False) -> None:
        nothing = contextlib.nullcontext
        with memory.weights() if memory else nothing():
            extra = 7 if stranger else 0
            self.scales = torch.empty(WIDTH + extra, dtype=torch.bfloat16, device="cuda")
            self.matrices = [
                torch.empty(WIDTH, WIDTH * (1 + n % 12), dtype=torch.bfloat16, device="cuda") for n in range(LAYERS)
            ]
            self.flat = torch.empty((96 if stranger else 64) << 20, dtype=torch.bfloat16, device="cuda")
        with memory.state() if memory else nothing():
            self.rows = torch.empty(steps + 1, 8, WIDTH, dtype=torch.bfloat16, device="cuda")

    def addresses(self) -> list[int]:
        return [each.data_ptr() for each in (self.scales, *self.matrices, self.flat, self.rows)]

    def fill(self) -> None:
        generator = torch.Generator("cuda").manual_seed(17)
        for each in (self.scales, *self.matrices, self.flat, self.rows[0]):
            each.copy_(torch.randn(each.shape, generator=generator, device="cuda", dtype=torch.float32).mul_(0.05))
        self.rows[1:].zero_()
        torch.cuda.synchronize()

    def step(self, number: int) -> None:
        row = self.rows[number]
        for matrix in self.matrices:
            row = torch.tanh(row @ matrix[:, :WIDTH]) * self.scales[:WIDTH] * 8
        self.rows[number + 1].copy_(row)


def run(work: Work, session: firebreak.Session | None, resume: firebreak.Resume, steps: int, pause_s: float) -> None:
    commits = []
    for number in range(resume.next_step, steps):
        work.step(number)
        if session is not None:
            before = time.perf_counter_ns()
            session.commit_changes(number, [(0, number.to_bytes(8, "little"))], current_stream())
            commits.append(time.perf_counter_ns() - before)
            if resume.epoch > 0 and number == resume.next_step:
                torch.cuda.synchronize()
                say("first kernel", promoted_at_ns=resume.promoted_at_ns, step=number)
                session.resumed()
        if pause_s > 0:
            torch.cuda.synchronize()
            time.sleep(pause_s)
    torch.cuda.synchronize()
    if commits:
        say("commits", median_ns=statistics.median(commits), count=len(commits))


def tenant(output: str, steps: int, pause_s: float, stranger: bool) -> None:
    session = firebreak.join()
    memory = VaultMemory(session, timeout=5.0)
    with_nothing_mib = used_mib()
    before = time.perf_counter_ns()
    work = Work(memory, steps, stranger)
    say("memory", role=session.role.name, milliseconds=(time.perf_counter_ns() - before) / 1e6, addresses=work.addresses(),
        gpu_mib_before=with_nothing_mib, gpu_mib_after=used_mib())
    if session.role is firebreak.Role.STANDBY:
        private = Work(None, 1)  # every kernel once, on memory of its own
        private.fill()
        private.step(0)
        torch.cuda.synchronize()
        del private
        torch.cuda.empty_cache()
        session.ready()
        say("ready", gpu_mib=used_mib())
    resume = session.wait_promotion()
    if session.role is firebreak.Role.ACTIVE and resume.next_step == 0:
        work.fill()
    looked_at = digest(work.flat) if resume.epoch == 0 else ""  # a successor looks when it has time
    say("begins", step=resume.next_step, epoch=resume.epoch, weights=looked_at)
    run(work, session, resume, steps, pause_s)
    finish(work, output)
    memory.close()
    session.leave()


def finish(work: Work, output: str) -> None:
    result = digest(work.rows)
    with open(output, "w", encoding="ascii") as out:
        out.write(result)
    say("done", digest=result, weights=digest(work.flat))


def main(mode: str, output: str, steps: int, pause_ms: float) -> None:
    if mode == "alone":
        work = Work(None, steps)
        work.fill()
        run(work, None, firebreak.Resume(0, 0, None, 0), steps, 0)
        finish(work, output)
        return
    try:
        tenant(output, steps, pause_ms / 1000, mode == "stranger")
    except firebreak.Error as error:
        say("failed", kind=type(error).__name__, why=str(error))
        raise SystemExit(9) from error


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
