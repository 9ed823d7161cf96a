#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A video (long steps) and images (short requests, which come by chance) on one GPU: what turns give, and what they cost.
Both are diffusion transformers in plain PyTorch with random weights, and tenants of an agent of this script's own. For a
machine with a GPU, root, MPS and PyTorch; about 3 minutes.

    tests/hardware/turns.py BIN RESULT.json [--seconds N] [--ways WAY,...]

BIN: the folder with the programs. Ways: slices (a domain each), mps (both in one domain), shares (the same with half of the
SMs each), priority, deadline. Exit 1 where a bit of any output differs, or somebody ends early. Ends everything that it
started."""
import argparse
import ctypes
import hashlib
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 20
# The agent's options, each tenant's, and whether both are in one domain.
WAYS = {
    "slices": ([], [], False),
    "mps": ([], [], True),
    "shares": ([], ["--sm-percent", "50"], True),
    "priority": (["--turns", "priority"], [], True),
    "deadline": (["--turns", "deadline"], [], True),
}


def make_step(layers, width, heads, tokens):
    """A function of one step, and where it begins."""
    import torch
    import torch.nn.functional as functional

    torch.inference_mode().__enter__()
    chance = torch.Generator("cuda").manual_seed(tokens)

    def weights(*shape):
        made = torch.randn(*shape, generator=chance, device="cuda", dtype=torch.bfloat16)
        return made / shape[0] ** 0.5

    blocks = [(weights(width, 3 * width), weights(width, width), weights(width, 4 * width), weights(4 * width, width))
              for _ in range(layers)]
    norm = lambda at: functional.layer_norm(at, (width,))

    def step(latent):
        at = latent
        for mix, out, wide, narrow in blocks:
            parts = (norm(at) @ mix).view(1, tokens, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(*parts)
            at = at + seen.transpose(1, 2).reshape(1, tokens, width) @ out
            at = at + functional.gelu(norm(at) @ wide) @ narrow
        return latent - norm(at) / STEPS

    return step, weights(1, tokens, width)


class Tenant:
    """One of both: its steps are committed, and each waits for its turn."""

    def __init__(self, shape):
        import firebreak
        import torch

        self.torch, self.session = torch, firebreak.join()
        self.step, self.begin = make_step(*shape)
        for _ in range(3):
            self.step(self.begin)
        torch.cuda.synchronize()
        start = time.monotonic()
        self.run(None)
        self.solo_s = time.monotonic() - start

    committed, waited_s, first_step_s = 0, 0.0, 0.0

    def run(self, deadline):
        """All steps of one output; its digest."""
        at, before = self.begin, None
        for number in range(STEPS):
            self.session.turn_wanted(STEPS - number, deadline)
            asked = time.monotonic()
            self.session.turn()
            self.waited_s = max(self.waited_s, time.monotonic() - asked)
            at = self.step(at)
            self.session.commit_changes(self.committed, [], self.torch.cuda.current_stream().cuda_stream)
            self.committed += 1
            queued = self.torch.cuda.Event()
            queued.record()
            if number == 0:
                queued.synchronize()
                self.first_step_s = time.monotonic() - asked
            if before is not None:
                before.synchronize()  # one step is queued ahead at most, also where no turns are given
            before = queued
        self.torch.cuda.synchronize()
        self.session.turn_wanted(0)
        return hashlib.sha256(at.float().cpu().numpy().tobytes()).hexdigest()[:16]


def look_ns(session):
    """What a look at the word takes; a call of ctypes that does next to nothing is taken off."""
    from firebreak import _library

    def of(call, *given):
        begin = time.perf_counter_ns()
        for _ in range(200_000):
            call(*given)
        return (time.perf_counter_ns() - begin) / 200_000

    handle = ctypes.c_void_p(session.handle)
    loaded = _library.library()
    return of(loaded.fb_turn, handle, ctypes.c_int64(0)) - of(loaded.fb_session_role, handle)


def video(folder):
    tenant = Tenant((30, 1536, 12, 8192))
    digests, begin = [], None
    (folder / "video.ready").touch()
    while not (folder / "stop").exists():
        if begin is None and (folder / "go").exists():
            begin, before = time.monotonic(), tenant.committed
        digests.append(tenant.run(time.monotonic() + 6 * tenant.solo_s))
    took_s = time.monotonic() - begin
    tell(folder / "video.json", {
        "solo_s": round(tenant.solo_s, 3), "steps_per_s": round((tenant.committed - before) / took_s, 2),
        "longest_wait_s": round(tenant.waited_s, 3), "outputs": len(digests), "digests": sorted(set(digests))})
    tenant.session.leave()


def images(folder, seconds):
    tenant, chance = Tenant((24, 1536, 24, 1024)), random.Random(11)
    seen = {"solo_ms": round(tenant.solo_s * 1e3, 1), "look_ns": round(look_ns(tenant.session), 1)}
    (folder / "images.ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    begin = time.monotonic()
    due, took_ms, first_ms, digests, met = begin + 0.5, [], [], set(), 0
    while due < begin + seconds:
        due += chance.expovariate(1.0)
        time.sleep(max(0.0, due - time.monotonic()))
        digests.add(tenant.run(due + 2 * tenant.solo_s))
        took_ms.append((time.monotonic() - due) * 1e3)
        first_ms.append(tenant.first_step_s * 1e3)
        met += took_ms[-1] <= 2e3 * tenant.solo_s
    at = lambda part, of: round(sorted(of)[min(len(of) - 1, int(part * len(of)))], 1)
    tell(folder / "images.json", {
        **seen, "count": len(took_ms), "within_2_solo": met, "digests": sorted(digests),
        **{f"p{part}_ms": at(part / 100, took_ms) for part in (50, 90, 99)},
        "first_step_p50_ms": at(0.5, first_ms), "first_step_most_ms": round(max(first_ms), 1)})
    tenant.session.leave()


def tell(path, seen):
    path.with_suffix(".new").write_text(json.dumps(seen))
    path.with_suffix(".new").rename(path)


def await_files(names, folder, processes, limit_s):
    end = time.monotonic() + limit_s
    while not all((folder / name).exists() for name in names):
        ended = [name for name, each in processes.items() if each.poll() not in (None, 0)]
        if ended or time.monotonic() > end:
            raise TimeoutError(f"{names} are not there; ended: {ended}")
        time.sleep(0.02)


def play(programs, way, seconds):
    of_agent, of_tenants, shares_a_domain = WAYS[way]
    with tempfile.TemporaryDirectory(prefix="fb-turns-") as name:
        folder = pathlib.Path(name)
        python = [str(HERE.parents[1] / "python"), str(HERE)]
        environment = dict(os.environ, FIREBREAK_SOCKET=f"{folder}/d/agent.sock", FIREBREAK_WITHOUT="guard,spare,parking",
                           FIREBREAK_LIBRARY_DIR=str(programs.parent / "lib"), PYTHONPATH=":".join(python))
        environment.setdefault("FIREBREAK_GPU", "real")
        log = open(folder / "log", "wb")
        start = lambda *command: subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        agent = start(str(programs / "firebreakd"), "--end-domains", "--directory", f"{folder}/d", *of_agent)
        processes = {}

        def tenant(its_name, command, *options):
            processes[its_name] = start(str(programs / "firebreak"), "run", "--name", its_name, *options, "--", *command)

        own = [sys.executable, str(HERE / "turns.py")]
        try:
            end = time.monotonic() + 60
            while not (folder / "d" / "agent.sock").exists() and time.monotonic() < end:
                time.sleep(0.05)
            tenant("video", [*own, "--video", name], "--class", "batch", *of_tenants)
            await_files(["video.ready"], folder, processes, 120)
            if shares_a_domain:  # the next tenant comes where fewer are
                tenant("nobody", ["sleep", "1000"])
                time.sleep(1)
            tenant("images", [*own, "--images", name, str(seconds)], "--class", "live", *of_tenants)
            await_files(["images.ready"], folder, processes, 120)
            (folder / "go").touch()
            status = subprocess.run([str(programs / "firebreak"), "status", "--json"], env=environment,
                                    capture_output=True, check=True, timeout=20).stdout
            await_files(["images.json"], folder, processes, seconds + 60)
            (folder / "stop").touch()
            await_files(["video.json"], folder, processes, 60)
            domains = {each["name"]: (each["active"] or {}).get("domain") for each in json.loads(status)["tenants"]}
            return {"domains": domains, **{each: json.loads((folder / f"{each}.json").read_text())
                                           for each in ("images", "video")}}
        except (TimeoutError, subprocess.SubprocessError) as wrong:
            return {"failed": str(wrong), "log": (folder / "log").read_text(errors="replace")[-3000:]}
        finally:
            agent.terminate()
            for each in processes.values():
                each.terminate()
            for each in (*processes.values(), agent):
                try:
                    each.wait(20)
                except subprocess.TimeoutExpired:
                    each.kill()


def main():
    if sys.argv[1:2] == ["--video"]:
        return video(pathlib.Path(sys.argv[2]))
    if sys.argv[1:2] == ["--images"]:
        return images(pathlib.Path(sys.argv[2]), float(sys.argv[3]))
    import spare_faults

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--ways", default=",".join(WAYS))
    arguments = parser.parse_args()
    programs = arguments.programs.resolve()
    seen = {"what": "tests/hardware/turns.py", "machine": spare_faults.machine(str(programs)),
            "command": " ".join(["tests/hardware/turns.py", "BIN", arguments.output.name] + sys.argv[3:]), "ways": {}}
    for way in arguments.ways.split(","):
        seen["ways"][way] = play(programs, way, arguments.seconds)
        print(way, json.dumps(seen["ways"][way]), flush=True)
        arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    good = [each for each in seen["ways"].values() if "failed" not in each]
    bits = lambda name: {digest for each in good for digest in each[name]["digests"]}
    return 0 if len(good) == len(seen["ways"]) and len(bits("images")) == len(bits("video")) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
