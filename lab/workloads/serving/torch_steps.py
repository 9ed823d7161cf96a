# SPDX-License-Identifier: Apache-2.0
"""What engines in PyTorch have in common: a stream of their own on a GPU, and which steps have ended there."""

from __future__ import annotations

import torch


class Steps:
    """Of a server's engine. Steps are numbered from 1 on; ends of the last `kept` are remembered."""

    def __init__(self, device: str, kept: int) -> None:
        self._device = torch.device(device)
        self._on_gpu = self._device.type == "cuda"
        if self._on_gpu:
            torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
            torch.cuda.set_stream(torch.cuda.Stream())
        self._kept = kept
        self._events: dict[int, torch.cuda.Event] = {}
        self._ended = 1

    @property
    def stream(self) -> int:
        return int(torch.cuda.current_stream().cuda_stream) if self._on_gpu else 0

    def wait(self, step: int) -> None:
        event = self._events.get(step)
        if event is not None:
            event.synchronize()

    def ended(self) -> int:
        while (event := self._events.get(self._ended)) is not None and event.query():
            del self._events[self._ended]
            self._ended += 1
        return self._ended

    def _note_end(self, step: int) -> None:
        """Of what was queued for it; the CPU has done that."""
        if not self._on_gpu:
            self._ended = step + 1
            return
        self._events[step] = event = torch.cuda.Event(blocking=False)
        event.record(torch.cuda.current_stream())
        self._events.pop(step - self._kept, None)

    def _synchronize(self) -> None:
        if self._on_gpu:
            torch.cuda.current_stream().synchronize()
