# SPDX-License-Identifier: Apache-2.0
"""The queue as JSON, and as a page for people. Pure."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

from torch_diffusion import asked
from torch_diffusion.forward import Slot

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><meta http-equiv="refresh" content="1">
<style>body{{font:16px/1.5 system-ui;margin:2rem auto;max-width:60rem}}td,th{{padding:.2rem 1rem .2rem 0;text-align:left}}
figure{{display:inline-block;margin:1rem 1rem 0 0}}img{{min-width:8rem;image-rendering:pixelated}}</style></head><body>
<h1>{title}</h1>
<p>{turn}</p>
<table><tr><th>request</th><th>shape</th><th>seed</th><th>steps</th><th>deadline in</th></tr>
{rows}</table>
{pictures}
</body></html>
"""


def queue(slots: Sequence[Slot], shapes: Sequence[str], now_ns: int, turns: dict[str, Any]) -> dict[str, Any]:
    """`turns`: of this tenant among the others."""

    def of(slot: Slot) -> dict[str, Any]:
        left_ms = None if slot.deadline_ns == 0 else round((slot.deadline_ns - now_ns) / 1e6)
        return {
            "number": slot.number,
            "shape": shapes[slot.shape],
            "seed": slot.seed,
            "done": slot.done,
            "steps": slot.steps,
            "deadline_in_ms": left_ms,
        }

    by_number = sorted(slots, key=lambda slot: slot.number)
    return {
        "waiting": [of(slot) for slot in by_number if slot.works],
        "pictures": [{**of(slot), "path": asked.path_of(slot)} for slot in by_number if slot.is_picture],
        "turns": turns,
    }


def as_json(found: dict[str, Any]) -> bytes:
    return json.dumps(found).encode() + b"\n"


def as_page(found: dict[str, Any], title: str) -> bytes:
    def row(each: dict[str, Any]) -> str:
        left = "-" if each["deadline_in_ms"] is None else f"{each['deadline_in_ms'] / 1000:.1f} s"
        cells = (each["number"], each["shape"], each["seed"], f"{each['done']} of {each['steps']}", left)
        return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>\n"

    def figure(each: dict[str, Any]) -> str:
        caption = f"{each['number']}: {each['shape']}, seed {each['seed']}"
        return f'<figure><img src="{each["path"]}" alt="{caption}"><figcaption>{caption}</figcaption></figure>\n'

    turns = found["turns"]
    said = "computes" if turns["going"] else "waits for its turn" if found["waiting"] else "has nothing to do"
    return _PAGE.format(
        title=html.escape(title),
        turn=f"This tenant {said}; {turns['waited']} turns were waited for.",
        rows="".join(map(row, found["waiting"])),
        pictures="".join(map(figure, reversed(found["pictures"]))),
    ).encode()
