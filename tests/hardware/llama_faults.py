#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's server (llama_server.py), which knows nothing of Firebreak, under `firebreak run` while neighbours'
kernels raise exceptions beside it, and clients that ask all the time. Then what Firebreak costs it where nobody faults:
tokens per second without Firebreak, with all that `firebreak run` gives, and with `--without guard,spare,parking`, in
turns. Before both: whether its answers are the same with several clients at a time, in each of these three ways. For a
machine with a GPU, root and MPS.

    tests/hardware/llama_faults.py BIN RESULT.json --libraries FOLDER [--faults N] [--kinds KIND,...] [--rounds N]
                                   [--without PART,...] [--parts answers,faults,bench] [--servers N] [--limit-s S]

BIN: the folder with the programs. FOLDER: llama.cpp's libraries (llama_server.py says which). --without: parts that the
server is not to have. FIREBREAK_GPU=soft: without a GPU, llama.cpp on the CPU, and a checker leaves its domain in its
place. Each answer is compared, to the token and to a checksum of all its logits, with that of a process that ran before
without Firebreak, alone. A pause is the longest time between two words of one client's answers around a fault. Exit 1
where a request failed, an answer differed, the server did not leave or ended, or a measurement is missing. Nothing
waits for longer than --limit-s and half a minute; ends everything that it started."""
import argparse
import hashlib
import http.client
import json
import os
import pathlib
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

from spare_faults import HERE, KINDS, Stage, machine, percentile, raise_fault

CLIENTS, PROMPTS, AROUND_A_FAULT_S, ENDING_S = 4, 8, 2, 20
WAYS = {"without_firebreak": None, "firebreak_run": [], "run_without_parts": ["--without", "guard,spare,parking"]}
PARTS = ("answers", "faults", "bench")
SOFT = os.environ.get("FIREBREAK_GPU", "real") == "soft"


def prompt(number):
    return f"Question {number}: " + "what is it that the neighbours of a program see when it faults? " * 2


class BoundedStage(Stage):
    """What it started ends, by its number, when the time is over; and nothing is started after that."""

    def __init__(self, programs, folder, more, end_s):
        super().__init__(programs, folder, True, True)
        self.environment.update(more)
        self.plainly = {key: value for key, value in self.environment.items() if not key.startswith("FIREBREAK_")}
        self.started, self.end_s = [], end_s
        self.watchdog = threading.Timer(max(1.0, self.left_s()), self.end_started, (1,))
        self.watchdog.daemon = True
        self.watchdog.start()

    def left_s(self):
        return self.end_s - time.monotonic()

    def start_it(self, name, command, environment, more):
        if self.left_s() <= 0:
            raise TimeoutError("the time is over")
        with open(f"{self.folder}.{name}.said", "wb") as errors:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True,
                                       start_new_session=True, **more)
        self.started.append(process)
        return process

    def run(self, name, command, *options, **more):
        own = [self.programs + "/firebreak", "run", "--name", name, *options, "--", *command]
        return self.start_it(name, own, self.environment, more)

    def run_plainly(self, name, command, **more):
        return self.start_it(name, command, self.plainly, more)

    def end_started(self, patience_s):
        for process in self.started:
            end(process, patience_s)

    def end_all(self):
        self.watchdog.cancel()
        self.end_started(5)
        self.agent.terminate()
        try:
            self.agent.wait(ENDING_S)
        except subprocess.TimeoutExpired:
            self.agent.kill()
            self.agent.wait(5)

    def errors_said(self):
        """The last lines that each of them wrote to its standard error."""
        names = sorted(pathlib.Path(self.folder).parent.glob("*.said"))
        return {path.suffixes[-2][1:]: path.read_text(errors="replace").splitlines()[-12:] for path in names}


def end(process, patience_s):
    """A process that leads a session of its own, and who is in it: before its number is given back."""
    if process.returncode is not None:
        return
    process.terminate()
    until = time.monotonic() + patience_s
    ended = lambda: os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
    try:
        while not ended() and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(5)
    except (ChildProcessError, ProcessLookupError, PermissionError, subprocess.TimeoutExpired):
        pass  # somebody else has waited for it, or it cannot be ended now


def ready_line(process, limit_s):
    """What a server says once it works, or None."""
    if not select.select([process.stdout], [], [], max(0, limit_s))[0]:
        return None
    try:
        return json.loads(process.stdout.readline())
    except ValueError:
        return None


def difference(text, words, expected):
    """Where an answer leaves the expected one, first in any logit and then in a word; None: in none."""
    first = lambda differ: next((at for at, both in enumerate(zip(words, expected)) if differ(*both)), None)
    return {"prompt": text[:12], "seen_ns": time.monotonic_ns(), "logits_from": first(lambda a, b: a != b),
            "words_from": first(lambda a, b: a[0] != b[0]), "checksum": zlib.crc32(json.dumps(words).encode())}


class Client(threading.Thread):
    def __init__(self, port, number, expected, stop):
        super().__init__(daemon=True)
        self.port, self.number, self.expected, self.stop = port, number, expected, stop
        self.requests, self.words, self.wrong, self.errors, self.gaps = 0, 0, [], [], []

    def ask(self, text, count):
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=45)
        before = time.monotonic_ns()
        words = []
        try:
            link.request("POST", "/", json.dumps({"prompt": text, "count": count, "stream": True}))
            for line in link.getresponse():
                now = time.monotonic_ns()
                self.gaps.append((before, (now - before) / 1e6))
                before = now
                words.append([int(each) for each in line.split()])
        finally:
            if len(words) != count:
                self.gaps.append((before, (time.monotonic_ns() - before) / 1e6))
            link.close()
        if len(words) != count:
            raise ValueError(f"{len(words)} of {count} words")
        return words

    def run(self):
        texts = sorted(self.expected)
        while not self.stop.is_set() and len(self.errors) < 5:
            text = texts[(self.number + self.requests) % len(texts)]
            self.requests += 1
            try:
                words = self.ask(text, len(self.expected[text]))
                self.words += len(words)
                if words != self.expected[text]:
                    self.wrong.append(difference(text, words, self.expected[text]))
            except (OSError, ValueError, http.client.HTTPException) as wrong:
                self.errors.append(repr(wrong)[:200])
                time.sleep(0.2)


def near(fault, began_ns, gap_ms):
    return began_ns + gap_ms * 1e6 > fault.get("raised_ns", 1 << 63) > began_ns - AROUND_A_FAULT_S * 1e9


def pauses_of(faults, clients):
    """For each fault what each client saw; and what they saw without one."""
    all_pauses = []
    for fault in faults:
        if "raised_ns" not in fault:
            continue
        fault["pause_ms"] = [round(max((ms for began, ms in client.gaps if near(fault, began, ms)), default=0), 1)
                             for client in clients]
        all_pauses += fault["pause_ms"]
    others = [ms for client in clients for began, ms in client.gaps
              if not any(near(fault, began, ms) for fault in faults)]
    figures = lambda values: {"p50": percentile(values, 0.5), "p99": percentile(values, 0.99),
                              "most": max(values, default=None)}
    return figures(all_pauses), {key: value and round(value, 2) for key, value in figures(others).items()}


def expected_answers(stage, server, folder):
    """Of a process of its own, without Firebreak."""
    asked = pathlib.Path(folder, "prompts.json")
    asked.write_text(json.dumps([prompt(number) for number in range(PROMPTS)]), encoding="utf-8")
    process = stage.run_plainly("alone", server + ["--answers", str(asked)])
    said = process.communicate(timeout=max(1, min(60, stage.left_s())))[0].splitlines()
    if process.returncode != 0 or len(said) != 2:
        raise RuntimeError(f"the server without Firebreak ended with {process.returncode} and said {said[:1]}")
    return json.loads(said[0]), json.loads(said[1])


def of_tenants(status, names):
    return {each["name"]: {"spare": each["spare"], "guard": each["guard"], "active": each["active"]}
            for each in (status or {"tenants": []})["tenants"] if each["name"] in names}


def play_faults(stage, server, expected, arguments, seen):
    """One server after the other, where one was lost."""
    seen["servers"], faults = [], 0
    while len(seen["servers"]) < arguments.servers and faults < arguments.faults and stage.left_s() > 40:
        one, stage.tenants = {}, {}
        seen["servers"].append(one)
        one["good"] = play_server(stage, server, expected, arguments, faults, one)
        faults += len(one.get("rows", []))
        stage.wait(lambda status: all(each["parking"]["state"] == "ready" for each in status["domains"]), 30)
    rows = [row for one in seen["servers"] for row in one.get("rows", []) if "raised_ns" in row]
    seen["faults"], seen["left"] = len(rows), sum(1 for row in rows if row["left"] == 1)
    seen["ended"] = [one.get("server_exit") for one in seen["servers"] if one.get("server_exit") is not None]
    return all(one["good"] for one in seen["servers"]) and faults > 0


def play_server(stage, server, expected, arguments, before, seen):
    options = ["--without", arguments.without] if arguments.without else []
    name = f"llama{before}"
    process = stage.run(name, server + ["--serve", "0", "--slots", str(CLIENTS)], *options)
    seen["server"] = ready_line(process, min(60, stage.left_s()))
    if not seen["server"]:
        end(process, 3)
        raise RuntimeError(f"the server under firebreak run says nothing, exit {process.poll()}")
    if SOFT:
        seen["checker"] = stage.start("small")
    else:
        stage.tenants[name] = process
    seen["ready"] = stage.wait(stage.is_ready, min(40, stage.left_s())) is not None
    seen["at_the_start"] = of_tenants(stage.status(), stage.tenants)
    stop, kinds = threading.Event(), arguments.kinds.split(",")
    clients = [Client(seen["server"]["port"], number, expected, stop) for number in range(CLIENTS)]
    seen["rows"] = faults = []
    reserved_s = arguments.rounds * len(WAYS) * (arguments.seconds + 5) if "bench" in arguments.parts else 0
    try:
        for client in clients:
            client.start()
        time.sleep(arguments.before_s)
        while seen["ready"] and before + len(faults) < arguments.faults and stage.left_s() > reserved_s + 12:
            number = before + len(faults)
            faults.append(raise_fault(stage, number, kinds[number % len(kinds)]))
            had = sum(each.requests for each in clients)
            time.sleep(arguments.between_s)
            faults[-1]["requests_after"] = sum(each.requests for each in clients) - had
            faults[-1]["errors_by_then"] = sum(len(each.errors) for each in clients)
            print(json.dumps({key: value for key, value in faults[-1].items() if key not in ("status", "held")}),
                  flush=True)
            if not faults[-1]["ready"] or process.poll() is not None:
                break
        time.sleep(AROUND_A_FAULT_S)
        stage.wait(stage.is_ready, 10)
    except OSError as wrong:  # of a rogue that was ended since the time was over
        seen["error"] = repr(wrong)
    finally:
        seen["at_the_end"] = of_tenants(stage.status(), stage.tenants)
        seen["server_exit"] = process.poll()
        stop.set()
        for client in clients:
            client.join(10)
        end(process, 5)
        seen["requests"] = sum(each.requests for each in clients)
        seen["words"] = sum(each.words for each in clients)
        wrong_ones = sorted((wrong for each in clients for wrong in each.wrong), key=lambda wrong: wrong["seen_ns"])
        seen["wrong_answers"], seen["first_wrong_ones"] = len(wrong_ones), wrong_ones[:20]
        seen["errors"] = [wrong for each in clients for wrong in each.errors]
        seen["moves"] = {name: (its["spare"] or {}).get("moves") for name, its in seen["at_the_end"].items()}
        seen["pause_ms"], seen["gap_without_a_fault_ms"] = pauses_of(faults, clients)
    left = [row.get("left") == len(stage.tenants) for row in faults]
    return (seen["ready"] and len(faults) > 0 and all(left) and all(row["ready"] for row in faults)
            and not seen["errors"] and not seen["wrong_answers"] and seen["server_exit"] is None)


def measure(stage, server, name, way, seconds):
    command = server + ["--bench", str(seconds)]
    begin = time.monotonic()
    process = (stage.run_plainly(name, command, stdin=subprocess.PIPE) if WAYS[way] is None
               else stage.run(name, command, *WAYS[way], stdin=subprocess.PIPE))
    row = {"way": way}
    try:
        said = ready_line(process, min(30, stage.left_s() - ENDING_S))
        row["ready_after_s"] = round(time.monotonic() - begin, 2)
        if not said:
            return {**row, "error": "not ready"}
        if way == "firebreak_run" and not SOFT:
            protected = stage.wait(lambda status: any(
                each["name"] == name and each.get("spare") and each["spare"]["state"] == "protected"
                for each in status["tenants"]), 10)
            row["is_protected"] = protected is not None
            row.update(of_tenants(stage.status(), [name]).get(name, {}))
        time.sleep(0.3)
        said = process.communicate("go\n", timeout=seconds + 10)[0].splitlines()
        row.update(json.loads(said[-1]))
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as wrong:
        row["error"] = repr(wrong)[:200]
    finally:
        end(process, 3)
        row["wall_s"] = round(time.monotonic() - begin, 1)
    return row


def answers_of(stage, server, name, way, number_of_clients, expected, seconds):
    """Without a fault: how many answers differ from those of the process alone, with one client or with several at a
    time."""
    command = server + ["--serve", "0", "--slots", str(number_of_clients)]
    process = (stage.run_plainly(name, command) if WAYS[way] is None else stage.run(name, command, *WAYS[way]))
    row = {"way": way, "clients": number_of_clients}
    stop = threading.Event()
    try:
        said = ready_line(process, min(30, stage.left_s()))
        if not said:
            return {**row, "error": "not ready"}
        clients = [Client(said["port"], number, expected, stop) for number in range(number_of_clients)]
        for client in clients:
            client.start()
        time.sleep(seconds)
        stop.set()
        for client in clients:
            client.join(10)
        wrong_ones = [wrong for each in clients for wrong in each.wrong]
        row.update({"requests": sum(each.requests for each in clients), "wrong_answers": len(wrong_ones),
                    "first_wrong_ones": wrong_ones[:4], "errors": [wrong for each in clients for wrong in each.errors]})
    finally:
        stop.set()
        end(process, 3)
    return row


def play_answers(stage, server, expected, arguments, seen):
    seen["rows"] = rows = []
    for way in WAYS:
        for clients in (1, CLIENTS):
            rows.append(answers_of(stage, server, f"answers{len(rows)}", way, clients, expected, arguments.seconds))
            print(json.dumps(rows[-1]), flush=True)
    return all(row.get("wrong_answers") == 0 and not row["errors"] for row in rows)


def play_bench(stage, server, arguments, seen):
    """In turns, each time in another order."""
    seen["rows"] = rows = []
    for number in range(arguments.rounds):
        order = list(WAYS)[number % len(WAYS):] + list(WAYS)[:number % len(WAYS)]
        for way in order:
            longest_s = max((row["wall_s"] for row in rows), default=15)
            if stage.left_s() < longest_s + 3:
                continue
            rows.append({"round": number, **measure(stage, server, f"bench{number}{way[:4]}", way, arguments.seconds)})
            print(json.dumps({key: value for key, value in rows[-1].items()
                              if key not in ("spare", "guard", "active")}), flush=True)
    speeds = {way: [row["tokens_a_second"] for row in rows if row["way"] == way and "tokens_a_second" in row]
              for way in WAYS}
    seen["tokens_a_second"] = {way: {"median": statistics.median(its), "least": min(its), "most": max(its)}
                               for way, its in speeds.items() if its}
    plain = seen["tokens_a_second"].get("without_firebreak")
    if plain:
        seen["share_of_without_firebreak"] = {way: round(its["median"] / plain["median"], 4)
                                              for way, its in seen["tokens_a_second"].items()}
    return all(len(its) == arguments.rounds for its in speeds.values()) and all(
        row.get("is_protected", True) for row in rows)


def described(libraries):
    its = {}
    for path in sorted(libraries.glob("lib*")):
        if path.name.startswith(("libllama", "libggml-cuda", "libggml.")):
            its[path.name] = {"bytes": path.stat().st_size, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    return its


def play_part(part, stage, server, expected, arguments, seen):
    """What goes wrong in one of them does not keep the next from its turn."""
    try:
        if part == "answers":
            return play_answers(stage, server, expected, arguments, seen)
        if part == "bench":
            return play_bench(stage, server, arguments, seen)
        return play_faults(stage, server, expected, arguments, seen)
    except Exception:
        seen["error"] = traceback.format_exc().splitlines()[-8:]
        return False


def play(arguments, seen, end_s):
    seen["good"], server = {}, [sys.executable, str(HERE / "llama_server.py"), str(arguments.libraries.resolve())]
    with tempfile.TemporaryDirectory(prefix="fb-ll-") as folder:
        server += [folder + "/model.gguf", "--layers", str(arguments.layers), "--width", str(arguments.width),
                   "--tokens", str(arguments.tokens)] + ([] if SOFT else ["--gpu"])
        more = {"CUDA_CACHE_PATH": folder + "/cache", "CUDA_CACHE_MAXSIZE": str(1 << 32), "GGML_NO_BACKTRACE": "1"}
        stage = BoundedStage(str(arguments.programs.resolve()), folder + "/d", more, end_s)
        try:
            seen["domains_ready"] = stage.wait(lambda status: all(
                each["parking"]["state"] == "ready" for each in status["domains"]), min(40, stage.left_s())) is not None
            seen["alone"], expected = expected_answers(stage, server, folder)
            for part in arguments.parts.split(","):
                seen["good"][part] = play_part(part, stage, server, expected, arguments, seen.setdefault(part, {}))
        except Exception:  # whatever it is: what was seen until then is written
            seen["error"] = traceback.format_exc().splitlines()[-8:]
        finally:
            stage.end_all()
            seen["agent_exit"] = stage.agent.poll()
            log = pathlib.Path(stage.log).read_text(errors="replace").splitlines()
            said = stage.errors_said()
    if arguments.log:
        arguments.log.write_text("\n".join(log) + "\n")
    good = "error" not in seen and all(seen["good"].get(part) for part in arguments.parts.split(","))
    if not good:
        seen["log"], seen["said"] = log[-100:], said
    return good


def command_line(output):
    """With the folder's own place left out."""
    words = sys.argv[3:]
    for number, word in enumerate(words[:-1]):
        if word == "--libraries":
            words[number + 1] = "FOLDER"
    return " ".join(["tests/hardware/llama_faults.py", "BIN", output.name, *words])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--libraries", type=pathlib.Path, required=True)
    parser.add_argument("--faults", type=int, default=12)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1 if SOFT else 4, help="of each measurement")
    parser.add_argument("--servers", type=int, default=1, help="so many at most, one after the other where one is lost")
    parser.add_argument("--between-s", type=float, default=2, help="with clients, after each fault")
    parser.add_argument("--before-s", type=float, default=4, help="with clients, before the first fault")
    parser.add_argument("--without", default="", help="parts that the server is not to have: guard, for one")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--limit-s", type=float, default=175, help="the time in all, but for the end")
    parser.add_argument("--tokens", type=int, default=24 if SOFT else 96, help="of each answer")
    parser.add_argument("--layers", type=int, default=2 if SOFT else 12)
    parser.add_argument("--width", type=int, default=256 if SOFT else 1024)
    parser.add_argument("--log", type=pathlib.Path, help="keeps the agent's log there")
    arguments = parser.parse_args()
    if not set(arguments.parts.split(",")) <= set(PARTS):
        parser.error("parts are " + " and ".join(PARTS))
    begin = time.monotonic()
    seen = {"what": "tests/hardware/llama_faults.py", "format": 1,
            "machine": machine(str(arguments.programs.resolve())), "command": command_line(arguments.output),
            "libraries": described(arguments.libraries),
            "model": {"layers": arguments.layers, "width": arguments.width, "clients": CLIENTS,
                      "words_each": arguments.tokens}}
    good = play(arguments, seen, begin + arguments.limit_s)
    seen["wall_s"] = round(time.monotonic() - begin, 1)
    arguments.output.write_text(json.dumps(seen, indent=1) + "\n")
    print(json.dumps({"good": seen["good"], "wall_s": seen["wall_s"], "error": seen.get("error"),
                      **{part: {key: value for key, value in seen.get(part, {}).items() if key != "rows"}
                         for part in PARTS}}, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
