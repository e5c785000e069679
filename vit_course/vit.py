"""The Vision Transformer: image to patches to tokens to logits."""

from __future__ import annotations

import math
from typing import Literal, overload

import torch
from torch import Tensor, nn

from vit_course.attention import MultiHeadSelfAttention
from vit_course.config import ViTConfig
from vit_course.encoder import Encoder, EncoderBlock
from vit_course.patches import PatchEmbedding
from vit_course.positions import sinusoidal_positions, sinusoidal_positions_2d


class VisionTransformer(nn.Module):
    """A plain ViT, every size and choice of it in a :class:`~vit_course.config.ViTConfig`.

    Attributes: ``patch_embedding``; ``class_token`` (1, 1, embed_dim), or None with mean pooling;
    ``positions`` (1, tokens, embed_dim), a parameter, a buffer or None; ``blocks``; ``norm``; ``head``.

    Shapes: (batch, in_channels, height, width) → logits (batch, num_classes).

    Source: Dosovitskiy et al. 2020, section 3.1, figure 1 and equations 1 to 4.
    """

    class_token: nn.Parameter | None
    positions: Tensor | None

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embedding = PatchEmbedding(
            config.in_channels, config.patch_size, config.embed_dim, config.patch_embedding
        )
        self.class_token = self._make_class_token()
        self._make_positions()
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)
        self.blocks = Encoder(self._make_block() for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.embed_dim, eps=config.layer_norm_eps)
        self.head = self._make_head()
        initialise(self)

    @overload
    def forward(self, images: Tensor, return_intermediates: Literal[False] = False) -> Tensor: ...
    @overload
    def forward(self, images: Tensor, return_intermediates: Literal[True]) -> tuple[Tensor, dict[str, Tensor]]: ...
    def forward(self, images: Tensor, return_intermediates: bool = False) -> Tensor | tuple[Tensor, dict[str, Tensor]]:
        """Classify images (batch, in_channels, height, width): logits (batch, num_classes).

        With ``return_intermediates`` also every stage by name, in order: "patch_embedding", "class_token",
        "embedding", "blocks.0.attention.weights", "blocks.0.attention", "blocks.0.mlp", "blocks.0.output",
        ..., "norm", "pooled", "logits". The attention weights are (batch, num_heads, tokens, tokens).

        Raises:
            ValueError: the images are not of the size that the config names.
        """
        self._check_images(images)
        block_stages: dict[str, Tensor] | None = {} if return_intermediates else None
        patches = self.patch_embedding(images)  # (batch, num_patches, embed_dim)
        tokens = self._prepend_class_token(patches)  # (batch, tokens, embed_dim)
        embedding = self.embedding_dropout(self._add_positions(tokens))
        normed = self.norm(self.blocks(embedding, block_stages))
        pooled = normed.mean(dim=1) if self.class_token is None else normed[:, 0]  # (batch, embed_dim)
        logits = self.head(pooled)
        if block_stages is None:
            return logits
        before = {"patch_embedding": patches, "class_token": tokens, "embedding": embedding}
        within = {f"blocks.{name}": stage for name, stage in block_stages.items()}
        return logits, before | within | {"norm": normed, "pooled": pooled, "logits": logits}

    def _check_images(self, images: Tensor) -> None:
        config = self.config
        wanted = (config.in_channels, config.height, config.width)
        if images.ndim != 4 or tuple(images.shape[1:]) != wanted:
            raise ValueError(f"images must be (batch, {', '.join(map(str, wanted))}), not {tuple(images.shape)}")

    def _prepend_class_token(self, patches: Tensor) -> Tensor:
        if self.class_token is None:
            return patches
        return torch.cat([self.class_token.expand(len(patches), -1, -1), patches], dim=1)

    def _add_positions(self, tokens: Tensor) -> Tensor:
        return tokens if self.positions is None else tokens + self.positions

    def _make_class_token(self) -> nn.Parameter | None:
        if self.config.pooling == "mean":
            return None
        return nn.Parameter(torch.zeros(1, 1, self.config.embed_dim))

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

    def _make_block(self) -> EncoderBlock:
        config = self.config
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

    def _make_head(self) -> nn.Linear | nn.Sequential:
        config = self.config
        if config.representation_size is None:
            return nn.Linear(config.embed_dim, config.num_classes)
        return nn.Sequential(
            nn.Linear(config.embed_dim, config.representation_size),
            nn.Tanh() if config.head_activation == "tanh" else nn.ReLU(),
            nn.Linear(config.representation_size, config.num_classes),
        )


@torch.no_grad()
def initialise(model: VisionTransformer) -> None:
    """Give every weight and bias its starting value, after ``model.config.initialisation``.

    - "paper": the authors' released code. Linears Xavier-uniform (queries, keys and values each on their
      own), MLP biases N(0, 1e-6), patch embedding and hidden Linear of the head by fan-in, last Linear zero.
    - "torchvision": the same, but queries, keys and values share one Xavier bound, and the attention's
      projection starts as torch starts every Linear.
    - "truncated_normal": every Linear and convolution N(0, 0.02), cut at two standard deviations, every
      bias zero, as in BERT; the class token too.

    Otherwise the class token starts at zero. Learned positions are N(0, position_std), cut in
    "truncated_normal"; tables of sines stay as they are.
    """
    config = model.config
    cut = config.initialisation == "truncated_normal"
    if model.positions is not None and config.positions == "learned":
        _normal(model.positions, config.position_std, cut)
    if cut:
        _initialise_alike(model)
        return
    _initialise_by_fan_in(model.patch_embedding.projection)
    for block in model.blocks:
        _initialise_attention(block.attention, after_paper=config.initialisation == "paper")
        for linear in (block.mlp.fc1, block.mlp.fc2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.normal_(linear.bias, std=1e-6)
    *hidden, last = (module for module in model.head.modules() if isinstance(module, nn.Linear))
    for linear in hidden:
        _initialise_by_fan_in(linear)
    nn.init.zeros_(last.weight)
    _zero(last.bias)


def _initialise_alike(model: VisionTransformer) -> None:
    for module in model.modules():
        if isinstance(module, nn.Linear | nn.Conv2d):
            _normal(module.weight, std=0.02, cut=True)
            _zero(module.bias)
    if model.class_token is not None:
        _normal(model.class_token, std=0.02, cut=True)


def _initialise_attention(attention: MultiHeadSelfAttention, after_paper: bool) -> None:
    qkv, projection = attention.qkv, attention.projection
    for part in qkv.weight.chunk(3) if after_paper else (qkv.weight,):
        nn.init.xavier_uniform_(part)
    _zero(qkv.bias)
    if after_paper:
        nn.init.xavier_uniform_(projection.weight)
    else:
        projection.reset_parameters()
    _zero(projection.bias)


def _initialise_by_fan_in(layer: nn.Linear | nn.Conv2d) -> None:
    fan_in = layer.weight[0].numel()
    nn.init.trunc_normal_(layer.weight, std=math.sqrt(1 / fan_in))
    _zero(layer.bias)


def _normal(tensor: Tensor, std: float, cut: bool) -> None:
    if cut:
        nn.init.trunc_normal_(tensor, std=std, a=-2 * std, b=2 * std)
    else:
        nn.init.normal_(tensor, std=std)


def _zero(bias: Tensor | None) -> None:
    if bias is not None:
        nn.init.zeros_(bias)
