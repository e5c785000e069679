"""Where a patch was: tables of positions, and the class token that joins the patches."""

from __future__ import annotations

import torch
from torch import Tensor

BASE = 10_000.0


def sinusoidal_positions(num_positions: int, embed_dim: int) -> Tensor:
    """The sine and cosine table of the Transformer, interleaved: sin, cos, sin, cos, ...

    Entry (p, 2i) is sin(p / 10000^(2i / embed_dim)), entry (p, 2i + 1) the cosine of the same angle.

    Returns:
        (num_positions, embed_dim) in float32.

    Raises:
        ValueError: ``embed_dim`` is odd.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.

    >>> [round(x, 3) for x in sinusoidal_positions(2, 4)[1].tolist()]  # sin 1, cos 1, sin 0.01, cos 0.01
    [0.841, 0.54, 0.01, 1.0]
    """
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 2")
    position = torch.arange(num_positions, dtype=torch.float64)
    frequency = BASE ** (-torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim)
    angles = torch.outer(position, frequency)  # (num_positions, embed_dim / 2)
    waves = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (num_positions, embed_dim / 2, 2)
    return waves.flatten(1).float()  # (num_positions, embed_dim)


def sinusoidal_positions_2d(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """A table for a grid of patches: the first half of the dimensions encodes the row, the second half the column.

    Returns:
        (rows * columns, embed_dim) in float32, row by row, where ``grid_size`` is (rows, columns).

    Raises:
        ValueError: ``embed_dim`` is not divisible by 4.
    """
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    rows, columns = grid_size
    of_row = sinusoidal_positions(rows, embed_dim // 2).repeat_interleave(columns, dim=0)
    of_column = sinusoidal_positions(columns, embed_dim // 2).repeat(rows, 1)
    return torch.cat([of_row, of_column], dim=1)  # (rows * columns, embed_dim)


def add_class_token(tokens: Tensor, class_token: Tensor, positions: Tensor) -> Tensor:
    """Put the class token in front of the patches, then add the positions.

    Args:
        tokens: (batch, tokens, embed_dim).
        class_token: (1, 1, embed_dim), the same for every image.
        positions: (1, 1 + tokens, embed_dim).

    Returns:
        (batch, 1 + tokens, embed_dim).

    Raises:
        ValueError: ``positions`` has not one row for every patch and one for the class token.

    Source: Dosovitskiy et al. 2020, equation 1.
    """
    batch, num_patches, _ = tokens.shape
    if positions.shape[-2] != num_patches + 1:
        raise ValueError(f"positions has {positions.shape[-2]} rows, not 1 + {num_patches}")
    return torch.cat([class_token.expand(batch, 1, -1), tokens], dim=1) + positions
