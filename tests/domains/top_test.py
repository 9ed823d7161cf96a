# SPDX-License-Identifier: Apache-2.0
"""firebreak top in a pseudo-terminal, beside a real agent on the software GPU."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest
from typing import Any

from soft_gpu import PATIENCE_S, PROGRAMS, SoftGpuTest

BEGINS = "\x1b[?1049h\x1b[?25l"
RESTORES = "\x1b[?25h\x1b[?1049l"
COLUMNS, ROWS = 120, 20


class Top(SoftGpuTest):
    def setUp(self) -> None:
        super().setUp()
        self.outer, self.inner = os.openpty()
        self.addCleanup(os.close, self.outer)
        self.addCleanup(os.close, self.inner)
        fcntl.ioctl(self.inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before: list[Any] = termios.tcgetattr(self.inner)
        self.text = ""

    def start_top(self) -> None:
        def take_terminal() -> None:
            fcntl.ioctl(self.inner, termios.TIOCSCTTY, 0)

        command = [str(PROGRAMS / "firebreak"), "top", "--socket", self.socket, "--interval-s", "0.1"]
        self.top = subprocess.Popen(command, env=self.environment, stdin=self.inner, stdout=self.inner,
                                    stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=take_terminal)
        self.addCleanup(self.end, self.top)

    def read(self) -> None:
        while select.select([self.outer], [], [], 0.05)[0]:
            self.text += os.read(self.outer, 65536).decode()

    def until_picture(self, pattern: str) -> str:
        """The last whole picture, once it has that."""
        def has_it() -> bool:
            self.read()
            return re.search(pattern, self.picture()) is not None

        self.until(pattern, has_it)
        return self.picture()

    def picture(self) -> str:
        pictures = [each for each in self.text.split("\x1b[H") if each.endswith("\x1b[J")]
        plain = pictures[-1].replace("\x1b[K", "").replace("\x1b[J", "") if pictures else ""
        return plain.replace("\r\r\n", "\r\n")  # the terminal makes two of a line's end, too

    def expect_restored(self, status: int) -> str:
        """What it said besides."""
        deadline = time.monotonic() + PATIENCE_S
        while self.top.poll() is None:  # it writes until it ends
            self.read()
            self.assertLess(time.monotonic(), deadline)
        self.read()
        self.assertEqual(self.top.returncode, status)
        self.assertTrue(self.text.startswith(BEGINS), self.text[:40])
        self.assertTrue(self.text.endswith(RESTORES), self.text[-40:])
        self.assertEqual(self.text.count(RESTORES), 1)
        self.assertEqual(termios.tcgetattr(self.inner), self.before)
        assert self.top.stderr is not None
        return self.top.stderr.read()

    def test_tenants_and_faults_are_seen_as_they_happen(self) -> None:
        self.start_top()
        first = self.until_picture(r"\na +serving ")
        self.assertIn("faults: 0\r\n", first)
        self.assertNotIn("llm", first)
        self.start([str(PROGRAMS / "firebreak"), "run", "--pair", "--socket", self.socket, "--name", "llm", "--",
                    str(PROGRAMS / "firebreak-decode"), "--steps", "100000", "--output", str(self.folder / "tokens"),
                    "--pace-ms", "20"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        working = self.until_picture(r"\nllm +serving +ready .* \d+ +[1-9]\d*\.\d")
        for line in working.split("\r\n"):
            self.assertLessEqual(len(line), COLUMNS)
        names = subprocess.run([str(PROGRAMS / "firebreak"), "status", "--names", "--socket", self.socket],
                               env=self.environment, timeout=PATIENCE_S, check=True, capture_output=True, text=True)
        self.assertEqual(names.stdout, "llm\n")
        command = [str(PROGRAMS / "firebreak"), "run", "--socket", self.socket, "--name", "rogue", "--",
                   str(PROGRAMS / "firebreak-lab"), "inject", "misaligned-load"]
        subprocess.run(command, env=self.environment, timeout=PATIENCE_S, check=False, capture_output=True)
        self.until_picture(r"faults: 1 \(1 failed_over\)")
        self.top.send_signal(signal.SIGTERM)
        self.assertEqual(self.expect_restored(0), "")

    def test_control_c_gives_the_terminal_back(self) -> None:
        self.start_top()
        self.until_picture("DOMAIN")
        os.write(self.outer, b"\x03")
        said = self.expect_restored_after_echo()
        self.assertEqual(said, "")

    def expect_restored_after_echo(self) -> str:
        def ended() -> bool:
            self.read()
            return self.top.poll() is not None

        self.until("its end", ended)
        self.text = self.text.replace("^C", "")  # the terminal's own word
        return self.expect_restored(0)

    def test_an_agent_that_goes_gives_the_terminal_back(self) -> None:
        self.start_top()
        self.until_picture("DOMAIN")
        self.end(self.agent)
        said = self.expect_restored(1)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertTrue(said.startswith("firebreak: "), said)

    def test_a_file_is_no_terminal(self) -> None:
        done = subprocess.run([str(PROGRAMS / "firebreak"), "top", "--socket", self.socket], env=self.environment,
                              capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr, "firebreak: standard output is no terminal (firebreak status prints once)\n")


if __name__ == "__main__":
    unittest.main()
