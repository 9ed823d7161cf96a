# SPDX-License-Identifier: Apache-2.0
"""Pictures on the software GPU, whose server faults, is killed or hands over: they are firebreak-denoise's, bit for bit, and
what its clients read is what a run without a fault says."""

import os
import pathlib
import random
import shlex
import signal
import socket
import struct
import subprocess
import threading
import unittest
import zlib

from soft_gpu import PATIENCE_S, PROGRAMS, SoftGpuTest
from torch_diffusion import ask

FOLDER = pathlib.Path(__file__).resolve().parents[1]
ROOT = FOLDER.parents[2]
NAME = "pictures"
# Of the server's weights; a picture with the same seed is one that firebreak-denoise draws.
SEED = 7


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def pixels_of(png: bytes) -> bytes:
    found, at = b"", 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        if png[at + 4 : at + 8] == b"IDAT":
            found += png[at + 8 : at + 8 + size]
        at += 12 + size
    rows = zlib.decompress(found)
    return b"".join(rows[at + 1 : at + 97] for at in range(0, len(rows), 97))


class Client(threading.Thread):
    """`lines` grows as they come."""

    def __init__(self, address: str, wanted: dict[str, object]) -> None:
        super().__init__(daemon=True)
        self.lines: list[str] = []
        self.error: Exception | None = None
        self._address, self._wanted = address, wanted
        self.start()

    def run(self) -> None:
        try:
            for line in ask.lines_of(self._address, self._wanted):
                self.lines.append(line)
        except Exception as error:
            self.error = error

    def all_lines(self) -> list[str]:
        """Without the number of the request, which depends on who else asked."""
        self.join(PATIENCE_S)
        if self.error is not None:
            raise self.error
        first, *steps, last = self.lines
        return [first.partition(": ")[2], *steps, last.rpartition(" ")[2]]


class PicturesTest(SoftGpuTest):
    agent_options = ["--lease-s", "1000"]

    def setUp(self) -> None:
        super().setUp()
        self.environment["PYTHONPATH"] = f"{ROOT / 'lab' / 'workloads'}:{ROOT / 'python'}"
        self.environment["FIREBREAK_ALLOW_INJECTION"] = "1"
        self.address = f"127.0.0.1:{free_port()}"

    def serve(
        self, *options: str, name: str = NAME, address: str = "", pace_ms: int = 20, seed: int = SEED
    ) -> None:
        server = ["-m", "torch_diffusion.main", "--listen", address or self.address, "--seed", str(seed)]
        self.run_tenant(name, list(options), [*server, "--pace-ms", str(pace_ms)])
        self.until("a listening server", lambda: self.listens(address or self.address))

    def listens(self, address: str) -> bool:
        host, _, port = address.rpartition(":")
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    def until_protected(self, other_than: int = 0) -> int:
        now = self.until_tenant(
            NAME,
            lambda now: now["phase"] == "serving"
            and now["standby_state"] == "ready"
            and now["active"]["pid"] != other_than,
        )
        return int(now["active"]["pid"])

    def drawn_by_denoise(self, steps: int) -> bytes:
        """The pixels of the picture with the server's own seed."""
        file = self.folder / "picture.ppm"
        program = [str(PROGRAMS / "firebreak-denoise"), "--seed", str(SEED), "--steps", str(steps), "--output", str(file)]
        command = [str(PROGRAMS / "firebreak"), "run", "--socket", self.socket, "--name", "reference", "--", *program]
        self.assertEqual(self.start(command).wait(PATIENCE_S), 0)
        return file.read_bytes()[-3 * 32 * 32 :]

    def picture(self, client: Client) -> bytes:
        client.all_lines()
        return pixels_of(ask.get(self.address, client.lines[-1].split(" ")[1]))

    def without_a_fault(self, wanted: list[dict[str, object]]) -> list[list[str]]:
        """What a server of its own says."""
        address = f"127.0.0.1:{free_port()}"
        self.serve(name="undisturbed", address=address, pace_ms=0)
        return [Client(address, each).all_lines() for each in wanted]

    def inject(self) -> None:
        command = [str(PROGRAMS / "firebreak-lab"), "inject", "trap", "--into", NAME, "--socket", self.socket]
        self.assertEqual(self.start(command).wait(PATIENCE_S), 0)


