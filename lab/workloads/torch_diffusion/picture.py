# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos as PNG, which a browser shows; a video is an animated one. Pure: the same frames give the same bytes."""

from __future__ import annotations

import dataclasses
import struct
import zlib
from collections.abc import Iterator, Sequence

_FRAMES_PER_S = 16


@dataclasses.dataclass(frozen=True)
class Picture:
    """Each frame has three bytes a pixel, row by row."""

    width: int
    height: int
    frames: Sequence[bytes]

    def png(self) -> bytes:
        return b"\x89PNG\r\n\x1a\n" + b"".join(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        yield _chunk(b"IHDR", struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0))
        if len(self.frames) > 1:
            yield _chunk(b"acTL", struct.pack(">II", len(self.frames), 0))
        number = 0
        for index, frame in enumerate(self.frames):
            if len(self.frames) > 1:
                control = struct.pack(">IIIIIHHBB", number, self.width, self.height, 0, 0, 1, _FRAMES_PER_S, 0, 0)
                yield _chunk(b"fcTL", control)
                number += 1
            row_bytes = 3 * self.width
            # A row begins with its filter: none.
            rows = b"".join(b"\0" + frame[at : at + row_bytes] for at in range(0, len(frame), row_bytes))
            packed = zlib.compress(rows, 6)
            if index == 0:
                yield _chunk(b"IDAT", packed)
            else:
                yield _chunk(b"fdAT", struct.pack(">I", number) + packed)
                number += 1
        yield _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
