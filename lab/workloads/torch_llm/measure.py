# SPDX-License-Identifier: Apache-2.0
"""What a fault costs the server's clients, by four ways of going on; and what Firebreak costs without one. For a machine with
a GPU, MPS and PyTorch 2.5: python3 -m torch_llm.measure BIN RESULT.json (--help). Every server runs under one agent's MPS.

  cold      the process is started again; its weights are in a file that the page cache has
  asleep    a process that is up, with its weights in pinned host memory, is woken and copies them
  reattach  the process is started again, and finds weights and cache in the vault
  standby   Firebreak's: its weights and cache are mapped
  small     the same with a few of the multiprocessors (--sm-percent); it goes on, and hands over to a full standby

In the first two the clients' connections break and the cache is lost: clients ask again, with what they have of their answer.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import queue
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, Any

from serving.addresses import free_address
from serving.machine import machine, of_gpu
from torch_llm.client import StreamClient

MODES = ("cold", "asleep", "reattach", "standby", "small")
PATIENCE_S = 240.0
Said = dict[str, Any]


class Process:
    """`firebreak run` with a server in it, and what that said."""

    def __init__(self, command: list[str], log: IO[str], begins_on_input: bool) -> None:
        self.said: list[Said] = []
        self._new: queue.Queue[Said] = queue.Queue()
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True,
            stdin=subprocess.PIPE if begins_on_input else subprocess.DEVNULL,
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._new.put(json.loads(line))

    def until(self, what: str) -> Said:
        """The first line of that kind, said or still to be said."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for line in self.said:
                if line["what"] == what:
                    return line
            try:
                self.said.append(self._new.get(timeout=0.2))
            except queue.Empty:
                if self._process.poll() is not None and self._new.empty():
                    raise RuntimeError(f"a server ended before it said '{what}': {self.said[-1:]}") from None
                if time.monotonic() > deadline:
                    raise TimeoutError(f"nobody said '{what}'") from None

    @property
    def pid(self) -> int:
        return int(self.until("started")["pid"])

    def begin(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write("now\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        self._process.wait(PATIENCE_S)

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


class Bench:
    """One size: its servers are started and ended here."""

    def __init__(self, options: argparse.Namespace, size: str, folder: pathlib.Path, log: IO[str]) -> None:
        self._options, self._size, self._log = options, size, log
        self._weights = str(folder / f"{size}.weights")
        self._started: list[Process] = []
        self._tenants: set[str] = set()
        self._names = 0
        self.address = ""

    def new_name(self) -> str:
        self._names += 1
        self.address = free_address()
        return f"llm-{self._size.replace('.', '-')}-{self._names}"

    def start(self, name: str, *more: str, run: tuple[str, ...] = ()) -> Process:
        command = [f"{self._options.bin}/firebreak", "run", "--name", name, *run, "--"]
        command += [sys.executable, "-m", "torch_llm.main", "--size", self._size, "--listen", self.address]
        command += ["--slots", str(self._options.clients), "--context", str(self._options.context)]
        command += ["--weights-file", self._weights, *more]
        command += ["--fault", "trap" if self._options.fault == "kill" else self._options.fault]
        process = Process(command, self._log, "--asleep" in more)
        self._started.append(process)
        self._tenants.add(name)
        return process

    def clients(self) -> list[StreamClient]:
        options = self._options
        made = [
            StreamClient(self.address, [(17 * n + 3 * at) % 50_000 for at in range(options.prompt)], options.answer)
            for n in range(options.clients)
        ]
        for client in made:
            client.start()
        return made

    @property
    def sm_percent(self) -> int:
        return int(self._options.sm_percent)

    def ask(self, what: str, name: str) -> None:
        """A command about a tenant; that it was refused shows in what follows."""
        subprocess.run([f"{self._options.bin}/firebreak", what, name], stdout=self._log, stderr=self._log, timeout=60, check=False)

    def until_all_domains_serve(self) -> None:
        """After a fault: nobody gets into a domain that drains."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            asked = subprocess.run(
                [f"{self._options.bin}/firebreak", "status", "--json"], capture_output=True, text=True, timeout=60, check=True
            )
            if all(each["state"] == "serving" for each in json.loads(asked.stdout)["domains"]):
                return
            time.sleep(0.02)
        raise TimeoutError("a domain does not serve again")

    def end_all(self) -> None:
        """As tenants, so that their memory is released at once."""
        for name in self._tenants:
            self.ask("stop", name)
        self._tenants.clear()
        for process in self._started:
            process.end()
        self._started.clear()


def gpu_mib() -> int:
    return int(of_gpu("memory.used") or 0)


def tokens_per_second(clients: list[StreamClient]) -> float:
    """While all are served: from the last one's first token to the first one's last."""
    begin, end = max(each.times_ns[0] for each in clients), min(each.times_ns[-1] for each in clients)
    count = sum(begin <= at <= end for each in clients for at in each.times_ns)
    return count / ((end - begin) / 1e9)


def without_fault(bench: Bench, is_tenant: bool, runs: int) -> tuple[list[float], list[list[int]]]:
    name = bench.new_name()
    server = bench.start(name, *(() if is_tenant else ("--alone",)))
    server.until("serving")
    if is_tenant:
        bench.start(name, run=("--standby",)).until("ready")
    rates, tokens = [], []
    for _ in range(runs):
        clients = bench.clients()
        for client in clients:
            client.join()
        rates.append(tokens_per_second(clients))
        tokens = [client.tokens for client in clients]
    bench.end_all()
    return rates, tokens


def with_fault(bench: Bench, mode: str, fault: str, wanted: list[list[int]]) -> dict[str, Any]:
    name = bench.new_name()
    alone = ("--alone",) if mode in ("cold", "asleep") else ()
    active = bench.start(name, *alone)
    active.until("serving")
    before_mib = gpu_mib()
    spare: Process | None = None
    if mode in ("standby", "small"):
        few = ("--sm-percent", str(bench.sm_percent)) if mode == "small" else ()
        spare = bench.start(name, run=("--standby", *few))
        spare.until("ready")
    elif mode == "asleep":
        spare = bench.start(f"{name}-spare", "--asleep")
        spare.until("asleep")
    spare_mib = gpu_mib() - before_mib
    clients = bench.clients()
    while any(len(client.tokens) < len(wanted[0]) // 3 for client in clients):
        time.sleep(0.005)
    fault_at = raise_fault(active, fault)
    if mode == "asleep":
        active.wait()
        assert spare is not None
        spare.begin()
    elif spare is None:
        active.wait()
        spare = bench.start(name if mode == "reattach" else f"{name}-next", *alone)
    assert spare is not None
    first_kernel = spare.until("first kernel")
    handed_over = hand_over(bench, name, clients) if mode == "small" else {}
    for client in clients:
        client.join()
    until_ns = handed_over.pop("asked_at_ns", max(client.times_ns[-1] for client in clients))
    result = {
        "mode": mode, "fault": fault, "spare_mib": spare_mib,
        "first_kernel_ms": (first_kernel["at_ns"] - fault_at) / 1e6,
        "promoted_ms": (first_kernel["promoted_at_ns"] - fault_at) / 1e6 if first_kernel.get("promoted_at_ns") else None,
        **seen_by(clients, fault_at, until_ns, wanted), **handed_over,
    }
    bench.end_all()
    return result


def hand_over(bench: Bench, name: str, clients: list[StreamClient]) -> dict[str, Any]:
    """From the small standby, which serves now, to a full one that is started beside it. The rest of the streams' time is the
    full one's."""
    bench.until_all_domains_serve()
    began_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    full = bench.start(name, run=("--standby",))
    full.until("ready")
    asked_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    tokens_left = min(client.tokens_left for client in clients)
    bench.ask("hand-over", name)
    there_ns = int(full.until("serving")["at_ns"])
    for client in clients:
        client.join()
    pauses = [gap for client in clients for gap, _ in gaps_of(client, asked_ns, there_ns + 1_000_000_000)]
    small = sum(began_ns < at < asked_ns for client in clients for at in client.times_ns)
    return {
        "asked_at_ns": asked_ns,
        "full_standby_ready_after_ms": (asked_ns - began_ns) / 1e6,
        "tokens_per_second_small": small / ((asked_ns - began_ns) / 1e9),
        "hand_over_ms": (there_ns - asked_ns) / 1e6,
        "hand_over_longest_pause_ms": max(pauses, default=0) / 1e6,
        "tokens_left_at_hand_over": tokens_left,
    }


def raise_fault(active: Process, fault: str) -> int:
    if fault == "kill":
        at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.kill(active.pid, signal.SIGKILL)
        return at
    os.kill(active.pid, signal.SIGUSR2)
    return int(active.until("fault raised")["at_ns"])


def gaps_of(client: StreamClient, after_ns: int, until_ns: int) -> list[tuple[int, int]]:
    """Between two tokens, and when the later one came, where that was in the given time; nanoseconds."""
    return [
        (later - earlier, later)
        for earlier, later in zip(client.times_ns, client.times_ns[1:])
        if after_ns < later <= until_ns
    ]


def seen_by(clients: list[StreamClient], fault_at: int, until_ns: int, wanted: list[list[int]]) -> dict[str, Any]:
    """The first token after the longest pause of each client, up to `until_ns`: what was computed before the fault may still
    arrive after it."""
    resumed, pauses = [], []
    for client in clients:
        longest, at = max(gaps_of(client, fault_at, until_ns))
        pauses.append(longest / 1e6)
        resumed.append((at - fault_at) / 1e6)
    return {
        "first_new_token_ms": min(resumed),
        "last_clients_first_new_token_ms": max(resumed),
        "longest_pause_ms": max(pauses),
        "tokens_lost": sum(len(want) - len(client.tokens) for client, want in zip(clients, wanted)),
        "tokens_recomputed": sum(client.asked_again_tokens for client in clients),
        "broken_connections": sum(client.failures > 0 for client in clients),
        "identical": all(client.tokens == want for client, want in zip(clients, wanted)),
    }


def measure(options: argparse.Namespace, size: str, folder: pathlib.Path, log: IO[str]) -> dict[str, Any]:
    bench = Bench(options, size, folder, log)
    found: dict[str, Any] = {"size": size, "faults": []}
    try:
        rates, wanted = without_fault(bench, False, options.runs)
        found["tokens_per_second_alone"] = rates
        rates, tokens = without_fault(bench, True, options.runs)
        found["tokens_per_second_with_firebreak"] = rates
        found["identical_without_fault"] = tokens == wanted
        ratio = statistics.median(rates) / statistics.median(found["tokens_per_second_alone"])
        found["throughput_ratio"] = ratio
        print(json.dumps(found), flush=True)
        for mode in options.modes.split(","):
            for _ in range(options.runs):
                one = with_fault(bench, mode, options.fault, wanted)
                found["faults"].append(one)
                print(json.dumps({"size": size, **one}), flush=True)
    except (RuntimeError, TimeoutError) as error:
        found["failed"] = str(error)
        print(json.dumps({"size": size, "failed": str(error)}), flush=True)
    finally:
        bench.end_all()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="torch_llm.measure")
    parser.add_argument("bin", help="the folder with firebreak and firebreakd")
    parser.add_argument("result")
    parser.add_argument("--sizes", default="0.5b")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--fault", choices=("trap", "misaligned", "kill"), default="trap")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--prompt", type=int, default=64, help="tokens of each")
    parser.add_argument("--answer", type=int, default=300, help="tokens of each")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--sm-percent", type=int, default=10, help="of the small standby")
    options = parser.parse_args()
    told = {name: value for name, value in vars(options).items() if name not in ("bin", "result")}  # no paths of this machine
    command = [f"--{name}={value}" for name, value in told.items() if value != parser.get_default(name)]
    options.bin = str(pathlib.Path(options.bin).resolve())
    document = {
        "what": "lab/workloads/torch_llm/measure.py", "format": 1, "machine": machine(options.bin),
        "command": shlex.join(["python3", "-m", "torch_llm.measure", "BIN", "RESULT.json", *command]), "options": told,
    }
    # Not /dev/shm: the weights are to be read as files are.
    with tempfile.TemporaryDirectory(prefix="fbm", dir="/tmp") as name:
        folder = pathlib.Path(name)
        os.environ["FIREBREAK_SOCKET"] = f"{name}/d/agent.sock"
        os.environ.setdefault("FIREBREAK_LIBRARY_DIR", str(pathlib.Path(options.bin).parent / "lib"))
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        with open(options.result + ".log", "w", encoding="utf-8") as log:
            agent = subprocess.Popen([f"{options.bin}/firebreakd", "--end-domains", "--directory", f"{name}/d"], stdout=log, stderr=log)
            try:
                wait_for_agent(options.bin)
                results = [measure(options, size, folder, log) for size in options.sizes.split(",")]
            finally:
                agent.terminate()
                agent.wait()
    pathlib.Path(options.result).write_text(json.dumps(document | {"sizes": results}, indent=1) + "\n", encoding="utf-8")
    return 1 if any("failed" in each for each in results) else 0


def wait_for_agent(programs: str) -> None:
    deadline = time.monotonic() + 60
    while subprocess.run([f"{programs}/firebreak", "status"], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:
            raise TimeoutError("no agent")
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
