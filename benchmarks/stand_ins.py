"""Trainable versions of the misconceptions that the library keeps as empty shells.

For a check it is enough that a wrong class holds the wrong parameters; here it has to compute as the code of a
student who made that mistake would.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.attention import merge_heads
from vit_course.config import ViTConfig
from vit_course.encoder import Encoder, EncoderBlock
from vit_course.exercises.catalog import EXERCISES
from vit_course.vit import VisionTransformer


class LayersInPlainList(EncoderBlock):
    """The optimizer never sees the block's layers, so they stay as they started."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__(embed_dim, num_heads, mlp_ratio)
        self.requires_grad_(False)


class LayersMadeInForward(nn.Module):
    """Every forward draws new layers, which nobody trains."""

    def __init__(self, embed_dim: int, num_heads: int, mlp_ratio: float = 4.0) -> None:
        super().__init__()
        self.sizes = embed_dim, num_heads, mlp_ratio

    def forward(self, x: Tensor) -> Tensor:
        return EncoderBlock(*self.sizes).to(x.device)(x)


class TensorsThatAreNoParameters(VisionTransformer):
    """The optimizer never sees class token and positions, so they stay as they started."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        for tensor in (self.class_token, self.positions):
            if tensor is not None:
                tensor.requires_grad_(False)


class AllTokensIntoTheHead(VisionTransformer):
    """The head reads all tokens as one long vector; like the right one it starts at zero."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        self.head = nn.Linear(config.num_tokens * config.embed_dim, config.num_classes)
        nn.init.zeros_(self.head.weight)

    def forward(self, images: Tensor) -> Any:
        tokens = self._embed(self.patch_embedding(images))
        return self.head(self.norm(self.blocks(tokens)).flatten(1))


class LibraryLayersForTheBlocks(VisionTransformer):
    """The blocks are torch's own with all their defaults, its initialization and its dropout of 0.1 among them."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__(config)
        sizes = config.embed_dim, config.num_heads, config.hidden_dim
        self.blocks = Encoder(nn.TransformerEncoderLayer(*sizes, batch_first=True) for _ in range(config.depth))


class HeadsOnSlices(nn.Module):
    """Each head has small maps of its own that read its slice of the token alone, and no projection follows."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        head_dim = embed_dim // num_heads
        self.heads = nn.ModuleList(nn.Linear(head_dim, 3 * head_dim) for _ in range(num_heads))

    def forward(self, x: Tensor) -> Tensor:
        slices = x.chunk(len(self.heads), dim=-1)
        made = torch.stack([head(part) for head, part in zip(self.heads, slices, strict=True)], dim=1)
        return merge_heads(F.scaled_dot_product_attention(*made.chunk(3, dim=-1)))


STAND_INS: dict[tuple[str, str], Callable[..., Any]] = {
    ("EncoderBlock", "layers in plain list"): LayersInPlainList,
    ("EncoderBlock", "layers made in forward"): LayersMadeInForward,
    ("VisionTransformer", "tensors that are no parameters"): TensorsThatAreNoParameters,
    ("VisionTransformer", "no position for the class token"): EXERCISES["VisionTransformer"]
    .mistake("positions before the class token")
    .objects[0],
    ("VisionTransformer", "all tokens into the head"): AllTokensIntoTheHead,
    ("VisionTransformer", "library layers for the blocks"): LibraryLayersForTheBlocks,
}
