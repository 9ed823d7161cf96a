# SPDX-License-Identifier: Apache-2.0
"""The README's two commands; two servers that take turns; and what bad requests get."""

import shlex
import signal
import subprocess
import unittest

from pictures import FOLDER, ROOT, SEED, Client, PicturesTest
from serving.addresses import free_address
from soft_gpu import PATIENCE_S, PROGRAMS
from torch_diffusion import ask


class InTurns(PicturesTest):
    agent_options = ["--turns", "deadline"]

    def test_two_servers_share_the_gpu(self) -> None:
        other = free_address()
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
