# SPDX-License-Identifier: Apache-2.0
"""Requests, answers, pictures and the page as bytes; and the forward state."""

import html.parser
import json
import struct
import unittest
import zlib

from serving import http
from torch_diffusion import asked, page
from torch_diffusion.asked import Look, Wanted
from torch_diffusion.forward import Forward, Slot
from torch_diffusion.picture import Picture
from torch_diffusion.shapes import SD35_MEDIUM, SHAPES, WAN_1_3B

NAMES = ["512", "480p"]


def post(body: bytes) -> bytes:
    return b"POST /pictures HTTP/1.1\r\nHost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


class Requests(unittest.TestCase):
    def test_a_request_is_read_once_it_is_all_there(self) -> None:
        whole = post(b'{"seed": 7, "shape": "480p", "steps": 3, "deadline_ms": 1.5}')
        for length in range(len(whole)):
            self.assertIsNone(asked.parse(whole[:length], NAMES))
        self.assertEqual(asked.parse(whole + b"more", NAMES), Wanted(7, "480p", 3, 1.5))
        self.assertEqual(asked.parse(post(b'{"seed": 0}'), NAMES), Wanted(0, "512"))
        for path, look in (("/", Look(as_page=True)), ("/queue", Look()), ("/pictures/12.png", Look(12))):
            self.assertEqual(asked.parse(f"GET {path} HTTP/1.1\r\n\r\n".encode(), NAMES), look)

    def test_what_is_no_request_is_refused_with_the_reason(self) -> None:
        for received, status, why in (
            (b"x" * 9000, 400, "too long"),
            (b"nonsense\r\n\r\n", 400, "no HTTP/1.1"),
            (b"GET /pictures HTTP/1.1\r\n\r\n", 400, "only POST /pictures"),
            (b"GET /pictures/0.png HTTP/1.1\r\n\r\n", 400, "only POST /pictures"),
            (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}", 400, "only POST /pictures"),
            (b"POST /pictures HTTP/1.1\r\n\r\n", 400, "Content-Length is needed"),
            (b"POST /pictures HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400, "bad Content-Length"),
            (b"POST /pictures HTTP/1.1\r\nContent-Length: 4097\r\n\r\n", 413, "at most 4096 bytes"),
            (post(b"[" * 4000), 400, "the body is JSON"),
            (post(b"\xff"), 400, "the body is JSON"),
            (post(b"[7]"), 400, 'has "seed"'),
            (post(b'{"steps": 7}'), 400, 'has "seed"'),
            (post(b'{"seed": 7, "sead": 8}'), 400, 'has "seed"'),
            (post(b'{"seed": true}'), 400, "a seed is"),
            (post(b'{"seed": -1}'), 400, "a seed is"),
            (post(b'{"seed": 9223372036854775808}'), 400, "a seed is"),
            (post(b'{"seed": 1, "shape": "720p"}'), 400, "one of 512, 480p"),
            (post(b'{"seed": 1, "shape": ["512"]}'), 400, "one of 512, 480p"),
            (post(b'{"seed": 1, "steps": 0}'), 400, "from 1 to 1000"),
            (post(b'{"seed": 1, "steps": 1001}'), 400, "from 1 to 1000"),
            (post(b'{"seed": 1, "steps": 2.0}'), 400, "from 1 to 1000"),
            (post(b'{"seed": 1, "deadline_ms": "now"}'), 400, "a deadline is"),
            (post(b'{"seed": 1, "deadline_ms": NaN}'), 400, "a deadline is"),
        ):
            with self.assertRaises(http.BadRequestError, msg=received[:80]) as found:
                asked.parse(received, NAMES)
            self.assertEqual(found.exception.status, status, received[:80])
            self.assertIn(why, str(found.exception))
            answer = found.exception.answer()
            self.assertTrue(answer.startswith(b"HTTP/1.1 %d " % status))
            self.assertIn(why.encode(), answer.partition(b"\r\n\r\n")[2])

    def test_a_deadline_that_no_clock_has_is_one(self) -> None:
        for given, read in (("Infinity", 1e15), ("-Infinity", -1e15), ("1e999", 1e15), ("9" * 400, 1e15), ("-5", -5.0)):
            wanted = asked.parse(post(b'{"seed": 1, "deadline_ms": %s}' % given.encode()), NAMES)
            self.assertEqual(wanted, Wanted(1, "512", None, read))

    def test_an_answer_grows_and_never_changes(self) -> None:
        slot = Slot(9, 1, 7, steps=3, done=3)
        whole = asked.answer(slot, "512", 3, b"png")
        for done in range(4):
            self.assertTrue(whole.startswith(asked.answer(slot, "512", done, None)))
        lines = [line for line in whole.partition(b"\r\n\r\n")[2].split(b"\r\n")[1::2] if line]
        self.assertEqual(lines[0], b"request 9: 512, seed 7, 3 steps\n")
        self.assertEqual(lines[1:4], [b"step 1 of 3\n", b"step 2 of 3\n", b"step 3 of 3\n"])
        self.assertRegex(lines[4], rb"^picture /pictures/9.png sha256 [0-9a-f]{64}\n$")


def chunks_of(png: bytes) -> list[tuple[bytes, bytes]]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    found, at = [], 8
    while at < len(png):
        (size,) = struct.unpack_from(">I", png, at)
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", png, at + 8 + size)[0] == zlib.crc32(kind + content)
        found.append((kind, content))
        at += 12 + size
    return found


class Pictures(unittest.TestCase):
    FRAME = bytes(range(2 * 3 * 3))

    def test_a_picture_has_its_pixels(self) -> None:
        found = dict(chunks_of(Picture(2, 3, [self.FRAME]).png()))
        self.assertEqual(list(found), [b"IHDR", b"IDAT", b"IEND"])
        self.assertEqual(struct.unpack(">II", found[b"IHDR"][:8]), (2, 3))
        rows = zlib.decompress(found[b"IDAT"])
        self.assertEqual(b"".join(rows[at + 1 : at + 7] for at in range(0, len(rows), 7)), self.FRAME)

    def test_a_video_has_its_frames_in_order(self) -> None:
        found = chunks_of(Picture(2, 3, [self.FRAME, self.FRAME[::-1], self.FRAME]).png())
        kinds = [kind for kind, _ in found]
        self.assertEqual(kinds, [b"IHDR", b"acTL", b"fcTL", b"IDAT", *[b"fcTL", b"fdAT"] * 2, b"IEND"])
        numbers = [struct.unpack(">I", content[:4])[0] for kind, content in found if kind in (b"fcTL", b"fdAT")]
        self.assertEqual(numbers, [0, 1, 2, 3, 4])
        self.assertEqual(zlib.decompress(found[5][1][4:])[1:7], self.FRAME[::-1][:6])


class Page(unittest.TestCase):
    SLOTS = [Slot(4, 0, 8, 0, 0, 1, 2, 2), Slot(5, 3, 9, 0, 2_500_000_000, 0, 20, 7), Slot()]

    def test_who_is_there(self) -> None:
        found = page.queue(self.SLOTS, NAMES, 1_000_000_000, {"going": True, "waited": 3})
        self.assertEqual(
            json.loads(page.as_json(found)),
            {
                "waiting": [{"number": 5, "shape": "512", "seed": 9, "done": 7, "steps": 20, "deadline_in_ms": 1500}],
                "pictures": [
                    {
                        "number": 4, "shape": "480p", "seed": 8, "done": 2, "steps": 2, "deadline_in_ms": None,
                        "path": "/pictures/4.png",
                    }
                ],
                "turns": {"going": True, "waited": 3},
            },
        )

    def test_people_see_the_same(self) -> None:
        found = page.queue(self.SLOTS, NAMES, 1_000_000_000, {"going": True, "waited": 3})
        cells, images = [], []

        class Reader(html.parser.HTMLParser):
            def handle_data(self, data: str) -> None:
                cells.append(data)

            def handle_starttag(self, tag: str, attributes: list[tuple[str, "str | None"]]) -> None:
                images.extend(value for name, value in attributes if tag == "img" and name == "src")

        Reader().feed(page.as_page(found, "a <b> title").decode())
        self.assertEqual([cell for cell in ("5", "9", "7 of 20", "1.5 s", "a <b> title") if cell not in cells], [])
        self.assertEqual(images, ["/pictures/4.png"])


class ForwardState(unittest.TestCase):
    def test_changes_are_all_there_is(self) -> None:
        forward = Forward(3, 7)
        shadow = bytearray(forward.state())
        for number in range(1, 6):
            index = forward.admit(Slot(0, number, 5, 1, 2, 0, 2))
            assert index is not None
            forward.advance([index])
            if number % 2:
                forward.advance([index])
            forward.let_go(index)
            for offset, content in forward.take_changes():
                shadow[offset : offset + len(content)] = content
            self.assertEqual(bytes(shadow), forward.state())
            successor = Forward(3, 7)
            successor.restore(bytes(shadow))
            self.assertEqual(successor.slots, forward.slots)
        self.assertEqual(forward.take_changes(), [])
        # Whoever is given up has no picture; of the others the oldest has gone.
        self.assertEqual(sorted(slot.number for slot in forward.slots if slot.is_picture), [3, 5])

    def test_the_state_of_another_server_is_refused(self) -> None:
        for other in (Forward(3, 8), Forward(4, 7)):
            with self.assertRaisesRegex(ValueError, "other options"):
                other.restore(Forward(3, 7).state())


class Shapes(unittest.TestCase):
    def test_they_are_the_published_ones(self) -> None:
        self.assertEqual((SD35_MEDIUM.layers, SD35_MEDIUM.hidden, WAN_1_3B.layers, WAN_1_3B.hidden), (24, 1536, 30, 1536))
        tokens = {name: SHAPES[name].tokens for name in ("512", "1024", "480p")}
        self.assertEqual(tokens, {"512": 1024, "1024": 4096, "480p": 14040})


if __name__ == "__main__":
    unittest.main()
