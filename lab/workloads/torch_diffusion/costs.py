# SPDX-License-Identifier: Apache-2.0
"""What a denoising step costs on an H200, from what tests/hardware/turns.py measured there. Pure."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from torch_diffusion.shapes import SHAPES, STEPS, Model, Shape

MEASURED = pathlib.Path(__file__).resolve().parents[3] / "results" / "h200" / "turns.json"

# What tests/hardware/turns.py runs: 30 and 24 layers whose inner width is four times the outer one.
_VIDEO = Shape("measured-video", Model(30, 1536, 12, 6144, 16), 2048, 1024, 1, 1, 1.0)
_IMAGE = Shape("measured-image", Model(24, 1536, 24, 6144, 16), 512, 512, 1, 1, 1.0)


class H200:
    """schedule.Costs. Two figures are measured: at how many operations a second a large step runs, and what a layer of a
    small one takes, which the host that launches it decides. A step takes the longer of what either says. That is a model:
    the shapes that nobody has measured follow from it."""

    def __init__(self, measured: Mapping[str, Any], batch_most: Mapping[str, int] | None = None) -> None:
        found = measured["ways"]["deadline"]
        self.operations_per_s = _VIDEO.step_operations() * STEPS / found["video"]["solo_s"]
        others_s = (found["images"]["p50_ms"] - found["images"]["first_step_p50_ms"]) / 1e3
        self.layer_s = others_s / (STEPS - 1) / _IMAGE.model.layers
        self._batch_most = batch_most or {name: shape.batch for name, shape in SHAPES.items()}

    @classmethod
    def read(cls, path: pathlib.Path = MEASURED, batch_most: Mapping[str, int] | None = None) -> H200:
        return cls(json.loads(path.read_text()), batch_most)

    def step_s(self, shape: str, batch: int) -> float:
        found = SHAPES[shape]
        return max(found.model.layers * self.layer_s, batch * found.step_operations() / self.operations_per_s)

    def batch_most(self, shape: str) -> int:
        return self._batch_most[shape]