class AnyEnd(PicturesTest):
    def test_a_neighbour_faults_in_the_middle(self) -> None:
        wanted: list[dict[str, object]] = [
            {"seed": SEED},
            {"seed": 2, "shape": "video"},
            {"seed": 3, "shape": "large", "steps": 2},
        ]
        self.serve("--pair")
        first = self.until_protected()
        clients = [Client(self.address, each) for each in wanted]
        self.until("steps", lambda: len(clients[0].lines) > 5)
        self.inject()
        self.until_protected(first)
        self.assertEqual([client.all_lines() for client in clients], self.without_a_fault(wanted))
        self.assertEqual(len(clients[2].lines), 2 + 10 + 1 + 2 * 16)
        self.assertEqual(self.picture(clients[0]), self.drawn_by_denoise(20))

    def test_the_active_is_killed_wherever_it_is(self) -> None:
        seed = int(os.environ.get("FIREBREAK_TEST_SEED", random.randrange(1 << 32)))
        print(f"seed {seed} (replay: FIREBREAK_TEST_SEED={seed})")
        chance = random.Random(seed)
        self.serve("--pair", pace_ms=3)
        active = self.until_protected()
        wanted: list[dict[str, object]] = []
        clients: list[Client] = []
        for _ in range(2):
            new = [{"seed": chance.randrange(99), "shape": chance.choice(["picture", "video", "large"])} for _ in range(3)]
            wanted += new
            clients += [Client(self.address, each) for each in new]
            lines = chance.randrange(1, 15)
            some = clients[-1]
            self.until("lines", lambda: len(some.lines) >= lines)
            os.kill(active, signal.SIGKILL)
            active = self.until_protected(active)
        self.assertEqual([client.all_lines() for client in clients], self.without_a_fault(wanted))

    def test_it_hands_over_and_comes_back(self) -> None:
        self.serve("--pair")
        first = self.until_protected()
        client = Client(self.address, {"seed": SEED})
        self.until("steps", lambda: len(client.lines) > 5)
        asked = self.start([str(PROGRAMS / "firebreak"), "hand-over", NAME, "--socket", self.socket])
        self.assertEqual(asked.wait(PATIENCE_S), 0)
        os.kill(self.until_protected(first), signal.SIGKILL)
        self.assertEqual(self.picture(client), self.drawn_by_denoise(20))


class InTurns(PicturesTest):
    agent_options = ["--turns", "deadline"]

    def test_two_servers_share_the_gpu(self) -> None:
        other = f"127.0.0.1:{free_port()}"
        self.serve("--class", "live", pace_ms=5)
        self.serve("--class", "batch", name="videos", address=other, pace_ms=5)
        for refused, said in (({"seed": -1}, "400: a seed is"), ({"seed": 1, "shape": "x" * 5000}, "413: a body has")):
            with self.assertRaisesRegex(RuntimeError, said):
                Client(self.address, refused).all_lines()
        with self.assertRaisesRegex(RuntimeError, "404: there is no picture 3"):
            ask.get(self.address, "/pictures/3.png")
        wanted: dict[str, object] = {"seed": SEED, "deadline_ms": 1000}
        patient: dict[str, object] = {"seed": SEED, "shape": "video", "deadline_ms": 600_000}
        videos, pictures = [Client(other, patient)], []
        for _ in range(3):
            pictures.append(Client(self.address, wanted))
            videos.append(Client(other, patient))
        self.assertEqual(len({tuple(client.all_lines()) for client in pictures}), 1)
        self.assertEqual(len({tuple(client.all_lines()) for client in videos}), 1)
        self.assertEqual(self.picture(pictures[0]), self.drawn_by_denoise(20))


class TwoCommands(PicturesTest):
    def test_the_readme_is_true(self) -> None:
        text = (FOLDER / "README.md").read_text()
        commands = [line.strip() for line in text.splitlines() if line.startswith("    python3 ")]
        self.assertEqual(len(commands), 2)
        file = self.folder / "picture.png"
        words = [
            shlex.split(
                line.replace("127.0.0.1:8000", self.address)
                .replace("build/release/bin", str(PROGRAMS))
                .replace("picture.png", str(file))
            )
            for line in commands
        ]
        demo = self.start(words[0], cwd=ROOT, stdout=subprocess.PIPE)
        assert demo.stdout is not None
        self.assertIn(f"serves at http://{self.address}/ and has a standby", demo.stdout.readline())
        said = subprocess.run(
            words[1], cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_S, check=True
        )
        self.assertIn("step 20 of 20", said.stdout)
        self.assertRegex(demo.stdout.readline(), "request 1 has 1[0-9] of 20 steps: its neighbour raises a fault")
        self.assertRegex(demo.stdout.readline(), "process [0-9]+ has ended, process [0-9]+ goes on")
        demo.send_signal(signal.SIGINT)
        self.assertEqual(demo.wait(PATIENCE_S), 0)
        self.serve(name="undisturbed", pace_ms=0, seed=1)
        undisturbed = Client(self.address, {"seed": 7})
        self.assertEqual(said.stdout.splitlines()[1:-1], undisturbed.all_lines()[1:-1])
        self.assertEqual(file.read_bytes(), ask.get(self.address, undisturbed.lines[-1].split(" ")[1]))


if __name__ == "__main__":
    unittest.main()
