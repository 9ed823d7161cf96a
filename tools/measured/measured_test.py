# SPDX-License-Identifier: Apache-2.0
"""Tests of measured.py: what is out of date, and what is cited by nothing, is told."""
import json
import pathlib
import shutil
import tempfile
import unittest

import measured
from results import Results, figure, spread, table

ROOT = pathlib.Path(measured.__file__).resolve().parents[2]


class Figures(unittest.TestCase):
    def test_a_figure_has_three_digits_and_no_exponent(self):
        self.assertEqual([figure(each) for each in (0.31145, 12.44, 146.6, 1498.4, 0.0, 0.00012, 5063805, None)],
                         ["0.311", "12.4", "147", "1,500", "0", "0.00012", "5,063,805", "-"])

    def test_a_spread_is_the_least_and_the_most(self):
        self.assertEqual([spread([3.0, 1.0, 2.0]), spread([2.0, 2.0]), spread([]), spread([None, 1])],
                         ["1 to 3", "2", "-", "1"])

    def test_a_row_has_as_many_cells_as_the_head(self):
        self.assertEqual(table(["a", "b"], [[1, 2]]), "| a | b |\n|---|---|\n| 1 | 2 |")
        with self.assertRaises(ValueError):
            table(["a", "b"], [[1]])

    def test_long_prose_is_wrapped_and_a_table_is_not(self):
        wide = "| " + "word " * 40 + "|"
        lines = measured.wrapped("word " * 40 + "\n\n" + wide).splitlines()
        self.assertLessEqual(max(len(line) for line in lines if not line.startswith("|")), 118)
        self.assertIn(wide, lines)


class Checks(unittest.TestCase):
    """On a copy of the results and of the documents that are made of them."""

    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="fb-measured-"))
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copytree(ROOT / "results", self.root / "results")
        made, used = measured.documents(self.root)
        for path, text in made.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text)
        self.uncited = sorted({path.relative_to(self.root).as_posix() for path in (self.root / "results").rglob("*")
                               if path.is_file()} - used)
        (self.root / "docs/all.md").write_text("\n".join(self.uncited))

    def test_what_was_just_made_is_up_to_date(self):
        self.assertEqual(measured.problems(self.root), [])

    def test_a_page_that_was_changed_by_hand_is_out_of_date(self):
        page = self.root / "docs/measured/parking.md"
        page.write_text(page.read_text().replace("120 of 120", "121 of 121", 1))
        self.assertEqual(measured.problems(self.root), ["docs/measured/parking.md is out of date: ./dev measured"])

    def test_a_result_that_has_changed_makes_its_page_out_of_date(self):
        path = self.root / "results/h100/stray-end.json"
        result = json.loads(path.read_text())
        result["report_to_end_ms"] = [1000.0]
        path.write_text(json.dumps(result))
        self.assertEqual(measured.problems(self.root), ["docs/measured/guard.md is out of date: ./dev measured",
                                                        "docs/lanes.svg is out of date: ./dev measured"])

    def test_a_result_that_nobody_cites_is_told(self):
        (self.root / "results/h100/forgotten.json").write_text("{}")
        self.assertEqual(measured.problems(self.root),
                         ["results/h100/forgotten.json is cited by no document and by no source"])

    def test_a_result_that_is_missing_is_an_error(self):
        (self.root / "results/h100/stray-end.json").unlink()
        with self.assertRaises(FileNotFoundError):
            Results(self.root).load("h100/stray-end")


if __name__ == "__main__":
    unittest.main()
