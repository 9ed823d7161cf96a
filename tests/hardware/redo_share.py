#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Of the launches that are under way at a random moment in a program: how many may run again, and at how many moments
all of them may. For a machine with a GPU.

    tests/hardware/redo_share.py PROGRAMS OUTPUT.json [--only NAME,...] [--moments 400] [--window-ms 1] [--after 10]
                                 [--seconds 120] [--llama FOLDER] [-- COMMAND]

PROGRAMS: the folder with firebreak-idempotency; the preload is in ../lib. Programs: a language model in Transformers
that answers, the same trained with LoRA (peft), a ResNet in training (timm), llama.cpp (FOLDER: its libraries, as
llama_server.py wants them). What is not installed is told. COMMAND: that program instead. FIREBREAK_GPU=soft: on the
software GPU.

A program is recorded (FIREBREAK_RECORD_LAUNCHES), and after --after seconds its counts are read at random moments. What
was given to the GPU in the window before a moment counts as under way then; where nothing was, what was given last does.
The GPU itself is not asked, so a long kernel behind which the program does not wait counts less than its time.
FIREBREAK_COMMIT says what was built."""
import argparse
import collections
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from launches_of import decide, machine, missing, pair_with_ptx, recording

HERE = pathlib.Path(__file__).resolve().parent
HEADER_WORDS = 3  # of a counts file: launches, those without a line, graphs


# ---- The programs: each works until it is ended ----

def language_model():
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    torch.manual_seed(1)
    return LlamaForCausalLM(LlamaConfig(vocab_size=8000, hidden_size=512, intermediate_size=1408, num_hidden_layers=8,
                                        num_attention_heads=8, max_position_embeddings=1024)).cuda().half()


def answers():
    import torch
    model = language_model().eval()
    words = torch.randint(0, 8000, (4, 64), device="cuda")
    while True:
        model.generate(words, max_new_tokens=64, do_sample=False, pad_token_id=0)


def trains_lora():
    import torch
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(language_model().float(), LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
    optimizer = torch.optim.AdamW((each for each in model.parameters() if each.requires_grad), lr=1e-4)
    words = torch.randint(0, 8000, (4, 128), device="cuda")
    while True:
        optimizer.zero_grad()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()


def trains_resnet():
    import timm
    import torch
    torch.manual_seed(1)
    model = timm.create_model("resnet50", num_classes=100).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    pictures, labels = torch.randn(32, 3, 224, 224, device="cuda"), torch.randint(0, 100, (32,), device="cuda")
    while True:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(pictures), labels).backward()
        optimizer.step()


# By name: what it needs, and what it does.
WORKLOADS = {"transformers": (["torch", "transformers"], answers), "lora": (["torch", "peft"], trains_lora),
             "resnet": (["torch", "timm"], trains_resnet)}


# ---- Moments ----

class Counts:
    """How often each distinct launch has been made so far, in all processes of the program."""
    def __init__(self, recorded):
        self.recorded = recorded
        self.before = {}

    def given_since(self):
        """The launches since the last call: {(process, line): how many}."""
        given = {}
        for path in self.recorded.glob("*/counts"):
            try:
                words = struct.unpack(f"{path.stat().st_size // 8}Q", path.read_bytes())
            except (OSError, struct.error):
                continue
            if len(words) <= HEADER_WORDS:
                continue
            before = self.before.get(path.parent.name, (0,) * len(words))
            self.before[path.parent.name] = words
            if words[0] == before[0]:
                continue
            given.update({(path.parent.name, line): now - then for line, (now, then)
                          in enumerate(zip(words[HEADER_WORDS:], before[HEADER_WORDS:])) if now != then})
        return given


def sample(process, recorded, arguments, end):
    """What was under way at each moment, and at how many of them nothing new had been given."""
    chance = random.Random(1)
    begin = min(time.monotonic() + arguments.after, end)
    while process.poll() is None and time.monotonic() < begin:
        time.sleep(0.05)
    counts, moments, waited, last = Counts(recorded), [], 0, {}
    while process.poll() is None and len(moments) < arguments.moments and time.monotonic() < end:
        last = counts.given_since() or last
        time.sleep(chance.expovariate(1 / 0.02))
        last = counts.given_since() or last
        time.sleep(arguments.window_ms / 1000)
        given = counts.given_since()
        waited += not given
        last = given or last
        if last:
            moments.append(last)
    return moments, waited


def weigh(recorded, moments, weighed):
    """A copy of the recording that says how often each launch was under way, in place of how often it was made."""
    shutil.copytree(recorded, weighed)
    under_way = collections.Counter()
    for moment in moments:
        under_way.update(moment)
    for path in weighed.glob("*/counts"):
        words = [0] * (path.stat().st_size // 8)
        for (process, line), count in under_way.items():
            if process == path.parent.name:
                words[HEADER_WORDS + line] = count
        words[0] = sum(words)
        path.write_bytes(struct.pack(f"{len(words)}Q", *words))


def kernel_names(recorded):
    return {(path.parent.name, line): json.loads(text)["kernel"] for path in recorded.glob("*/launches.jsonl")
            for line, text in enumerate(path.read_text().splitlines()) if text.endswith("}")}


def share_of(decided, moments, names):
    """Kernels whose launches all get one answer say which moments are good as a whole."""
    always = {name for name, answers_ in decided["kernels"].items()
              if all(answer.startswith("idempotent") for answer in answers_)}
    never = {name for name, answers_ in decided["kernels"].items()
             if not any(answer.startswith("idempotent") for answer in answers_)}
    all_may = some_not = 0
    for moment in moments:
        kernels = {names.get(line) for line in moment}
        all_may += kernels <= always
        some_not += bool(kernels & never)
    under_way = decided["all"]["launches"]
    may = decided["verdicts"].get("idempotent", {"launches": 0})["launches"]
    without = sum(each["launches"] for each in decided["without_ptx"].values())
    return {"under_way": under_way, "may_run_again": may, "share": round(may / under_way, 4) if under_way else None,
            "without_ptx": without, "moments_at_which_all_may": all_may, "moments_at_which_one_may_not": some_not}


def measure(programs, command, folder, arguments, end):
    environment, caches = recording(programs, folder)
    recorded = folder / "recorded"
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            process.stdin.close()
            moments, waited = sample(process, recorded, arguments, end)
        finally:
            code = process.poll()
            process.kill()
        said = process.stderr.read()[-500:] if code else ""
    if not moments:
        return {"error": "there was no moment: " + said}
    images = pair_with_ptx(recorded / "images", caches)
    weigh(recorded, moments, folder / "weighed")
    decided = decide(programs, folder / "weighed")
    if "error" in decided:
        return decided
    return {"moments": len(moments), "with_nothing_new": waited, **images,
            **share_of(decided, moments, kernel_names(recorded)), "verdicts": decided["verdicts"],
            "causes": decided["causes"], "without_ptx_by_cause": decided["without_ptx"],
            "graph_launches": decided["graph_launches"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--only", help="names of programs, with commas: " + ", ".join([*WORKLOADS, "llama"]))
    parser.add_argument("--moments", type=int, default=400)
    parser.add_argument("--window-ms", type=float, default=1)
    parser.add_argument("--after", type=float, default=10, help="seconds before the first moment")
    parser.add_argument("--seconds", type=float, default=120, help="for each program")
    parser.add_argument("--llama", type=pathlib.Path)
    own, command = sys.argv[1:], []
    if "--" in own:
        own, command = own[:own.index("--")], own[own.index("--") + 1:]
    return parser.parse_args(own), command


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--workload":
        WORKLOADS[sys.argv[2]][1]()
        return
    arguments, command = parse()
    jobs = {name: [sys.executable, __file__, "--workload", name] for name in WORKLOADS}
    if arguments.llama:
        jobs["llama"] = [sys.executable, str(HERE / "llama_server.py"), str(arguments.llama), "model.gguf", "--gpu",
                         "--bench", str(arguments.seconds)]
    if arguments.only:
        jobs = {name: jobs[name] for name in arguments.only.split(",")}
    if command:
        jobs = {pathlib.Path(command[0]).name: command}
    results = {}
    with tempfile.TemporaryDirectory(prefix="fb-redo-share-") as folder:
        for name, job in jobs.items():
            lacking = missing(WORKLOADS[name][0]) if name in WORKLOADS and not command else []
            if lacking:
                results[name] = {"left_out": "not installed: " + ", ".join(lacking)}
                continue
            own = pathlib.Path(folder) / str(len(results))
            results[name] = measure(arguments.programs.resolve(), job, own, arguments,
                                    time.monotonic() + arguments.seconds)
            shutil.rmtree(own)
            print(name, json.dumps(results[name]), flush=True)
    document = {"what": "launches under way at random moments that may run again", "format": 1, "machine": machine(),
                "command": " ".join(["tests/hardware/redo_share.py", *sys.argv[1:]]),
                "window_ms": arguments.window_ms, "programs": results}
    arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    if not any("moments" in result for result in results.values()):
        sys.exit("no program had a moment")


if __name__ == "__main__":
    main()
