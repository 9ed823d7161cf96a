# SPDX-License-Identifier: Apache-2.0
"""What tests of pictures on the software GPU have in common."""

import pathlib
import struct
import threading
import zlib

from serving.addresses import free_address, listens
from soft_gpu import PATIENCE_S, PROGRAMS, SoftGpuTest
from torch_diffusion import ask

FOLDER = pathlib.Path(__file__).resolve().parents[1]
ROOT = FOLDER.parents[2]
NAME = "pictures"
# Of the server's weights; a picture with the same seed is one that firebreak-denoise draws.
SEED = 7


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
        self.address = free_address()

    def serve(
        self, *options: str, name: str = NAME, address: str = "", pace_ms: int = 20, seed: int = SEED
    ) -> None:
        server = ["-m", "torch_diffusion.main", "--listen", address or self.address, "--seed", str(seed)]
        self.run_tenant(name, list(options), [*server, "--pace-ms", str(pace_ms)])
        self.until("a listening server", lambda: listens(address or self.address))

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
        address = free_address()
        self.serve(name="undisturbed", address=address, pace_ms=0)
        return [Client(address, each).all_lines() for each in wanted]

    def inject(self) -> None:
        command = [str(PROGRAMS / "firebreak-lab"), "inject", "trap", "--into", NAME, "--socket", self.socket]
        self.assertEqual(self.start(command).wait(PATIENCE_S), 0)
