# SPDX-License-Identifier: Apache-2.0
"""A large picture in tiles, as SuperGen draws it: a sketch in the size of one tile, enlarged, then refined tile by tile on a
torus. Pure.

The tiles of one refining step read what the step before left of the whole canvas and write to another; so each is a step of
its own, in any order. They are shifted by a sixteenth of the canvas from step to step, so no border stays where it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

GRID = 4
TILES = GRID * GRID
_SHIFTS = 16


@dataclasses.dataclass(frozen=True)
class Sketch:
    """Denoising step 0, 1, ... of the small picture."""

    step: int


@dataclasses.dataclass(frozen=True)
class Enlarge:
    """Of the sketch, with noise over the whole canvas at once."""


@dataclasses.dataclass(frozen=True)
class Refine:
    step: int
    tile: int


Unit = Sketch | Enlarge | Refine


@dataclasses.dataclass(frozen=True)
class Plan:
    """Units are numbered from 0, and done in that order."""

    sketch_steps: int
    refine_steps: int

    @property
    def units(self) -> int:
        return self.sketch_steps + 1 + self.refine_steps * TILES

    def unit(self, number: int) -> Unit:
        if number < self.sketch_steps:
            return Sketch(number)
        if number == self.sketch_steps:
            return Enlarge()
        return Refine(*divmod(number - self.sketch_steps - 1, TILES))

    def reads(self, number: int) -> int:
        """The canvas, 0 or 1, that the unit begins with; it writes to the other. Behind the last unit: where the picture is."""
        unit = self.unit(number)
        phase = number if not isinstance(unit, Refine) else self.sketch_steps + 1 + unit.step
        return phase % 2


def corner(side: int, step: int, tile: int) -> tuple[int, int]:
    """Row and column of a tile's first cell on a canvas of `side` x `side` cells, which is a multiple of 16."""
    shift = step * (side // _SHIFTS)
    row, column = divmod(tile, GRID)
    width = side // GRID
    return (row * width + shift) % side, (column * width + shift) % side


def pieces(side: int, begin: int) -> Iterator[tuple[int, int, int]]:
    """Along one axis of a tile that begins there: where each piece lies on the canvas and in the tile, and how long it is.
    Two where the tile goes over the edge."""
    width = side // GRID
    first = min(width, side - begin)
    yield begin, 0, first
    if first < width:
        yield 0, first, width - first


def rectangles(side: int, step: int, tile: int) -> Iterator[tuple[int, int, int, int, int, int]]:
    """Of a tile: row and column on the canvas, row and column in the tile, height and width."""
    row, column = corner(side, step, tile)
    for canvas_row, tile_row, height in pieces(side, row):
        for canvas_column, tile_column, width in pieces(side, column):
            yield canvas_row, canvas_column, tile_row, tile_column, height, width
