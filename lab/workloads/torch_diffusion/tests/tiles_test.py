# SPDX-License-Identifier: Apache-2.0
"""Tiles on a torus, and the order in which a large picture is drawn."""

import unittest

from torch_diffusion import tiles
from torch_diffusion.forward import Slot
from torch_diffusion.server import Kind
from torch_diffusion.tiles import Enlarge, Plan, Refine, Sketch

SIDE = 32
WIDTH = SIDE // tiles.GRID


def cells_of(step: int, tile: int) -> dict[tuple[int, int], tuple[int, int]]:
    """Of the canvas, and where each is in the tile."""
    found = {}
    for row, column, tile_row, tile_column, height, width in tiles.rectangles(SIDE, step, tile):
        for down in range(height):
            for across in range(width):
                found[row + down, column + across] = tile_row + down, tile_column + across
    return found


class Torus(unittest.TestCase):
    def test_each_cell_is_in_one_tile_of_each_step(self) -> None:
        for step in range(20):
            covered = [cell for tile in range(tiles.TILES) for cell in cells_of(step, tile)]
            self.assertEqual(len(covered), SIDE * SIDE)
            self.assertEqual(set(covered), {(row, column) for row in range(SIDE) for column in range(SIDE)})

    def test_neighbours_in_a_tile_are_neighbours_on_the_torus(self) -> None:
        for step in range(16):
            for tile in range(tiles.TILES):
                row, column = tiles.corner(SIDE, step, tile)
                cells = cells_of(step, tile)
                self.assertEqual(len(cells), WIDTH * WIDTH)
                for (canvas_row, canvas_column), (tile_row, tile_column) in cells.items():
                    self.assertEqual(canvas_row, (row + tile_row) % SIDE)
                    self.assertEqual(canvas_column, (column + tile_column) % SIDE)

    def test_tiles_move_by_a_sixteenth_each_step(self) -> None:
        self.assertEqual([tiles.corner(SIDE, step, 0) for step in range(3)], [(0, 0), (2, 2), (4, 4)])
        self.assertEqual(tiles.corner(SIDE, 16, 5), tiles.corner(SIDE, 0, 5))
        borders = [{tiles.corner(SIDE, step, tile)[0] for tile in range(tiles.TILES)} for step in range(4)]
        for step in range(1, 4):
            self.assertFalse(borders[step] & borders[step - 1])

    def test_a_canvas_without_a_border_stays_one(self) -> None:
        """What each tile does to itself alone is done to all of the canvas, wherever the tiles lie."""
        canvas = {(row, column): row * SIDE + column for row in range(SIDE) for column in range(SIDE)}
        for step in range(5):
            after = {}
            for tile in reversed(range(tiles.TILES)):
                after.update({cell: canvas[cell] + 1 for cell in cells_of(step, tile)})
            canvas = after
        self.assertEqual(canvas, {(row, column): row * SIDE + column + 5 for row, column in canvas})


class Order(unittest.TestCase):
    def test_a_sketch_is_enlarged_and_refined(self) -> None:
        plan = Plan(3, 2)
        units = [plan.unit(number) for number in range(plan.units)]
        refined = [Refine(step, tile) for step in range(2) for tile in range(16)]
        self.assertEqual(units, [Sketch(0), Sketch(1), Sketch(2), Enlarge(), *refined])

    def test_a_unit_begins_with_what_is_complete(self) -> None:
        for sketch_steps in (1, 2, 3):
            plan = Plan(sketch_steps, 3)
            written = {0: -1, 1: -1}  # the last unit that wrote to it
            for number in range(plan.units):
                unit = plan.unit(number)
                reads = plan.reads(number)
                is_first = not isinstance(unit, Refine) or unit.tile == 0
                if is_first:
                    self.assertEqual(written[reads], number - 1)
                else:
                    self.assertEqual(plan.reads(number), plan.reads(number - 1))
                written[1 - reads] = number

    def test_a_request_begins_where_its_plan_says(self) -> None:
        kind = Kind("large", 3, sketch_steps=2)
        units = kind.units(3)
        self.assertEqual(units, 2 + 1 + 48)
        self.assertEqual(kind.plan(units), Plan(2, 3))
        reads = [kind.reads(Slot(1, steps=units, done=done)) for done in range(units + 1)]
        self.assertEqual(reads, [0, 1, 0] + [1] * 16 + [0] * 16 + [1] * 16 + [0])
        self.assertEqual([Kind("small", 3).reads(Slot(1, steps=3, done=done)) for done in range(4)], [0, 1, 0, 1])


if __name__ == "__main__":
    unittest.main()
