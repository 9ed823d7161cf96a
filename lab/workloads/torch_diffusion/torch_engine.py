# SPDX-License-Identifier: Apache-2.0
"""The models in PyTorch: diffusion transformers with random weights and published shapes, and straight flows from noise to a
picture. The only module here that needs PyTorch. Weights and latents are in the vault where there is one; all else is the
process's own. There is no decoder: a picture shows three channels of its latents.

A step of a shape always computes its whole batch, so a request's bits are the same in whatever company."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from serving.torch_steps import Steps
from serving.torch_weights import TYPE, Weights
from torch_diffusion.forward import Slot
from torch_diffusion.picture import Picture
from torch_diffusion.server import Kind, Work
from torch_diffusion.shapes import Model, Shape
from torch_diffusion.tiles import GRID, TILES, Enlarge, Refine, Sketch, rectangles

if TYPE_CHECKING:
    from firebreak.torch_memory import VaultMemory

# How noisy the enlarged sketch is, on the way from 1 to 0.
_REFINE_FROM = 0.5
_EVENTS_KEPT = 8


class TorchEngine(Steps):
    """server.Engine."""

    def __init__(self, shapes: Sequence[Shape], slots: int, device: str, memory: VaultMemory | None = None) -> None:
        super().__init__(device, kept=_EVENTS_KEPT)
        self._shapes = list(shapes)
        self._kinds = [
            Kind(each.name, each.steps, each.batch, each.patience, each.step_operations(), each.sketch_steps)
            for each in self._shapes
        ]
        self._models = list(dict.fromkeys(each.model for each in self._shapes))
        tensors = [
            (f"{index}.{name}", size) for index, model in enumerate(self._models) for name, size in model.tensors()
        ]
        self.weights = Weights(tensors, device, memory)
        with memory.state() if memory else contextlib.nullcontext():
            # A successor's holds what it goes on with.
            make = torch.empty if memory else torch.zeros
            self._latents = make(slots, 2, max(map(_floats, self._shapes)), dtype=torch.float32, device=device)
        self._places = {each.name: self._waves(torch.arange(each.tokens), each.model) for each in self._shapes}

    # --- server.Engine

    @property
    def kinds(self) -> Sequence[Kind]:
        return self._kinds

    @torch.inference_mode()
    def step(self, work: Work, slots: Sequence[Slot]) -> None:
        if work.slots:
            self._compute(self._latents, work, slots)
        self._note_end(work.step)

    @torch.inference_mode()
    def picture(self, index: int, slot: Slot) -> Picture:
        shape, kind = self._shapes[slot.shape], self._kinds[slot.shape]
        scale = GRID if kind.sketch_steps else 1
        rows, columns = scale * shape.rows, scale * shape.columns
        latents = self._latents[index, kind.reads(slot), : _floats(shape)]
        pieces = latents.view(shape.latent_frames, rows, columns, 2, 2, shape.model.channels)
        pixels = pieces.permute(0, 1, 3, 2, 4, 5).reshape(shape.latent_frames, -1, shape.model.channels)
        frames = (pixels[..., :3] * 64 + 128).clamp(0, 255).to(torch.uint8).cpu()
        return Picture(2 * columns, 2 * rows, [bytes(frame.flatten().tolist()) for frame in frames])

    @torch.inference_mode()
    def first_kernel(self) -> None:
        F.silu(self.weights["0.in"][:1])
        self._synchronize()

    # --- beginnings

    @torch.inference_mode()
    def warm_up(self) -> None:
        """Every kernel once, on latents that are nobody's; weights are only read."""
        scratch = torch.zeros_like(self._latents[:1])
        for number, kind in enumerate(self._kinds):
            units = kind.units(1)
            # The first, where it is enlarged, and the last one.
            for done in sorted({0, min(kind.sketch_steps, units - 1), units - 1}):
                slot = Slot(1, 0, 1, shape=number, steps=units, done=done)
                self._compute(scratch, Work(0, number, [0]), [slot])
        self.first_kernel()

    # --- steps

    def _compute(self, latents: torch.Tensor, work: Work, slots: Sequence[Slot]) -> None:
        shape, kind = self._shapes[work.kind], self._kinds[work.kind]
        halves = [latents[index].split(1) for index in work.slots]
        reads = [kind.reads(slots[index]) for index in work.slots]
        befores = [each[which][0] for each, which in zip(halves, reads)]
        afters = [each[1 - which][0] for each, which in zip(halves, reads)]
        if kind.sketch_steps:
            for before, after, index in zip(befores, afters, work.slots):
                self._compute_unit(shape, kind, slots[index], before, after)
            return
        whole = slice(_floats(shape))
        self._denoise(
            shape,
            [each[whole] for each in befores],
            [each[whole] for each in afters],
            [(slots[index].seed, slots[index].done, slots[index].steps) for index in work.slots],
        )

    def _denoise(
        self,
        shape: Shape,
        befores: Sequence[torch.Tensor],
        afters: Sequence[torch.Tensor],
        where: Sequence[tuple[int, int, int]],
    ) -> None:
        """Of each its seed, and how many of how many steps are done."""
        for before, (seed, done, _) in zip(befores, where):
            if done == 0:
                before.copy_(self._noise(seed, before.numel()))
        noisy = [(1 - done / steps, 1 - (done + 1) / steps) for _, done, steps in where]
        for after, found in zip(afters, self._flow(shape, befores, noisy)):
            after.copy_(found)

    def _compute_unit(
        self, shape: Shape, kind: Kind, slot: Slot, before: torch.Tensor, after: torch.Tensor
    ) -> None:
        plan = kind.plan(slot.steps)
        unit = plan.unit(slot.done)
        tile_floats, floats = shape.tokens * shape.model.token_floats, _floats(shape)
        canvas = (GRID * shape.rows, GRID * shape.columns, shape.model.token_floats)
        if isinstance(unit, Sketch):
            where = slot.seed, unit.step, plan.sketch_steps
            self._denoise(shape, [before[:tile_floats]], [after[:tile_floats]], [where])
        elif isinstance(unit, Enlarge):
            sketch = before[:tile_floats].view(shape.rows, shape.columns, -1)
            large = sketch.repeat_interleave(GRID, 0).repeat_interleave(GRID, 1).reshape(-1)
            noise = self._noise(slot.seed + 1, floats)
            after[:floats].copy_(_REFINE_FROM * noise + (1 - _REFINE_FROM) * large)
        else:
            tile = torch.empty(shape.rows, shape.columns, shape.model.token_floats, device=self._device)
            self._copy_tile(unit, before[:floats].view(canvas), tile, to_tile=True)
            noisy = tuple(_REFINE_FROM * (1 - at / plan.refine_steps) for at in (unit.step, unit.step + 1))
            refined = self._flow(shape, [tile.view(-1)], [noisy])[0].view(tile.shape)
            self._copy_tile(unit, after[:floats].view(canvas), refined, to_tile=False)

    def _copy_tile(self, unit: Refine, canvas: torch.Tensor, tile: torch.Tensor, to_tile: bool) -> None:
        for row, column, tile_row, tile_column, height, width in rectangles(len(canvas), unit.step, unit.tile):
            on_canvas = canvas[row : row + height, column : column + width]
            in_tile = tile[tile_row : tile_row + height, tile_column : tile_column + width]
            if to_tile:
                in_tile.copy_(on_canvas)
            else:
                on_canvas.copy_(in_tile)

    def _flow(
        self, shape: Shape, befores: Sequence[torch.Tensor], noisy: Sequence[tuple[float, float]]
    ) -> Sequence[torch.Tensor]:
        """Latents that are less noisy: of each, from where to where. The batch is full of zeros where nobody is."""
        batch = torch.zeros(shape.batch, shape.tokens, shape.model.token_floats, device=self._device)
        times = torch.zeros(shape.batch)
        for row, (before, (now, _)) in enumerate(zip(befores, noisy)):
            batch[row].copy_(before.view(batch[row].shape))
            times[row] = now
        velocity = self._velocity(shape, batch, times)
        return [batch[row].add(velocity[row], alpha=after - now).view(-1) for row, (now, after) in enumerate(noisy)]

    # --- the model

    def _velocity(self, shape: Shape, latents: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        model = shape.model
        of = f"{self._models.index(model)}."
        weights = self.weights
        time = F.silu(F.linear(self._waves(1000 * times, model), weights[of + "time"]))[:, None]
        hidden = F.linear(latents.to(TYPE), weights[of + "in"]) + self._places[shape.name]
        for layer in range(model.layers):
            of_layer = f"{of}{layer}."
            shift, scale, gate, more_shift, more_scale, more_gate = F.linear(
                time, weights[of_layer + "modulation"]
            ).chunk(6, -1)
            joined = F.linear(self._norm(hidden) * (1 + scale) + shift, weights[of_layer + "qkv"])
            heads = joined.view(len(hidden), shape.tokens, 3, model.heads, -1).permute(2, 0, 3, 1, 4)
            attended = F.scaled_dot_product_attention(heads[0], heads[1], heads[2])
            output = F.linear(attended.transpose(1, 2).reshape(hidden.shape), weights[of_layer + "output"])
            hidden = hidden + gate * output
            up = F.linear(self._norm(hidden) * (1 + more_scale) + more_shift, weights[of_layer + "up"])
            hidden = hidden + more_gate * F.linear(F.gelu(up), weights[of_layer + "down"])
        return F.linear(self._norm(hidden), weights[of + "out"]).float()

    def _norm(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(hidden, hidden.shape[-1:])

    def _waves(self, at: torch.Tensor, model: Model) -> torch.Tensor:
        """Sines and cosines of places, or of times: [places, hidden]."""
        half = model.hidden // 2
        frequencies = torch.exp(torch.arange(half) * (-math.log(10_000) / half))
        angles = at.float()[:, None] * frequencies[None]
        return torch.cat((angles.sin(), angles.cos()), -1).to(self._device, TYPE)

    def _noise(self, seed: int, count: int) -> torch.Tensor:
        generator = torch.Generator(self._device).manual_seed(seed)
        return torch.randn(count, generator=generator, device=self._device)


def _floats(shape: Shape) -> int:
    """Of one of the two latents of a request."""
    return shape.tokens * shape.model.token_floats * (TILES if shape.sketch_steps else 1)
