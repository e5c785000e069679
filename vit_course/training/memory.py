"""What to do when a batch does not fit into the device's memory: find one that does."""

from __future__ import annotations

from collections.abc import Callable

import torch


def largest_that_fits(attempt: Callable[[int], None], batch_size: int) -> int | None:
    """Halve a batch size until a step with it does not run out of memory.

    Args:
        attempt: does a forward and a backward pass with so many images.
        batch_size: that ran out of memory.

    Returns:
        The first half, quarter and so on that fits; None when one image does not.
    """
    while batch_size > 1:
        batch_size //= 2
        if _fits(attempt, batch_size):
            return batch_size
    return None


def _fits(attempt: Callable[[int], None], batch_size: int) -> bool:
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    try:
        attempt(batch_size)
    except torch.OutOfMemoryError:
        return False
    return True


def advice(batch_size: int, fitting: int | None) -> str:
    """What to tell somebody whose batch did not fit."""
    if fitting is None:
        return f"out of memory with {batch_size} images a step, and with one: take a smaller model or device auto"
    return f"out of memory with {batch_size} images a step; {fitting} fit: set batch_size={fitting}, or less"
