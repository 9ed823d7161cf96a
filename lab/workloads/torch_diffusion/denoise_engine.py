# SPDX-License-Identifier: Apache-2.0
"""firebreak-denoise's kernels as the server's engine, on either GPU and without PyTorch: with the seed of the weights a
picture is that program's, bit for bit. A video is several pictures whose seeds follow each other; a large picture is drawn in
tiles of the size of a small one."""

from __future__ import annotations

import array
import ctypes
import math
import pathlib
import struct
from collections.abc import Sequence

import firebreak
from serving.driver import Gpu
from torch_diffusion.forward import Slot
from torch_diffusion.picture import Picture
from torch_diffusion.server import Kind, Work
from torch_diffusion.tiles import GRID, Enlarge, Refine, Sketch, rectangles

PTX = pathlib.Path(__file__).resolve().parents[1] / "denoise" / "denoise.ptx"

# denoise_shape.h, presets.h and sampler.cpp say the same.
SIDE, CHANNELS, BLOCKS = 32, 4, 1
_PIXELS = SIDE * SIDE
_LATENT_CHANNELS, _FEATURE_CHANNELS, _TIME_TERMS = 4, 8, 16
_LATENT_SCALE = 0.25
_WEIGHTS, _NOISE = 1, 2
_LATENT_BYTES = 4 * _LATENT_CHANNELS * _PIXELS
_THREADS = 128
_PICTURE, _VIDEO, _LARGE = range(3)
_FRAMES = 4
_KINDS = (
    Kind("picture", 20),
    Kind("video", 20, operations=_FRAMES),
    Kind("large", 3, sketch_steps=10),
)
_LARGE_SIDE = GRID * SIDE
_BITS = (1 << 64) - 1

_KERNELS = ("generate", "initial_latents", "time_bias", "features", "convolve", "update", "copy", "picture")


def _arguments(name: str, pointers: str, numbers: str) -> type[ctypes.Structure]:
    """A kernel's parameter: addresses and keys of 64 bits, then numbers ("f": a float)."""
    fields = [(field, ctypes.c_uint64) for field in pointers.split()]
    for field in numbers.split():
        kind, _, of = field.partition(":")
        fields.append((of, ctypes.c_float if kind == "f" else ctypes.c_uint32))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


_Generate = _arguments("Generate", "out key", "u:chunks f:scale")
_InitialLatents = _arguments("InitialLatents", "latents key", "u:pixels")
_TimeBias = _arguments("TimeBias", "weights out", "u:count f:time")
_Features = _arguments("Features", "latents waves out", "u:width u:height f:latent_scale")
_Convolve = _arguments(
    "Convolve", "inputs weights bias residual out", "u:width u:height u:in_channels u:out_channels u:activates"
)
_Update = _arguments("Update", "latents prediction key", "u:pixels f:from_picture f:from_latents f:noise")
_Copy = _arguments("Copy", "source target", "u:chunks")
_Pixels = _arguments("Pixels", "latents out", "u:pixels")


def random_bits(key: int, counter: int) -> int:
    """counter_random.h's."""
    value = (key + (counter + 1) * 0x9E3779B97F4A7C15) & _BITS
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _BITS
    value = (value ^ value >> 27) * 0x94D049BB133111EB & _BITS
    return value ^ value >> 31


def random_key(seed: int, purpose: int, index: int) -> int:
    return random_bits(random_bits(seed, purpose), index)


def _signal_power(time_: float) -> float:
    def curve(at: float) -> float:
        return math.cos((at + 0.008) / 1.008 * math.pi / 2.0) ** 2

    return curve(time_) / curve(0.0)


def reverse_step(step: int, steps: int) -> tuple[float, float, float, float]:
    """noise_schedule.cpp's: time, and the parts of the picture, the latents and noise."""
    now, after = (steps - step + 1) / steps, (steps - step) / steps
    next_power = _signal_power(after)
    alpha = max(_signal_power(now) / next_power, 0.001)
    power = alpha * next_power
    return (
        now,
        math.sqrt(next_power) * (1.0 - alpha) / (1.0 - power),
        math.sqrt(alpha) * (1.0 - next_power) / (1.0 - power),
        math.sqrt((1.0 - alpha) * (1.0 - next_power) / (1.0 - power)),
    )


