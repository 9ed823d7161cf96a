# SPDX-License-Identifier: Apache-2.0
"""Clients of a server whose active is killed: each gets the bytes of a run without a fault, on the connection that it has."""

import json
import os
import pathlib
import random
import signal
import socket
import threading
import unittest

from serving.addresses import free_address, listens
from soft_gpu import PATIENCE_S, PROGRAMS, SoftGpuTest
from torch_llm import http_stream
from toy_engine import expected_answer

SERVER = str(pathlib.Path(__file__).parent / "toy_server.py")
NAME = "llm"


class Client(threading.Thread):
    """Reads its whole answer, byte by byte as it comes; `received` grows meanwhile."""

    def __init__(self, port: int, prompt: list[int], count: int, cut: int = 0) -> None:
        super().__init__(daemon=True)
        self.expected = http_stream.answer(expected_answer(prompt, count), True)
        self.received = b""
        self.error: OSError | None = None
        self._cut = cut
        self._connection = socket.create_connection(("127.0.0.1", port))
        body = json.dumps({"prompt": prompt, "max_tokens": count}).encode()
        self._request = b"POST /generate HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        self._connection.sendall(self._request[: len(self._request) - cut])
        self.start()

    def send_rest(self) -> None:
        self._connection.sendall(self._request[len(self._request) - self._cut :])

    def run(self) -> None:
        try:
            while more := self._connection.recv(4096):
                self.received += more
        except OSError as error:
            self.error = error
        self._connection.close()


