"""What to do when something does not fit into the device's memory: say so, and find a batch that does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from vit_course.training.stops import OutOfMemoryError


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
        return f"out of memory with {batch_size} images a step, and with one: take a smaller model, or train on the CPU"
    return f"out of memory with {batch_size} images a step; {fitting} fit: take batches of {fitting}, or fewer"


@contextmanager
def room_on(device: torch.device) -> Iterator[None]:
    """Tell it in words when what a run keeps on its device from the start finds no room there.

    Raises:
        OutOfMemoryError: of no batch size, since not one step was taken.
    """
    try:
        yield
    except RuntimeError as error:
        # torch has a class of its own for what it allocates, and none for a device that is too full to be opened
        if not isinstance(error, torch.OutOfMemoryError) and "out of memory" not in str(error):
            raise
        raise OutOfMemoryError(
            f"{device} is out of memory before the first step: other programs hold it (nvidia-smi names them), or the "
            "images and the model do not fit; make room, take fewer images or a smaller model, or train on the CPU",
            None,
        ) from error
