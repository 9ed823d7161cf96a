# SPDX-License-Identifier: Apache-2.0
"""Prometheus' text format 0.0.4, read strictly: what real servers forgive is an error here."""

from __future__ import annotations

import dataclasses
import math
import re

METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
SUFFIXES = {"counter": ("",), "gauge": ("",), "untyped": ("",), "histogram": ("_bucket", "_sum", "_count"),
            "summary": ("", "_sum", "_count")}
VALUE = re.compile(r"[+-]?Inf|NaN|[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

Labels = tuple[tuple[str, str], ...]


class Wrong(Exception):
    """The text is not in the format."""


@dataclasses.dataclass
class Family:
    name: str
    help: str | None = None
    type: str | None = None
    samples: dict[tuple[str, Labels], float] = dataclasses.field(default_factory=dict)


def _label_value(text: str, at: int) -> tuple[str, int]:
    """Behind its first quotation mark."""
    value = ""
    while True:
        if at >= len(text):
            raise Wrong("a label's value does not end")
        letter = text[at]
        if letter == '"':
            return value, at + 1
        if letter == "\\":
            escaped = {"\\": "\\", '"': '"', "n": "\n"}.get(text[at + 1: at + 2])
            if escaped is None:
                raise Wrong(f"no such escape: {text[at:at + 2]}")
            value += escaped
            at += 2
            continue
        value += letter
        at += 1


def _labels(text: str) -> tuple[Labels, str]:
    """Behind the brace that opens them; and what follows the one that closes them."""
    labels: list[tuple[str, str]] = []
    at = 0
    while text[at: at + 1] != "}":
        found = LABEL.match(text, at)
        if not found or text[found.end(): found.end() + 2] != '="':
            raise Wrong(f"no label: {text[at:]}")
        value, at = _label_value(text, found.end() + 2)
        if found[0] in dict(labels):
            raise Wrong(f"label {found[0]} is there twice")
        labels.append((found[0], value))
        if text[at: at + 1] == ",":
            at += 1
        elif text[at: at + 1] != "}":
            raise Wrong(f"after a label: {text[at:]}")
    return tuple(sorted(labels)), text[at + 1:]


def _sample(line: str) -> tuple[str, Labels, float]:
    found = METRIC.match(line)
    if not found:
        raise Wrong(f"no metric's name: {line}")
    rest = line[found.end():]
    labels: Labels = ()
    if rest.startswith("{"):
        labels, rest = _labels(rest[1:])
    if not rest.startswith(" ") or not VALUE.fullmatch(rest[1:]):
        raise Wrong(f"no value: {line}")
    return found[0], labels, float(rest[1:])


def _check_buckets(family: Family) -> None:
    series: dict[Labels, list[tuple[float, float]]] = {}
    for (name, labels), value in family.samples.items():
        if not name.endswith("_bucket"):
            continue
        bound = dict(labels).get("le")
        if bound is None:
            raise Wrong(f"{name} without le")
        others = tuple(each for each in labels if each[0] != "le")
        series.setdefault(others, []).append((float(bound), value))
    for labels, buckets in series.items():
        if buckets != sorted(buckets) or sorted(value for _, value in buckets) != [value for _, value in buckets]:
            raise Wrong(f"the buckets of {family.name} do not add up: {buckets}")
        count = family.samples.get((family.name + "_count", labels))
        if buckets[-1][0] != math.inf or buckets[-1][1] != count:
            raise Wrong(f"the last bucket of {family.name} is not its count")
        if (family.name + "_sum", labels) not in family.samples:
            raise Wrong(f"{family.name} has no sum")


def _check(family: Family) -> None:
    if family.type is None or family.help is None:
        raise Wrong(f"{family.name} has no type or no help")
    if family.type == "counter" and any(not value >= 0 for value in family.samples.values()):
        raise Wrong(f"the counter {family.name} is below 0")
    if family.type == "histogram":
        _check_buckets(family)


class _Reader:
    def __init__(self) -> None:
        self.families: dict[str, Family] = {}
        self.current: Family | None = None

    def family(self, name: str) -> Family:
        if self.current is None or self.current.name != name:
            if name in self.families:
                raise Wrong(f"{name} is told in two places")
            self.current = self.families[name] = Family(name)
        return self.current

    def comment(self, line: str) -> None:
        words = line.split(" ", 3)
        if len(words) < 4 or words[1] not in ("HELP", "TYPE") or not METRIC.fullmatch(words[2]):
            raise Wrong(f"neither help nor type: {line}")
        family = self.family(words[2])
        if family.samples or getattr(family, words[1].lower()) is not None:
            raise Wrong(f"too late, or for the second time: {line}")
        if words[1] == "TYPE" and words[3] not in SUFFIXES:
            raise Wrong(f"no such type: {line}")
        setattr(family, words[1].lower(), words[3])

    def sample(self, line: str) -> None:
        name, labels, value = _sample(line)
        family = self.current
        if family is None or family.type is None:
            raise Wrong(f"before its type: {line}")
        if name not in [family.name + suffix for suffix in SUFFIXES[family.type]]:
            raise Wrong(f"not of {family.name}: {line}")
        if (name, labels) in family.samples:
            raise Wrong(f"for the second time: {line}")
        family.samples[name, labels] = value


def read(text: str) -> dict[str, Family]:
    if not text.endswith("\n"):
        raise Wrong("the last line does not end")
    reader = _Reader()
    for line in text[:-1].split("\n"):
        if line.startswith("# "):
            reader.comment(line)
        else:
            reader.sample(line)
    for family in reader.families.values():
        _check(family)
    return reader.families


def value_of(families: dict[str, Family], name: str, **labels: str) -> float | None:
    family = families.get(name)
    return None if family is None else family.samples.get((name, tuple(sorted(labels.items()))))