class ClientsSeeAPause(SoftGpuTest):
    agent_options = ["--supervised", "--lease-s", "1000"]

    def setUp(self) -> None:
        super().setUp()
        root = pathlib.Path(__file__).resolve().parents[4]
        folders = (root / "lab" / "workloads", root / "python", root / "python" / "tests", pathlib.Path(__file__).parent)
        self.environment["PYTHONPATH"] = ":".join(map(str, folders))
        self.address = free_address()
        self.port = int(self.address.rpartition(":")[2])

    def serve(self, pace_ms: int, *options: str) -> None:
        self.run_tenant(NAME, list(options), [SERVER, self.address, str(pace_ms)])

    def until_it_listens(self) -> None:
        self.until("a listening server", lambda: listens(self.address))

    def expect_all(self, clients: list[Client]) -> None:
        for client in clients:
            client.join(120)
            self.assertIsNone(client.error)
            self.assertEqual(client.received, client.expected)

    def test_the_active_is_killed_in_the_middle_of_streams(self) -> None:
        self.serve(30, "--pair")
        first = self.until_protected(NAME)
        self.until_it_listens()
        streaming = [Client(self.port, [7 * n, 1, 2], 40) for n in range(3)]
        # More than there are slots: it waits, and has been accepted.
        waiting = Client(self.port, [5], 10)
        # Half a request, when the one who read it is killed.
        halved = Client(self.port, [6, 6], 5, cut=9)
        self.until("streams", lambda: all(len(client.received) > 200 for client in streaming))
        os.kill(first, signal.SIGKILL)
        meanwhile = Client(self.port, [9, 9, 9], 12)
        second = self.until_protected(NAME, first)
        halved.send_rest()
        os.kill(second, signal.SIGKILL)
        self.until_protected(NAME, second)
        self.expect_all([*streaming, waiting, halved, meanwhile])

    def test_the_gpu_faults_while_the_active_lives_on(self) -> None:
        self.environment["FIREBREAK_ALLOW_INJECTION"] = "1"
        self.serve(30, "--pair")
        first = self.until_protected(NAME)
        self.until_it_listens()
        streaming = [Client(self.port, [3 * n, n], 40) for n in range(3)]
        self.until("streams", lambda: all(len(client.received) > 200 for client in streaming))
        inject = [str(PROGRAMS / "firebreak-lab"), "inject", "trap", "--into", NAME, "--socket", self.socket]
        self.assertEqual(self.start(inject).wait(PATIENCE_S), 0)
        self.until_protected(NAME, first)
        self.expect_all(streaming)

    def hand_over(self) -> None:
        asked = self.start([str(PROGRAMS / "firebreak"), "hand-over", NAME, "--socket", self.socket])
        self.assertEqual(asked.wait(PATIENCE_S), 0)

    def test_it_hands_over_in_the_middle_of_streams_and_comes_back(self) -> None:
        self.serve(30, "--pair")
        first = self.until_protected(NAME)
        self.until_it_listens()
        streaming = [Client(self.port, [5 * n, 1], 60) for n in range(3)]
        self.until("streams", lambda: all(len(client.received) > 200 for client in streaming))
        self.hand_over()
        second = self.until_protected(NAME, first)
        # The first one is its standby, and takes over with all it had.
        os.kill(second, signal.SIGKILL)
        self.assertEqual(self.until_protected(NAME, second), first)
        self.expect_all([*streaming, Client(self.port, [1, 2, 3], 4)])

    def test_it_hands_over_without_a_client(self) -> None:
        self.serve(0, "--pair")
        first = self.until_protected(NAME)
        self.until_it_listens()
        self.expect_all([Client(self.port, [4, 4], 6)])
        self.hand_over()
        self.until_protected(NAME, first)
        self.expect_all([Client(self.port, [9, 4], 6)])

    def test_with_the_agent(self) -> None:
        self.serve(30, "--pair")
        first = self.until_protected(NAME)
        self.until_it_listens()
        streaming = [Client(self.port, [n], 40) for n in range(3)]
        self.until("streams", lambda: all(len(client.received) > 200 for client in streaming))
        self.kill_agent()
        os.kill(first, signal.SIGKILL)
        self.until_protected(NAME, first)
        self.expect_all([*streaming, Client(self.port, [1, 2, 3], 4)])

    def test_both_are_killed_and_who_is_started_anew_goes_on(self) -> None:
        self.serve(30)
        active = self.until_tenant(NAME, lambda now: now["committed_steps"] >= 1)["active"]["pid"]
        self.until_it_listens()
        streaming = [Client(self.port, [n], 30) for n in range(2)]
        self.until("streams", lambda: all(len(client.received) > 200 for client in streaming))
        os.kill(active, signal.SIGKILL)
        self.until_tenant(NAME, lambda now: now["phase"] == "lost")
        meanwhile = Client(self.port, [4], 4)
        self.serve(0)
        self.expect_all([*streaming, meanwhile])

    def test_wherever_it_is_killed(self) -> None:
        """Once at each of some moments by a seed, while clients come and go."""
        seed = int(os.environ.get("FIREBREAK_TEST_SEED", random.randrange(1 << 32)))
        print(f"seed {seed} (replay: FIREBREAK_TEST_SEED={seed})")
        moments = random.Random(seed)
        self.serve(3, "--pair")
        active = self.until_protected(NAME)
        self.until_it_listens()
        clients: list[Client] = []
        for number in range(6):
            wanted = moments.randrange(1, 400)
            clients += [Client(self.port, [number, n], moments.randrange(1, 60)) for n in range(3)]
            some = clients[-3]
            self.until("bytes", lambda: len(some.received) >= min(wanted, len(some.expected)))
            os.kill(active, signal.SIGKILL)
            active = self.until_protected(NAME, active)
        self.expect_all(clients)

    def test_what_is_no_request_is_answered(self) -> None:
        self.serve(0)
        self.until_tenant(NAME, lambda now: now["committed_steps"] >= 1)
        self.until_it_listens()
        for request, said in (
            (b"GET / HTTP/1.1\r\n\r\n", b"only POST /generate"),
            (b"POST /generate HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", b"the body is"),
            (
                b'POST /generate HTTP/1.1\r\nContent-Length: 34\r\n\r\n{"prompt": [1], "max_tokens": 900} ',
                b"a prompt and its answer have 2 to 63 tokens together",
            ),
        ):
            with socket.create_connection(("127.0.0.1", self.port)) as connection:
                connection.sendall(request)
                answer = b""
                while more := connection.recv(4096):
                    answer += more
            self.assertIn(b"400 Bad Request", answer)
            self.assertIn(said, answer)

    def kill_agent(self) -> None:
        """The agent itself, under its supervisor."""
        for folder in pathlib.Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                parent = (folder / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if parent == str(self.agent.pid):
                os.kill(int(folder.name), signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
