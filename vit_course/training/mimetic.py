"""A start in which attention looks like that of trained Vision Transformers: near tokens, and those that are alike."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.vit import VisionTransformer

# shares of the identity and of noise: in the scores' matrix, and in what a token gets from those that it attends to
SCORES, OUTPUT = (0.7, 0.7), (-0.4, 0.4)
# the slowest wave turns by a thirtieth of a radian from patch to patch: in a Transformer's table, made for thousands of
# places, most waves would stand still over the eight of a row
SLOWEST = 30


@torch.no_grad()
def initialise_mimetically(model: VisionTransformer) -> None:
    """Start a model's attention and learned positions in place; draws noise from torch's global generator.

    In trained models the product of each head's query and key weights has a strong diagonal, so that a token attends to
    tokens that are alike; that of values and projection has a negative one. Positions start as waves of rows and
    columns, of variance `position_std` squared, so that neighbors are alike from the first step on.

    Raises:
        ValueError: `embed_dim` is not divisible by 4, as waves in two directions need.

    Source: Trockman and Kolter 2023, "Mimetic Initialization of Self-Attention Layers".
    """
    config = model.config
    if model.positions is not None and config.positions == "learned":
        rows, columns = (_make_waves(side, config.embed_dim) for side in config.grid_size)
        waves = torch.cat([rows.repeat_interleave(len(columns), dim=0), columns.repeat(len(rows), 1)], dim=1)
        model.positions[:, -config.num_patches :] = waves * config.position_std * 2**0.5
    for block in model.blocks:
        attention = block.attention
        queries, keys, values = attention.qkv.weight.chunk(3)
        for query, key in zip(queries.chunk(config.num_heads), keys.chunk(config.num_heads), strict=True):
            for part, factor in zip((query, key), _factor_noisy_identity(config.embed_dim, *SCORES), strict=True):
                part.copy_(factor[:, : len(part)].T)
        outputs, inputs = _factor_noisy_identity(config.embed_dim, *OUTPUT)
        attention.projection.weight.copy_(outputs)
        values.copy_(inputs.T)


def _make_waves(places: int, dim: int) -> Tensor:
    """Sines and cosines for the places of a row or column: (places, dim / 2)."""
    if dim % 4:
        raise ValueError(f"embed_dim {dim} is not divisible by 4, as waves along rows and columns need")
    angles = torch.arange(places)[:, None] * SLOWEST ** torch.linspace(0, -1, dim // 4)
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def _factor_noisy_identity(dim: int, diagonal: float, noise: float) -> tuple[Tensor, Tensor]:
    """Split a noisy multiple of the identity, (dim, dim), in two: `left @ right.T` is it, strongest columns first."""
    left, sizes, right = torch.linalg.svd(diagonal * torch.eye(dim) + noise * torch.randn(dim, dim) / dim**0.5)
    return left * sizes.sqrt(), right.T * sizes.sqrt()
