# SPDX-License-Identifier: Apache-2.0
"""Shapes of what is asked for, as published: SD3.5-medium's in transformer/config.json of its model card
(huggingface.co/stabilityai/stable-diffusion-3.5-medium), Wan 1.3B's in config.json of its own
(huggingface.co/Wan-AI/Wan2.1-T2V-1.3B). Both cut latents into pieces of 2 x 2, and a latent stands for 8 x 8 pixels; Wan's
also for 4 frames, but for the first."""

from __future__ import annotations

import dataclasses

STEPS = 20


@dataclasses.dataclass(frozen=True)
class Model:
    layers: int
    hidden: int
    heads: int
    intermediate: int
    channels: int

    @property
    def token_floats(self) -> int:
        """Of the latents: a piece of 2 x 2 in each channel."""
        return 4 * self.channels

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        """All weights in the order in which they lie in memory: name and size. What stands for a text is left out."""
        found: list[tuple[str, tuple[int, ...]]] = [
            ("in", (self.hidden, self.token_floats)),
            ("time", (self.hidden, self.hidden)),
        ]
        for layer in range(self.layers):
            found += [
                (f"{layer}.modulation", (6 * self.hidden, self.hidden)),
                (f"{layer}.qkv", (3 * self.hidden, self.hidden)),
                (f"{layer}.output", (self.hidden, self.hidden)),
                (f"{layer}.up", (self.intermediate, self.hidden)),
                (f"{layer}.down", (self.hidden, self.intermediate)),
            ]
        return [*found, ("out", (self.token_floats, self.hidden))]


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of what one step computes. `batch`: how many requests; it always computes as many, so that a request's bits do not
    depend on its company. `sketch_steps`, where there are any: it is a tile, and the picture is 4 x 4 times as large."""

    name: str
    model: Model
    width: int
    height: int
    frames: int
    batch: int
    # A deadline that nobody names is so many times what it takes alone.
    patience: float
    steps: int = STEPS
    sketch_steps: int = 0

    @property
    def latent_frames(self) -> int:
        return 1 + (self.frames - 1) // 4

    @property
    def tokens(self) -> int:
        return self.latent_frames * self.rows * self.columns

    @property
    def rows(self) -> int:
        """Of tokens, in each frame."""
        return self.height // 16

    @property
    def columns(self) -> int:
        return self.width // 16

    @property
    def is_video(self) -> bool:
        return self.frames > 1

    def step_operations(self) -> float:
        """Of one request: products of weights with each token, and of all tokens with each other."""
        model = self.model
        weights = model.hidden * (4 * model.hidden + 2 * model.intermediate)
        return 2.0 * model.layers * (self.tokens * weights + 2 * self.tokens**2 * model.hidden)


SD35_MEDIUM = Model(layers=24, hidden=1536, heads=24, intermediate=6144, channels=16)
WAN_1_3B = Model(layers=30, hidden=1536, heads=12, intermediate=8960, channels=16)
TINY = Model(layers=2, hidden=32, heads=2, intermediate=64, channels=4)

SHAPES = {
    shape.name: shape
    for shape in (
        Shape("512", SD35_MEDIUM, 512, 512, 1, batch=2, patience=1.5),
        Shape("1024", SD35_MEDIUM, 1024, 1024, 1, batch=1, patience=2.0),
        Shape("480p", WAN_1_3B, 832, 480, 33, batch=1, patience=6.0),
        Shape("4k", SD35_MEDIUM, 1024, 1024, 1, batch=1, patience=2.0, steps=10, sketch_steps=20),
        # For tests without a GPU.
        Shape("tiny", TINY, 64, 64, 1, batch=2, patience=1.5),
        Shape("tiny-video", TINY, 64, 32, 5, batch=1, patience=6.0),
        Shape("tiny-large", TINY, 64, 64, 1, batch=1, patience=2.0, steps=2, sketch_steps=3),
    )
}