def _float(value: float) -> float:
    """Rounded to 32 bits."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


class _Layout:
    """Where each convolution is: weights and biases in floats, and its channels."""

    def __init__(self) -> None:
        self.floats = self.biases = 0
        channels = [_FEATURE_CHANNELS] + [CHANNELS] * (2 * BLOCKS + 1) + [_LATENT_CHANNELS]
        self.convolutions = [self._convolution(*pair) for pair in zip(channels, channels[1:])]
        self.waves = self._place(16)
        self.time = self._place(_TIME_TERMS * self.biases)

    def _place(self, floats: int) -> int:
        begin = self.floats
        self.floats = -(-(begin + floats) // 64) * 64
        return begin

    def _convolution(self, inputs: int, outputs: int) -> tuple[int, int, int, int]:
        found = self._place(9 * inputs * outputs), self.biases, inputs, outputs
        self.biases += outputs
        return found


class DenoiseEngine:
    """server.Engine. Without a session all memory is the process's own."""

    def __init__(self, slots: int, session: firebreak.Session | None) -> None:
        self._gpu = Gpu()
        self._kernels = self._gpu.kernels(PTX.read_bytes() + b"\0", [f"denoise_{name}" for name in _KERNELS])
        self._layout = _Layout()
        self._half_bytes = max(_FRAMES, GRID * GRID) * _LATENT_BYTES
        sizes = 4 * self._layout.floats, slots * 2 * self._half_bytes
        if session is None:
            self._weights, self._latents = map(self._gpu.allocate, sizes)
        else:
            self._weights = session.allocate("weights", sizes[0], firebreak.Memory.WEIGHTS)
            self._latents = session.allocate("latents", sizes[1])
        self._biases = self._gpu.allocate(4 * self._layout.biases)
        self._features = self._gpu.allocate(4 * _FEATURE_CHANNELS * _PIXELS)
        self._hidden, self._inner = (self._gpu.allocate(4 * CHANNELS * _PIXELS) for _ in range(2))
        self._tile = self._gpu.allocate(_LATENT_BYTES)
        self._prediction = self._gpu.allocate(_LATENT_BYTES)
        self._picture = self._gpu.allocate(3 * GRID * GRID * _PIXELS)
        self._queued = self._ended = 0

    # --- server.Engine

    @property
    def kinds(self) -> Sequence[Kind]:
        return _KINDS

    @property
    def stream(self) -> int:
        return self._gpu.stream

    def step(self, work: Work, slots: Sequence[Slot]) -> None:
        for index in work.slots:
            slot = slots[index]
            reads = _KINDS[slot.shape].reads(slot)
            before, after = self._half(index, reads), self._half(index, 1 - reads)
            if slot.shape == _LARGE:
                self._draw_large(slot, before, after)
                continue
            for frame in range(_FRAMES if slot.shape == _VIDEO else 1):
                offset = frame * _LATENT_BYTES
                self._denoise(slot.seed + frame, slot.done, slot.steps, before + offset, after + offset)
        self._queued = work.step + 1

    def picture(self, index: int, slot: Slot) -> Picture:
        latents = self._half(index, _KINDS[slot.shape].reads(slot))
        if slot.shape == _LARGE:
            return Picture(_LARGE_SIDE, _LARGE_SIDE, [self._pixels(latents, GRID * GRID * _PIXELS)])
        frames = range(_FRAMES if slot.shape == _VIDEO else 1)
        return Picture(SIDE, SIDE, [self._pixels(latents + frame * _LATENT_BYTES, _PIXELS) for frame in frames])

    def first_kernel(self) -> None:
        """Writes what is nobody's."""
        self._noise(self._prediction, 0, _PIXELS)
        self._gpu.synchronize()

    def wait(self, step: int) -> None:
        self._gpu.synchronize()
        self._ended = self._queued

    def ended(self) -> int:
        return self._ended

    # --- the model

    def write_weights(self, seed: int) -> None:
        layout = self._layout
        tensors = [
            (begin, 9 * inputs * outputs, _float(math.sqrt(_float(6.0 / (9 * inputs)))))
            for begin, _, inputs, outputs in layout.convolutions
        ]
        tensors += [(layout.waves, 16, 1.0), (layout.time, _TIME_TERMS * layout.biases, 0.1)]
        for begin, floats, scale in tensors:
            key = random_key(seed, _WEIGHTS, begin)
            generate = _Generate(self._weights + 4 * begin, key, floats // 4, scale)
            self._launch_each("generate", floats // 4, generate)
        self._gpu.synchronize()

    def _denoise(self, seed: int, done: int, steps: int, before: int, after: int) -> None:
        """A step of a small picture."""
        if done == 0:
            self._noise(before, random_key(seed, _NOISE, 0), _PIXELS)
        self._launch_each("copy", _PIXELS, _Copy(before, after, _PIXELS))
        self._reverse(after, reverse_step(done + 1, steps), random_key(seed, _NOISE, done + 1))

    def _draw_large(self, slot: Slot, before: int, after: int) -> None:
        """A unit: what is refined is as noisy as half of the way through."""
        plan = _KINDS[_LARGE].plan(slot.steps)
        unit = plan.unit(slot.done)
        # Units have keys of their own behind those of the sketch.
        key = random_key(slot.seed, _NOISE, slot.done + 1)
        if isinstance(unit, Sketch):
            self._denoise(slot.seed, unit.step, plan.sketch_steps, before, after)
        elif isinstance(unit, Enlarge):
            self._enlarge(before, after, key)
        else:
            steps = 2 * plan.refine_steps
            self._copy_tile(unit, before, self._tile, to_tile=True)
            self._reverse(self._tile, reverse_step(plan.refine_steps + unit.step + 1, steps), key)
            self._copy_tile(unit, after, self._tile, to_tile=False)

    def _enlarge(self, before: int, after: int, key: int) -> None:
        """Each latent becomes 4 x 4, and noise is mixed in over all of the canvas."""
        count = GRID * GRID * _PIXELS
        self._noise(after, key, count)
        noise = array.array("f", self._gpu.read(after, 4 * _LATENT_CHANNELS * count))
        sketch = array.array("f", self._gpu.read(before, _LATENT_BYTES))
        power = _signal_power(0.5)
        of_sketch, of_noise = math.sqrt(power), math.sqrt(1.0 - power)
        for at in range(len(noise)):
            pixel, channel = divmod(at, _LATENT_CHANNELS)
            row, column = divmod(pixel, _LARGE_SIDE)
            under = (row // GRID * SIDE + column // GRID) * _LATENT_CHANNELS + channel
            noise[at] = of_sketch * sketch[under] + of_noise * noise[at]
        self._gpu.write(after, noise.tobytes())

    def _copy_tile(self, unit: Refine, canvas: int, tile: int, to_tile: bool) -> None:
        bytes_each = 4 * _LATENT_CHANNELS
        for row, column, tile_row, tile_column, height, width in rectangles(_LARGE_SIDE, unit.step, unit.tile):
            on_canvas = canvas + (row * _LARGE_SIDE + column) * bytes_each, _LARGE_SIDE * bytes_each
            in_tile = tile + (tile_row * SIDE + tile_column) * bytes_each, SIDE * bytes_each
            source, target = (on_canvas, in_tile) if to_tile else (in_tile, on_canvas)
            self._gpu.copy_rows(source, target, width * bytes_each, height)

    def _noise(self, latents: int, key: int, pixels: int) -> None:
        self._launch_each("initial_latents", pixels, _InitialLatents(latents, key, pixels))

    def _reverse(self, latents: int, parts: tuple[float, float, float, float], key: int) -> None:
        """A reverse step of the diffusion, in place."""
        time_, *weights = parts
        self._predict(latents, time_)
        self._launch_each("update", _PIXELS, _Update(latents, self._prediction, key, _PIXELS, *weights))

    def _predict(self, latents: int, time_: float) -> None:
        layout = self._layout
        bias = _TimeBias(self._weights + 4 * layout.time, self._biases, layout.biases, time_)
        self._launch_each("time_bias", layout.biases, bias)
        waves = self._weights + 4 * layout.waves
        features = _Features(latents, waves, self._features, SIDE, SIDE, _LATENT_SCALE)
        self._launch_each("features", _PIXELS, features)
        self._convolve(0, self._features, self._hidden, activates=True)
        for block in range(BLOCKS):
            self._convolve(1 + 2 * block, self._hidden, self._inner, activates=True)
            self._convolve(2 + 2 * block, self._inner, self._hidden, residual=self._hidden)
        self._convolve(1 + 2 * BLOCKS, self._hidden, self._prediction)

    def _convolve(self, number: int, source: int, out: int, activates: bool = False, residual: int = 0) -> None:
        begin, bias, inputs, outputs = self._layout.convolutions[number]
        weights = self._weights + 4 * begin
        arguments = _Convolve(
            source, weights, self._biases + 4 * bias, residual, out, SIDE, SIDE, inputs, outputs, int(activates)
        )
        self._launch_each("convolve", _PIXELS, arguments, outputs // 4)

    def _launch_each(self, name: str, count: int, arguments: ctypes.Structure, rows: int = 1) -> None:
        blocks = -(-count // _THREADS), rows
        self._gpu.launch(self._kernels[f"denoise_{name}"], blocks, _THREADS, arguments)

    def _half(self, index: int, which: int) -> int:
        """One of the two latents of a slot."""
        return self._latents + (2 * index + which) * self._half_bytes

    def _pixels(self, latents: int, count: int) -> bytes:
        self._launch_each("picture", count, _Pixels(latents, self._picture, count))
        return self._gpu.read(self._picture, 3 * count)
