# SPDX-License-Identifier: Apache-2.0
"""Random weights in PyTorch: in the vault where there is one."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from firebreak.torch_memory import VaultMemory

TYPE = torch.bfloat16
# Tensors begin at multiples of so many elements.
_ALIGNMENT = 128


class Weights:
    """All in one tensor, so that they are one piece of memory. `tensors`: name and size, in the order in which they lie."""

    def __init__(
        self, tensors: Sequence[tuple[str, tuple[int, ...]]], device: str, memory: VaultMemory | None
    ) -> None:
        offsets, total = {}, 0
        for name, size in tensors:
            offsets[name] = total
            total += -(-math.prod(size) // _ALIGNMENT) * _ALIGNMENT
        with memory.weights() if memory else contextlib.nullcontext():
            self.flat = torch.empty(total, dtype=TYPE, device=device)
        self._views = {
            name: self.flat[offsets[name] : offsets[name] + math.prod(size)].view(size) for name, size in tensors
        }

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._views[name]

    def fill(self, seed: int) -> None:
        """The same for each seed on each kind of device."""
        generator = torch.Generator(self.flat.device).manual_seed(seed)
        for name, view in self._views.items():
            if name.endswith("norm"):
                view.fill_(1)
                continue
            # Layers outweigh an embedding: where that is the head as well, each token would otherwise follow itself.
            spread = 0.02 if name == "embedding" else view.shape[-1] ** -0.5
            for part in view.split(1 << 14):
                part.copy_(torch.randn(part.shape, generator=generator, device=view.device).mul_(spread))

    def load(self, seed: int, file: str) -> None:
        """From `file` where it is; else they are made, and kept there. "": they are made."""
        if not file or not pathlib.Path(file).exists():
            self.fill(seed)
            if file:
                on_host = self.flat.cpu()
                content = (ctypes.c_char * (on_host.numel() * on_host.element_size())).from_address(on_host.data_ptr())
                pathlib.Path(file + ".part").write_bytes(content)
                os.rename(file + ".part", file)
            return
        stored = torch.from_file(file, shared=False, size=self.flat.numel(), dtype=torch.int16)
        for into, part in zip(self.flat.view(torch.int16).split(1 << 26), stored.split(1 << 26)):
            into.copy_(part)
