"""Inputs of a middle size, with which the speed of right answers is told: some hundreds of patches, or of tokens."""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.pace import Pace
from vit_course.config import ViTConfig

PATCH, DIM, HEADS = 4, 48, 3


def _draw_images(images: int, rows: int) -> Tensor:
    """(images, 3, rows of patches, 8 patches in a row), in pixels."""
    return torch.rand(images, 3, rows * PATCH, 8 * PATCH)


def _draw_tokens(images: int, tokens: int) -> Tensor:
    return torch.randn(images, tokens, DIM)


_IMAGES_AND_ROWS = {"images": 16, "rows of patches": 8}
_IMAGES_AND_TOKENS = {"images": 16, "tokens": 64}
_HEADS = {"images": 8, "heads": 4, "tokens": 32}
_MODEL = {"images": 4, "blocks": 2}


def _make_config(blocks: int) -> ViTConfig:
    return ViTConfig(
        image_size=32, patch_size=PATCH, num_classes=10, embed_dim=DIM, depth=blocks, num_heads=HEADS, mlp_ratio=2
    )


PACES = {
    "patchify": Pace(_IMAGES_AND_ROWS, lambda images, rows: (_draw_images(images, rows), PATCH)),
    "unpatchify": Pace(
        _IMAGES_AND_ROWS,
        lambda images, rows: (torch.rand(images, rows * 8, 3 * PATCH**2), PATCH, (rows * PATCH, 8 * PATCH)),
    ),
    "PatchEmbedding": Pace(
        _IMAGES_AND_ROWS, lambda images, rows: (_draw_images(images, rows),), lambda images, rows: (3, PATCH, DIM)
    ),
    "sinusoidal_positions": Pace({"tokens": 256, "pairs of numbers": 32}, lambda tokens, pairs: (tokens, 2 * pairs)),
    "sinusoidal_positions_2d": Pace({"rows": 16}, lambda rows: ((rows, 16), 64)),
    "add_class_token": Pace(
        _IMAGES_AND_TOKENS,
        lambda images, tokens: (_draw_tokens(images, tokens), torch.randn(1, 1, DIM), _draw_tokens(1, 1 + tokens)),
    ),
    "scaled_dot_product_attention": Pace(
        _HEADS, lambda images, heads, tokens: tuple(torch.randn(3, images, heads, tokens, 16).unbind())
    ),
    "split_heads": Pace({"images": 16, "heads": 4}, lambda images, heads: (torch.randn(images, 64, heads * 16), heads)),
    "MultiHeadSelfAttention": Pace(
        {"images": 8, "heads": 4},
        lambda images, heads: (torch.randn(images, 32, heads * 16),),
        lambda images, heads: (heads * 16, heads),
    ),
    "Mlp": Pace(
        _IMAGES_AND_TOKENS,
        lambda images, tokens: (_draw_tokens(images, tokens),),
        lambda images, tokens: (DIM, 2 * DIM),
    ),
    "EncoderBlock": Pace(
        {"images": 8, "tokens": 32},
        lambda images, tokens: (_draw_tokens(images, tokens),),
        lambda images, tokens: (DIM, HEADS),
    ),
    "VisionTransformer": Pace(
        _MODEL, lambda images, blocks: (torch.rand(images, 3, 32, 32),), lambda images, blocks: (_make_config(blocks),)
    ),
}
