# SPDX-License-Identifier: Apache-2.0
"""Shapes of models, as published: Qwen2.5's in the config.json of each model card (huggingface.co/Qwen/Qwen2.5-0.5B and so
on) and in table 1 of its technical report (arXiv 2412.15115)."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    tied_embeddings: bool
    rope_theta: float = 1e6
    norm_epsilon: float = 1e-6

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    @property
    def qkv_rows(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_size

    def tensors(self) -> list[tuple[str, tuple[int, ...]]]:
        """All weights in the order in which they lie in memory: name and size."""
        found: list[tuple[str, tuple[int, ...]]] = [("embedding", (self.vocabulary, self.hidden))]
        for layer in range(self.layers):
            found += [
                (f"{layer}.attention_norm", (self.hidden,)),
                (f"{layer}.qkv", (self.qkv_rows, self.hidden)),
                (f"{layer}.qkv_bias", (self.qkv_rows,)),
                (f"{layer}.output", (self.hidden, self.heads * self.head_size)),
                (f"{layer}.mlp_norm", (self.hidden,)),
                (f"{layer}.gate_up", (2 * self.intermediate, self.hidden)),
                (f"{layer}.down", (self.hidden, self.intermediate)),
            ]
        found.append(("norm", (self.hidden,)))
        if not self.tied_embeddings:
            found.append(("head", (self.vocabulary, self.hidden)))
        return found

    def parameters(self) -> int:
        total = 0
        for _, size in self.tensors():
            count = 1
            for extent in size:
                count *= extent
            total += count
        return total

    def cache_bytes_per_token(self) -> int:
        """Keys and values in 16 bits."""
        return self.layers * 2 * self.kv_heads * self.head_size * 2


SHAPES = {
    shape.name: shape
    for shape in (
        # Qwen's structure in the smallest, for tests without a GPU.
        Shape("tiny", 64, 2, 4, 2, 96, 199, True),
        Shape("0.5b", 896, 24, 14, 2, 4864, 151936, True),
        Shape("1.5b", 1536, 28, 12, 2, 8960, 151936, True),
        Shape("3b", 2048, 36, 16, 2, 11008, 151936, True),
        Shape("7b", 3584, 28, 28, 4, 18944, 152064, False),
    )
}
