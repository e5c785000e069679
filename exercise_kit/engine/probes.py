"""Seeded draws: the inputs on which right and wrong answers part."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

TALL = (12, 8)
WIDE = (6, 10)
Element = TypeVar("Element")


class Probe:
    """A source of inputs that depends on nothing but its seed.

    Checks choose sizes that are pairwise distinct and none of them 1, images that are taller than wide and
    wider than tall, more than one channel, and weights large enough that two answers do not look alike.
    """

    def __init__(self, seed: int | str) -> None:
        number = zlib.crc32(seed.encode()) if isinstance(seed, str) else seed
        self._generator = torch.Generator("cpu").manual_seed(number)

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype = torch.float32) -> Tensor:
        """Independent N(0, scale²) numbers."""
        drawn = torch.randn(*shape, generator=self._generator, device="cpu", dtype=torch.float32)
        return (drawn * scale).to(dtype)

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Independent numbers, uniform in [low, high), float32."""
        drawn = torch.rand(*shape, generator=self._generator, device="cpu", dtype=torch.float32)
        return low + (high - low) * drawn

    def integers(self, *shape: int, high: int) -> Tensor:
        """Independent integers from 0 to high - 1."""
        return torch.randint(high, shape, generator=self._generator, device="cpu")

    def sizes(self, count: int, low: int = 2, high: int = 9) -> tuple[int, ...]:
        """Integers from ``low`` to ``high``, no two of them equal and none of them 1.

        Raises:
            ValueError: there are fewer than ``count`` such integers.
        """
        possible = [size for size in range(low, high + 1) if size != 1]
        if count > len(possible):
            raise ValueError(f"there are no {count} different sizes from {low} to {high}")
        order = torch.randperm(len(possible), generator=self._generator, device="cpu")
        return tuple(possible[int(index)] for index in order[:count])

    def choice(self, among: Sequence[Element]) -> Element:
        """One of the elements of ``among``."""
        return among[int(self.integers(1, high=len(among)))]

    def permutation(self, length: int) -> Tensor:
        """A random order of 0 to length - 1, never the given one."""
        order = torch.randperm(length, generator=self._generator, device="cpu")
        return order if not torch.equal(order, torch.arange(length, device="cpu")) else order.roll(1)

    def images(self, batch: int, channels: int, height: int, width: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Images of N(0, 1) pixels, (batch, channels, height, width)."""
        return self.normal(batch, channels, height, width, dtype=dtype)

    def numbered_images(self, batch: int, channels: int, height: int, width: int) -> Tensor:
        """Images in which no two pixels are equal: pixel values count up in memory order, float32."""
        count = batch * channels * height * width
        return torch.arange(count, dtype=torch.float32, device="cpu").reshape(batch, channels, height, width)

    def weights(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
        """A value for every parameter, norms and biases too, by name.

        Matrices are drawn with variance 1 / fan_in, so that activations keep an order of 1; scales of norms
        lie around 1, everything else around 0 with a standard deviation of a half.
        """
        drawn = {}
        for name, size in shapes.items():
            if len(size) > 1 and name.endswith("weight"):
                fan_in = math.prod(size[1:])
                drawn[name] = self.normal(*size, scale=fan_in**-0.5)
            elif name.endswith("weight"):
                drawn[name] = 1.0 + self.normal(*size, scale=0.3)
            else:
                drawn[name] = self.normal(*size, scale=0.5)
        return drawn
