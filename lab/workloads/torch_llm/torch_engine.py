# SPDX-License-Identifier: Apache-2.0
"""The model in PyTorch: Qwen2.5's structure with random weights, a paged cache, greedy. The only module here that needs
PyTorch. Weights, cache and tokens are in the vault where there is one; all else is the process's own.

Each kind of work has one size whoever else works: a decode step computes every slot, and a prompt is computed alone. The
bits of an answer are therefore the same in whatever company, and in whichever process."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F

from serving.torch_steps import Steps
from serving.torch_weights import TYPE, Weights
from torch_llm.schedule import Limits, Schedule, Work
from torch_llm.server import STEPS_KEPT
from torch_llm.shapes import Shape

if TYPE_CHECKING:
    from firebreak.torch_memory import VaultMemory


class TorchEngine(Steps):
    """server.Engine. `limits.slots` at most `limits.page_tokens`: rows without a request write to page 0, each its own."""

    def __init__(self, shape: Shape, limits: Limits, device: str, memory: VaultMemory | None = None) -> None:
        if limits.slots > limits.page_tokens:
            raise ValueError(f"at most {limits.page_tokens} slots: rows without a request share one page")
        super().__init__(device, kept=2 * STEPS_KEPT)
        self._shape = shape
        self._limits = limits
        self.weights = Weights(shape.tensors(), device, memory)
        self._head = self.weights["embedding" if shape.tied_embeddings else "head"]
        with memory.state() if memory else contextlib.nullcontext():
            # The vault's memory begins as zeros; a successor's holds what it goes on with.
            make = torch.empty if memory else torch.zeros
            self._cache = make(self._cache_size(limits.pages), dtype=TYPE, device=device)
            self._tokens = make(limits.slots, limits.context + 1, dtype=torch.int64, device=device)
        self._rows = self._scratch_rows()
        self._rotation = self._make_rotation()
        self._columns = torch.arange(limits.context, device=device)
        self._sampled = [self._host(limits.slots) for _ in range(STEPS_KEPT)]
        self._positions = [self._host(limits.slots) for _ in range(STEPS_KEPT)]
        # Of the decode step that is queued; where they are is part of its graph.
        self._at = torch.zeros(limits.slots, dtype=torch.int64, device=device)
        self._decoded = torch.zeros(limits.slots, dtype=torch.int64, device=device)
        self._graph: torch.cuda.CUDAGraph | None = None

    # --- server.Engine

    def write_prompt(self, slot: int, tokens: Sequence[int]) -> None:
        # A copy from pageable memory has left it when the call returns.
        self._tokens[slot, : len(tokens)].copy_(torch.tensor(list(tokens)))

    @torch.inference_mode()
    def take_over(self, schedule: Schedule) -> None:
        self._rows.copy_(torch.stack([self._rows_of(slot.pages) for slot in schedule.slots]))

    @torch.inference_mode()
    def step(self, work: Work, schedule: Schedule) -> None:
        for index in work.new_pages:
            self._rows[index].copy_(self._rows_of(schedule.slots[index].pages))
        first = {index: self._prompt(index, schedule.slots[index].prompt_tokens) for index in work.prompts}
        if work.decodes:
            self._decode(work, schedule)
        for index, token in first.items():
            self._decoded[index] = token
        self._sampled[work.step % STEPS_KEPT].copy_(self._decoded, non_blocking=True)
        self._note_end(work.step)

    @torch.inference_mode()
    def first_kernel(self) -> None:
        F.embedding(self._tokens[:, 0], self.weights["embedding"])
        self._synchronize()

    def sampled(self, step: int) -> Sequence[int]:
        found: list[int] = self._sampled[step % STEPS_KEPT].tolist()
        return found

    def answer(self, slot: int, first: int, count: int) -> list[int]:
        found: list[int] = self._tokens[slot, first : first + count].tolist()
        return found

    # --- beginnings

    def addresses(self) -> list[int]:
        return [each.data_ptr() for each in (self.weights.flat, self._cache, self._tokens)]

    @torch.inference_mode()
    def warm_up(self, prompt_tokens: Sequence[int] = (32,)) -> None:
        """Every kernel once, on a cache and tokens that are nobody's; weights are only read."""
        own = self._cache, self._tokens
        self._cache = torch.zeros(self._cache_size(1), dtype=TYPE, device=self._device)
        self._tokens = torch.zeros_like(own[1])
        schedule = Schedule(self._limits, 0)
        schedule.slots[0].connection = 1
        schedule.slots[0].prompt_tokens, schedule.slots[0].answer_tokens = 1, 2
        for tokens in prompt_tokens:
            self._prompt(0, tokens)
        self._decode(Work(1, [], [0], []), schedule)
        self._sampled[0].copy_(self._decoded, non_blocking=True)
        self._synchronize()
        self._cache, self._tokens = own
        self.first_kernel()

    @torch.inference_mode()
    def capture(self) -> None:
        """Decode steps as one launch each, from now on. Runs nothing: a standby does it on the active's memory. After
        warm_up()."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._decode_all()
        self._graph = graph

    # --- the model

    def _prompt(self, slot: int, count: int) -> torch.Tensor:
        """The whole prompt of a slot; its last row gives the first token of the answer."""
        positions = self._columns[:count]
        hidden = F.embedding(self._tokens[slot, :count], self.weights["embedding"])
        rows = self._rows[slot, :count]
        mask = (positions[:, None] >= positions[None, :])[None, None]

        def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            # [groups of heads, heads of one, tokens, head]
            key, value = keys[rows].permute(1, 0, 2)[:, None], values[rows].permute(1, 0, 2)[:, None]
            return self._softmax(query.permute(1, 2, 0, 3), key, value, mask).permute(2, 0, 1, 3)

        hidden = self._layers(hidden, positions, rows, attend)
        token = self._sample(hidden[-1:])[0]
        self._tokens[slot, count] = token
        return token

    def _decode(self, work: Work, schedule: Schedule) -> None:
        """One token of every slot; those that do not work compute what nobody reads."""
        last = self._limits.context - 1
        on_host = self._positions[work.step % STEPS_KEPT]
        on_host.fill_(last)
        for index in work.decodes:
            on_host[index] = schedule.slots[index].position(work.step)
        self._at.copy_(on_host, non_blocking=True)
        if self._graph is not None:
            self._graph.replay()
        else:
            self._decode_all()

    def _decode_all(self) -> None:
        """From self._at to self._decoded, on the GPU alone."""
        last = self._limits.context - 1
        positions = self._at
        idle = positions == last
        tokens = self._tokens.gather(1, positions[:, None])[:, 0]
        hidden = F.embedding(tokens, self.weights["embedding"])
        slots = torch.arange(self._limits.slots, device=self._device)
        rows = torch.where(idle, slots, self._rows.gather(1, positions[:, None])[:, 0])
        mask = (self._columns[None, :] <= positions[:, None])[:, None, None]

        def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
            # [slots, groups of heads, heads of one, head]
            key, value = keys[self._rows].transpose(1, 2), values[self._rows].transpose(1, 2)
            return self._softmax(query, key, value, mask)

        sampled = self._sample(self._layers(hidden, positions, rows, attend))
        # Who does not work writes behind all that is ever read.
        target = torch.where(idle, torch.full_like(positions, last + 1), positions + 1)
        self._tokens.scatter_(1, target[:, None], sampled[:, None])
        self._decoded.copy_(sampled)

    def _layers(self, hidden: torch.Tensor, positions: torch.Tensor, rows: torch.Tensor, attend: object) -> torch.Tensor:
        shape, weights = self._shape, self.weights
        cos, sin = self._rotation[0][positions][:, None], self._rotation[1][positions][:, None]
        for layer in range(shape.layers):
            of = f"{layer}."
            normed = self._norm(hidden, weights[of + "attention_norm"])
            joined = F.linear(normed, weights[of + "qkv"], weights[of + "qkv_bias"])
            heads = joined.view(len(hidden), -1, shape.head_size)
            query, key, value = heads.split((shape.heads, shape.kv_heads, shape.kv_heads), dim=1)
            keys, values = self._cache[layer, 0], self._cache[layer, 1]
            keys.index_copy_(0, rows, self._rotate(key, cos, sin))
            values.index_copy_(0, rows, value)
            # Heads that share keys are rows of one product.
            grouped = self._rotate(query, cos, sin).view(len(hidden), shape.kv_heads, -1, shape.head_size)
            attended = attend(grouped, keys, values).reshape(len(hidden), -1)  # type: ignore[operator]
            hidden = hidden + F.linear(attended, weights[of + "output"])
            normed = self._norm(hidden, weights[of + "mlp_norm"])
            gate, up = F.linear(normed, weights[of + "gate_up"]).chunk(2, dim=-1)
            hidden = hidden + F.linear(F.silu(gate) * up, weights[of + "down"])
        return hidden

    def _softmax(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = (query @ key.transpose(-1, -2)).float().div_(math.sqrt(self._shape.head_size))
        return scores.masked_fill_(~mask, -math.inf).softmax(-1).to(TYPE) @ value

    def _sample(self, hidden: torch.Tensor) -> torch.Tensor:
        return F.linear(self._norm(hidden, self.weights["norm"]), self._head).argmax(-1)

    def _norm(self, hidden: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        wide = hidden.float()
        scale = torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self._shape.norm_epsilon)
        return (wide * scale).to(TYPE) * weight

    def _rotate(self, heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = heads.float().chunk(2, dim=-1)
        return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(TYPE)

    def _make_rotation(self) -> tuple[torch.Tensor, torch.Tensor]:
        half = self._shape.head_size // 2
        frequencies = self._shape.rope_theta ** -(torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(self._limits.context, dtype=torch.float64)[:, None] * frequencies[None]
        return angles.cos().float().to(self._device), angles.sin().float().to(self._device)

    # --- memory

    def _cache_size(self, pages: int) -> tuple[int, ...]:
        """Of each layer keys and values, a row a token."""
        shape = self._shape
        return shape.layers, 2, pages * self._limits.page_tokens, shape.kv_heads, shape.head_size

    def _scratch_rows(self) -> torch.Tensor:
        """Where each slot's positions are in the cache: in page 0 until they have a page."""
        return torch.zeros(self._limits.slots, self._limits.context, dtype=torch.int64, device=self._device)

    def _rows_of(self, pages: Sequence[int]) -> torch.Tensor:
        limits = self._limits
        rows = torch.zeros(limits.pages_per_slot, limits.page_tokens, dtype=torch.int64)
        if pages:
            rows[: len(pages)] = torch.tensor(list(pages))[:, None] * limits.page_tokens + torch.arange(limits.page_tokens)
        return rows.view(-1)

    def _host(self, count: int) -> torch.Tensor:
        return torch.zeros(count, dtype=torch.int64, pin_memory=self._on_gpu)
