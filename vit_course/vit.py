"""The Vision Transformer: image to patches to tokens to logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.encoder import Encoder, EncoderBlock
from vit_course.initialisation import initialise
from vit_course.patches import PatchEmbedding
from vit_course.positions import add_class_token, sinusoidal_positions, sinusoidal_positions_2d


class VisionTransformer(nn.Module):
    """A plain ViT, every size and choice of it in a :class:`~vit_course.config.ViTConfig`.

    Attributes: ``patch_embedding``; ``class_token`` (1, 1, embed_dim), or None with mean pooling;
    ``positions`` (1, tokens, embed_dim), a parameter, a buffer or None; ``blocks``; ``norm``; ``head``.
    :func:`vit_course.record` shows what passes between them.

    Shapes: (batch, in_channels, height, width) → logits (batch, num_classes).

    Raises:
        ValueError: in ``forward``, where the images are not of the size that the config names.

    Source: Dosovitskiy et al. 2020, section 3.1, figure 1 and equations 1 to 4.
    """

    class_token: nn.Parameter | None
    positions: Tensor | None

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        dim = config.embed_dim
        self.patch_embedding = PatchEmbedding(config.in_channels, config.patch_size, dim, config.patch_embedding)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim)) if config.pooling == "class_token" else None
        self._make_positions()
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)
        self.blocks = Encoder(_make_block(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(dim, eps=config.layer_norm_eps)
        self.head = _make_head(config)
        initialise(self)

    def forward(self, images: Tensor) -> Tensor:
        """Classify images (batch, in_channels, height, width): logits (batch, num_classes)."""
        self._check_images(images)
        tokens = self._embed(self.patch_embedding(images))  # (batch, tokens, embed_dim)
        tokens = self.norm(self.blocks(self.embedding_dropout(tokens)))
        pooled = tokens.mean(dim=1) if self.class_token is None else tokens[:, 0]  # (batch, embed_dim)
        return self.head(pooled)

    def _embed(self, patches: Tensor) -> Tensor:
        """Add positions to (batch, num_patches, embed_dim), behind a class token where there is one."""
        positions = patches.new_zeros(1, self.config.num_tokens, 1) if self.positions is None else self.positions
        if self.class_token is None:
            return patches + positions
        return add_class_token(patches, self.class_token, positions)

    def _check_images(self, images: Tensor) -> None:
        expected = (self.config.in_channels, self.config.height, self.config.width)
        if images.ndim != 4 or tuple(images.shape[1:]) != expected:
            raise ValueError(f"images must be (batch, {', '.join(map(str, expected))}), not {tuple(images.shape)}")

    def _make_positions(self) -> None:
        """Set ``positions``: nothing, a fixed table (buffer), or a parameter."""
        config = self.config
        table = torch.zeros(1, config.num_tokens, config.embed_dim)
        if config.positions in ("sinusoidal", "learned_from_sinusoidal"):
            table[0] = sinusoidal_positions(config.num_tokens, config.embed_dim)
        elif config.positions == "sinusoidal_2d":
            table[0, -config.num_patches :] = sinusoidal_positions_2d(config.grid_size, config.embed_dim)
        if config.positions in ("learned", "learned_from_sinusoidal"):
            self.positions = nn.Parameter(table)
        else:
            self.register_buffer("positions", None if config.positions == "none" else table)


def _make_block(config: ViTConfig) -> EncoderBlock:
    return EncoderBlock(
        config.embed_dim,
        config.num_heads,
        mlp_ratio=config.mlp_ratio,
        qkv_bias=config.qkv_bias,
        attention_dropout=config.attention_dropout,
        projection_dropout=config.projection_dropout,
        mlp_dropout=config.mlp_dropout,
        gelu=config.gelu,
        layer_norm_eps=config.layer_norm_eps,
    )


def _make_head(config: ViTConfig) -> nn.Linear | nn.Sequential:
    if config.representation_size is None:
        return nn.Linear(config.embed_dim, config.num_classes)
    return nn.Sequential(
        nn.Linear(config.embed_dim, config.representation_size),
        nn.Tanh() if config.head_activation == "tanh" else nn.ReLU(),
        nn.Linear(config.representation_size, config.num_classes),
    )
