# SPDX-License-Identifier: Apache-2.0
"""The reader itself: it takes what is right, and nothing else."""

import unittest

import text_format

HEAD = "# HELP a_total What it is.\n# TYPE a_total counter\n"
HISTOGRAM = "# HELP h H.\n# TYPE h histogram\n"

RIGHT = (
    HEAD + "a_total 1\n",
    HEAD + 'a_total{x="1",y="\\"\\\\\\n"} 1e+03\na_total{x="2",y=""} +Inf\n',
    HEAD,
    HISTOGRAM + 'h_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n',
)
WRONG = (
    "",
    HEAD + "a_total 1",
    "a_total 1\n",
    "# TYPE a_total counter\na_total 1\n",
    HEAD + "a_total 1\n\n",
    HEAD + "a_total 1\r\n",
    HEAD + "a_total  1\n",
    HEAD + "a_total 1 \n",
    HEAD + "a_total one\n",
    HEAD + "a_total -1\n",
    HEAD + "a_total NaN\n",
    HEAD + "b_total 1\n",
    HEAD + "a_total 1\na_total 2\n",
    HEAD + 'a_total{x="1",y="2"} 1\na_total{y="2",x="1"} 1\n',
    HEAD + 'a_total{x="1",x="2"} 1\n',
    HEAD + 'a_total{x="\\t"} 1\n',
    HEAD + 'a_total{x="1} 1\n',
    HEAD + 'a_total{1x="1"} 1\n',
    HEAD + "a_total{x=1} 1\n",
    HEAD + "# TYPE a_total counter\n",
    HEAD + "a_total 1\n# HELP b B.\n# TYPE b gauge\nb 1\n" + HEAD,
    "# HELP a A.\n# TYPE a number\na 1\n",
    HISTOGRAM + 'h_bucket{le="1"} 2\nh_sum 4.5\nh_count 2\n',
    HISTOGRAM + 'h_bucket{le="1"} 4\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n',
    HISTOGRAM + 'h_bucket{le="2"} 2\nh_bucket{le="1"} 2\nh_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 3\n',
    HISTOGRAM + 'h_bucket{le="+Inf"} 3\nh_sum 4.5\nh_count 2\n',
    HISTOGRAM + 'h_bucket{le="+Inf"} 3\nh_count 3\n',
)


class Reader(unittest.TestCase):
    def test_takes_what_is_right(self) -> None:
        for text in RIGHT:
            text_format.read(text)

    def test_refuses_what_is_wrong(self) -> None:
        for text in WRONG:
            with self.subTest(text), self.assertRaises(text_format.Wrong):
                text_format.read(text)

    def test_reads_values_and_labels(self) -> None:
        families = text_format.read(RIGHT[1])
        self.assertEqual(text_format.value_of(families, "a_total", x="1", y='"\\\n'), 1000)
        self.assertIsNone(text_format.value_of(families, "a_total", x="3"))


if __name__ == "__main__":
    unittest.main()
