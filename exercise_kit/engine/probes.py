"""Seeded draws for a check's inputs, and torch's global settings, which a check neither depends on nor changes."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import os
import sys
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

TALL = (12, 8)
WIDE = (6, 10)
Element = TypeVar("Element")


class Probe:
    """A source of inputs that depends on nothing but its seed.

    Checks choose sizes that differ from each other and from 1, images that are taller than wide and others that
    are wider than tall, more than one channel, and weights so large that no two answers look alike.

    Args:
        seed: a number, or a text.
        is_secret: whether it grades. ``check`` asks a claim with a probe that is not: sizes are those that the claim
            shows, small and printable, the same for everybody.
    """

    def __init__(self, seed: int | str, is_secret: bool = True) -> None:
        self.is_secret = is_secret
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

    def every_digit(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Numbers that need every digit of their dtype, and that float64 holds as well."""
        if dtype.is_floating_point:
            fine = self.normal(*shape).double() + 1e-9 * self.normal(*shape).double()
            return fine.to(dtype)
        return self.integers(*shape, high={torch.bool: 2, torch.uint8: 256}.get(dtype, 2**40)).to(dtype)

    def sizes(self, count: int, low: int = 2, high: int = 9, shown: tuple[int, ...] = ()) -> tuple[int, ...]:
        """Integers from ``low`` to ``high``, no two of them equal and none of them 1.

        Args:
            count: how many.
            low, high: between which they lie.
            shown: those of a probe that is not secret, where they are not drawn.

        Raises:
            ValueError: there are fewer than ``count`` such integers, or other than ``count`` are shown.
        """
        if shown and len(shown) != count:
            raise ValueError(f"{count} sizes are asked for, and {len(shown)} are shown")
        if shown and not self.is_secret:
            return shown
        possible = [size for size in range(low, high + 1) if size != 1]
        if count > len(possible):
            raise ValueError(f"there are no {count} different sizes from {low} to {high}")
        order = torch.randperm(len(possible), generator=self._generator, device="cpu")
        return tuple(possible[int(index)] for index in order[:count])

    def choice(self, among: Sequence[Element], shown: Element | None = None) -> Element:
        """One of the elements of ``among``; ``shown`` for a probe that is not secret, where it is given."""
        if shown is not None and not self.is_secret:
            return shown
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


@contextlib.contextmanager
def use_fresh_settings() -> Iterator[None]:
    """Torch as at a fresh start: float32, CPU, gradients on, no autocast, a fixed random state."""
    with keep_settings(), torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
        if torch.get_default_device().type != "cpu":
            torch.set_default_device("cpu")
        torch.set_default_dtype(torch.float32)
        torch.default_generator.manual_seed(0)
        with torch.autocast("cpu", enabled=False):
            yield


@contextlib.contextmanager
def keep_settings() -> Iterator[None]:
    """Put back what the code inside changes: default dtype and device, gradient mode, threads, warnings."""
    dtype, device = torch.get_default_dtype(), _get_chosen_device()
    gradients, threads, depth = torch.is_grad_enabled(), torch.get_num_threads(), sys.getrecursionlimit()
    with warnings.catch_warnings():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            torch.set_grad_enabled(gradients)
            if _get_chosen_device() != device:
                torch.set_default_device(device)
            if torch.get_num_threads() != threads:
                torch.set_num_threads(threads)
            sys.setrecursionlimit(depth)


def _get_chosen_device() -> torch.device | None:
    """Return what ``set_default_device`` was given last; ``get_default_device`` cannot tell None from the CPU."""
    context = getattr(getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None), "device_context", None)
    return None if context is None else context.device


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Nothing on stderr, for which nbgrader gives a cell zero: no warning, no log, no line of torch's C++."""
    silenced = logging.root.manager.disable
    with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()), _silence_descriptor():
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(silenced)


@contextlib.contextmanager
def disable_compilation() -> Iterator[None]:
    """Run what torch.compile has compiled as it was written: at once, and seen by whoever watches."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and the import takes a second
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def _silence_descriptor() -> Iterator[None]:
    """Send file descriptor 2 to nowhere; where there is none, leave things as they are."""
    try:
        kept = os.dup(2)
    except OSError:
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
