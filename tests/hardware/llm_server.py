#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A language model's server in plain PyTorch, which knows nothing of Firebreak, and its clients over HTTP, while
neighbours' kernels raise exceptions beside it. Each client compares each answer with the one that it got first. For a
machine with a GPU, root and MPS.

    tests/hardware/llm_server.py BIN RESULT.json [--faults N] [--kinds KIND,...]
    tests/hardware/llm_server.py --serve PORT      the server alone

BIN: the folder with the programs. Exit 1 where a request failed, an answer differed, or the server did not leave. Ends
everything that it started."""
import argparse
import http.client
import http.server
import json
import pathlib
import queue
import sys
import tempfile
import threading
import time

LAYERS, WIDTH, HEADS, WORDS, LONGEST, TOKENS, CLIENTS, PROMPTS = 12, 1024, 16, 8192, 160, 96, 4, 8


def make_model():
    import torch

    torch.manual_seed(7)
    linear = lambda a, b: torch.nn.Linear(a, b, bias=False, device="cuda", dtype=torch.float16)
    words = torch.nn.Embedding(WORDS, WIDTH, device="cuda", dtype=torch.float16)
    places = torch.nn.Embedding(LONGEST, WIDTH, device="cuda", dtype=torch.float16)
    layers = [(linear(WIDTH, 3 * WIDTH), linear(WIDTH, WIDTH), linear(WIDTH, 4 * WIDTH), linear(4 * WIDTH, WIDTH))
              for _ in range(LAYERS)]
    norm = lambda x: torch.nn.functional.layer_norm(x, (WIDTH,))

    @torch.no_grad()
    def generate(prompt, count):
        """One word after the other, with what was computed for those before it."""
        cache = [torch.zeros(2, HEADS, LONGEST, WIDTH // HEADS, device="cuda", dtype=torch.float16)
                 for _ in range(LAYERS)]
        at, given = 0, torch.tensor(prompt, device="cuda")
        for _ in range(count):
            span = torch.arange(at, at + len(given), device="cuda")
            x = words(given) + places(span)
            mask = (torch.arange(LONGEST, device="cuda")[None, :] <= span[:, None])[None]
            for (qkv, out, wide, narrow), kept in zip(layers, cache):
                q, k, v = (each.view(len(given), HEADS, -1).transpose(0, 1) for each in qkv(norm(x)).chunk(3, -1))
                kept[0, :, at:at + len(given)], kept[1, :, at:at + len(given)] = k, v
                seen = torch.nn.functional.scaled_dot_product_attention(q, kept[0], kept[1], attn_mask=mask)
                x = x + out(seen.transpose(0, 1).reshape(len(given), WIDTH))
                x = x + narrow(torch.nn.functional.gelu(wide(norm(x))))
            at += len(given)
            given = (norm(x[-1:]) @ words.weight.T).argmax(-1)
            yield int(given)

    return generate


def serve(port):
    generate = make_model()
    asked_for = queue.Queue()

    def work():
        """One word for each request in turn."""
        running = []
        while True:
            while not running or not asked_for.empty():
                running.append(asked_for.get())
            for each in list(running):
                word = next(each[0], None)
                each[1].put(word)
                if word is None:
                    running.remove(each)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.end_headers()
            words = queue.Queue()
            asked_for.put((generate(asked["prompt"], asked["count"]), words))
            for word in iter(words.get, None):
                self.wfile.write(f"{word}\n".encode())
                self.wfile.flush()

        def log_message(self, *_):
            pass

    list(generate([1, 2, 3], 4))
    threading.Thread(target=work, daemon=True).start()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("working", flush=True)
    server.serve_forever()


class Client(threading.Thread):
    def __init__(self, port, number, stop):
        super().__init__(daemon=True)
        self.port, self.number, self.stop = port, number, stop
        self.first, self.answers, self.other, self.errors, self.gaps = {}, 0, 0, [], []

    def ask(self, prompt):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        link.request("POST", "/", json.dumps({"prompt": prompt, "count": TOKENS}))
        answer = link.getresponse()
        words, before = [], time.monotonic_ns()
        for line in answer:
            now = time.monotonic_ns()
            if now - before > 30e6:
                self.gaps.append((before, (now - before) / 1e6))
            before = now
            words.append(int(line))
        link.close()
        if len(words) != TOKENS:
            raise ValueError(f"{len(words)} of {TOKENS} words")
        return words

    def run(self):
        turn = self.number
        while not self.stop.is_set():
            prompt = [(turn % PROMPTS) * 97 + word * 31 % WORDS for word in range(20)]
            turn += 1
            try:
                words = self.ask(prompt)
            except (OSError, ValueError, http.client.HTTPException) as wrong:
                self.errors.append(repr(wrong)[:200])
                if len(self.errors) > 3:
                    return
                continue
            self.answers += 1
            self.other += self.first.setdefault(prompt[0], words) != words


def play(arguments):
    import spare_faults

    kinds = (arguments.kinds or spare_faults.KINDS).split(",")
    with tempfile.TemporaryDirectory(prefix="fb-llm-") as folder:
        stage = spare_faults.Stage(str(arguments.programs.resolve()), folder + "/d", True)
        stop, faults, clients = threading.Event(), [], []
        try:
            stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 40)
            process = stage.run("llm", [sys.executable, str(pathlib.Path(__file__).resolve()), "--serve", "8321"],
                                "--spare")
            said = process.stdout.readline().strip()
            stage.tenants["llm"] = process
            stage.wait(stage.is_ready, 60)
            clients = [Client(8321, number, stop) for number in range(CLIENTS)]
            for client in clients:
                client.start()
            time.sleep(8)
            for number in range(arguments.faults):
                faults.append(spare_faults.raise_fault(stage, number, kinds[number % len(kinds)]))
                if not faults[-1]["ready"] or process.poll() is not None:
                    break
            time.sleep(3)
            stop.set()
            for client in clients:
                client.join(60)
        finally:
            stage.agent.terminate()
            for each in stage.tenants.values():
                each.kill()
            stage.agent.wait(20)
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()
    for row in faults:
        row.pop("status", None)
        if "raised_ns" in row:
            row["longest_gap_ms"] = round(max((ms for client in clients for began, ms in client.gaps
                                               if began + ms * 1e6 > row["raised_ns"] > began - 1e9), default=0), 1)
    gaps = sorted(row["longest_gap_ms"] for row in faults if "longest_gap_ms" in row)
    seen = {"what": "tests/hardware/llm_server.py", "machine": spare_faults.machine(str(arguments.programs.resolve())),
            "command": " ".join(["tests/hardware/llm_server.py", "BIN", arguments.output.name] + sys.argv[3:]),
            "said": said, "model": {"layers": LAYERS, "width": WIDTH, "words": WORDS}, "clients": CLIENTS,
            "answers": sum(each.answers for each in clients), "words_each": TOKENS,
            "other_answers": sum(each.other for each in clients),
            "errors": [wrong for each in clients for wrong in each.errors],
            "longest_gap_ms": {"p50": spare_faults.percentile(gaps, 0.5), "most": max(gaps, default=None)},
            "gaps_without_a_fault_ms": sorted(round(ms, 1) for each in clients for began, ms in each.gaps if not any(
                began + ms * 1e6 > row.get("raised_ns", 0) > began - 1e9 for row in faults))[-5:],
            "faults": faults}
    good = (not seen["errors"] and not seen["other_answers"] and len(faults) == arguments.faults
            and all(row["ready"] and row.get("left") == 1 for row in faults))
    if not good:
        seen["log"] = log[-80:]
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({key: value for key, value in seen.items() if key not in ("faults", "log")}))
    return 0 if good else 1


def main():
    if sys.argv[1] == "--serve":
        return serve(int(sys.argv[2]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--faults", type=int, default=12)
    parser.add_argument("--kinds", help="of faults, one after the other; default: those of spare_faults.py")
    return play(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())
