# SPDX-License-Identifier: Apache-2.0
"""Reads the files of results/, and writes their figures as a document shows them."""
import json
import pathlib
import statistics


class Results:
    """The files below a folder `results`, each read once. Notes which ones were asked for."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.used = set()
        self.read = {}

    def load(self, name):
        """What the file NAME.json has, where NAME is as `h100/demo`."""
        self.used.add(f"results/{name}.json")
        if name not in self.read:
            self.read[name] = json.loads((self.root / "results" / f"{name}.json").read_text())
        return self.read[name]

    def link(self, name):
        """A link to that file for a page in docs/measured."""
        self.load(name)
        return f"[{name}](../../results/{name}.json)"


def figure(value, digits=3):
    """A number with so many significant digits, without an exponent."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    if value == 0:
        return "0"
    shown = float(f"{value:.{digits}g}")
    return f"{shown:,.0f}" if abs(shown) >= 10 ** (digits - 1) else f"{shown:g}"


def median(values):
    values = list(values)
    return statistics.median(values) if values else None


def quantile(values, part):
    """The smallest of the values that so large a part of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(part * 1000) * len(ordered) // 1000) - 1))]


def spread(values, digits=3):
    """The least and the largest of some figures, or the one that they all are."""
    values = [value for value in values if value is not None]
    if not values:
        return "-"
    least, most = figure(min(values), digits), figure(max(values), digits)
    return least if least == most else f"{least} to {most}"


def table(head, rows):
    """A Markdown table. Each row has as many cells as the head."""
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"a row of {len(row)} cells below a head of {len(head)}: {row}")
    lines = ["| " + " | ".join(str(cell) for cell in row) + " |" for row in [head, *rows]]
    return "\n".join([lines[0], "|" + "---|" * len(head), *lines[1:]])
