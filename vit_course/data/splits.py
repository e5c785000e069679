"""Which images train and which only judge."""

from __future__ import annotations

import torch
from torch import Tensor


def split_indices(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Deal the numbers 0 to num_samples - 1 out at random: most to training, the rest to validation.

    The same seed makes the same split; torch's global generator is left as it was.

    Returns:
        train_indices (num_samples - num_validation,) and validation_indices (num_validation,), both int64,
        shuffled, with no number in both.

    Raises:
        ValueError: when a part would be empty.
    """
    if not 0 < num_validation < num_samples:
        raise ValueError(f"num_validation {num_validation} is not between 1 and {num_samples - 1}")
    order = torch.randperm(num_samples, generator=torch.Generator().manual_seed(seed))
    return order[num_validation:], order[:num_validation]
