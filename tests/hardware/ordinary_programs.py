#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs as people run them, of libraries as they are. Each does the same round again and again until SIGTERM, and
compares the result with the first one, bit by bit: tests/hardware/survive.py plays them beside faults.

    tests/hardware/ordinary_programs.py NAME

Exit 3 where a result was wrong. With random weights: what is computed matters here, and not what it says."""
import hashlib
import json
import os
import signal
import sys
import time


def digest_of(*tensors):
    import torch
    whole = hashlib.sha1()
    for each in tensors:
        whole.update(each.detach().reshape(-1).contiguous().view(torch.uint8).cpu().numpy().tobytes())
    return whole.hexdigest()


def exact():
    import torch
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.manual_seed(1)
    return torch


def language_model(layers=12):
    from transformers import GPT2Config, GPT2LMHeadModel
    return GPT2LMHeadModel(GPT2Config(n_layer=layers)).cuda().eval()


def transformers():
    torch = exact()
    model = language_model()
    words = torch.randint(0, 50257, (4, 32), device="cuda")
    while True:
        with torch.no_grad():
            yield digest_of(model.generate(words, max_new_tokens=24, do_sample=False, pad_token_id=0))


def rounds_of_training(torch, model, batch, loss_of, steps=4):
    """From the same weights in each round."""
    first = {name: each.clone() for name, each in model.state_dict().items()}
    while True:
        model.load_state_dict(first)
        optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], lr=0.01)
        losses = []
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of(model, batch())
            loss.backward()
            optimizer.step()
            losses.append(loss)
        yield digest_of(*losses)


def lora():
    torch = exact()
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(language_model(6), LoraConfig(r=8, target_modules=["c_attn"], lora_dropout=0.0))
    words = torch.randint(0, 50257, (4, 64), device="cuda")
    return rounds_of_training(torch, model, lambda: words, lambda its, batch: its(batch, labels=batch).loss)


class Pictures:
    def __len__(self):
        return 64

    def __getitem__(self, number):
        import torch
        return torch.full((3, 96, 96), number / 64.0), number % 10


def resnet():
    """With two workers that load its batches."""
    torch = exact()
    import timm
    model = timm.create_model("resnet18", num_classes=10).cuda()
    loader = torch.utils.data.DataLoader(Pictures(), batch_size=64, num_workers=2, persistent_workers=True)

    def batch():
        pictures, labels = next(iter(loader))
        return pictures.cuda(), labels.cuda()

    loss_of = lambda its, batch: torch.nn.functional.cross_entropy(its(batch[0]), batch[1])
    return rounds_of_training(torch, model, batch, loss_of)


def mixed_precision():
    torch = exact()
    model = torch.nn.Sequential(*[torch.nn.Sequential(torch.nn.Linear(2048, 2048), torch.nn.GELU()) for _ in range(8)]).cuda()
    batch = torch.randn(256, 2048, device="cuda")

    def loss_of(its, given):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return its(given).float().pow(2).mean()

    return rounds_of_training(torch, model, lambda: batch, loss_of)


def vision_transformer():
    torch = exact()
    import timm
    model = timm.create_model("vit_base_patch16_224").cuda().eval()
    pictures = torch.randn(16, 3, 224, 224, device="cuda")
    while True:
        with torch.no_grad():
            yield digest_of(model(pictures))


def compiled():
    torch = exact()
    model = torch.compile(language_model(4), mode="reduce-overhead")
    words = torch.randint(0, 50257, (4, 64), device="cuda")
    while True:
        with torch.no_grad():
            yield digest_of(model(words).logits)


def nccl():
    torch = exact()
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    torch.distributed.init_process_group("nccl", rank=0, world_size=1)
    words = torch.arange(1 << 20, device="cuda", dtype=torch.float32)
    while True:
        whole = words * 2
        torch.distributed.all_reduce(whole)
        yield digest_of(whole)


def events():
    torch = exact()
    a = torch.randn(2048, 2048, device="cuda")
    while True:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        b = a @ a
        end.record()
        end.synchronize()
        if not 0 < begin.elapsed_time(end) < 60_000:
            raise ValueError(f"a time of {begin.elapsed_time(end)} ms")
        yield digest_of(b)


def jax_training():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp
    weights = [jax.random.normal(jax.random.PRNGKey(each), (1024, 1024)) / 32 for each in range(4)]
    batch = jax.random.normal(jax.random.PRNGKey(9), (256, 1024))

    def loss_of(its, given):
        for each in its:
            given = jnp.tanh(given @ each)
        return (given ** 2).mean()

    step = jax.jit(lambda its: [each - 0.1 * slope for each, slope in zip(its, jax.grad(loss_of)(its, batch))])
    while True:
        its = weights
        for _ in range(4):
            its = step(its)
        yield hashlib.sha1(b"".join(jax.device_get(each).tobytes() for each in its)).hexdigest()


def solver():
    import cupy
    matrix = cupy.random.RandomState(1).standard_normal((512, 512)) + 512 * cupy.eye(512)
    while True:
        yield hashlib.sha1(cupy.linalg.solve(matrix, cupy.ones(512)).get().tobytes()).hexdigest()


PROGRAMS = {each.__name__: each for each in (transformers, lora, resnet, mixed_precision, vision_transformer, compiled,
                                             nccl, events, jax_training, solver)}


def main():
    is_over = []
    signal.signal(signal.SIGTERM, lambda *_: is_over.append(True))
    first, rounds, wrong, longest_s = None, 0, 0, 0.0
    began = time.monotonic()
    for digest in PROGRAMS[sys.argv[1]]():
        now = time.monotonic()
        if rounds > 3:  # the first ones compile and allocate
            longest_s = max(longest_s, now - began)
        began = now
        first = first or digest
        wrong += digest != first
        rounds += 1
        if is_over:
            break
    print(json.dumps({"program": sys.argv[1], "rounds": rounds, "wrong": wrong, "longest_round_s": round(longest_s, 3)}),
          flush=True)
    os._exit(3 if wrong else 0)  # workers and threads of libraries may be in anything


if __name__ == "__main__":
    main()
