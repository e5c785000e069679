"""The whole model, in the words of the many repositories that follow the paper's figure."""

import dataclasses  # noqa: F401  # bugs use it
from typing import Any

import torch
import torch.nn.functional as F  # noqa: F401  # bugs use it
from torch import nn

from vit_course.config import ViTConfig
from vit_course.encoder import EncoderBlock
from vit_course.patches import PatchEmbedding


class VisionTransformer(nn.Module):
    """Vision Transformer with a class token and learned positions."""

    def __init__(self, config: ViTConfig) -> None:
        super().__init__()
        # bug "global in place of the config": super().__init__()
        # bug "global in place of the config": small = ViTConfig(image_size=(15, 9), patch_size=3, in_channels=4, num_classes=6)
        # bug "global in place of the config": config = dataclasses.replace(small, embed_dim=8, depth=2, num_heads=4, mlp_ratio=3)
        dim, eps = config.embed_dim, config.layer_norm_eps
        # bug "dropout on after eval": dim, eps, self.dropout = config.embed_dim, config.layer_norm_eps, config.embedding_dropout
        self.patch_embedding = PatchEmbedding(config.in_channels, config.patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        # bug "tensors that are no parameters": self.class_token = torch.zeros(1, 1, dim)
        # bug "class token drawn": self.class_token = nn.Parameter(torch.randn(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, 1 + config.num_patches, dim) * 0.02)
        # bug "positions start too large": self.positions = nn.Parameter(torch.randn(1, 1 + config.num_patches, dim))
        # bug "positions start alike": self.positions = nn.Parameter(torch.zeros(1, 1 + config.num_patches, dim))
        # bug "no position for the class token": self.positions = nn.Parameter(torch.randn(1, config.num_patches, dim) * 0.02)
        # bug "square image assumed": side = config.height // config.patch_size
        # bug "square image assumed": self.positions = nn.Parameter(torch.randn(1, 1 + side**2, dim) * 0.02)
        # bug "tensors that are no parameters": self.positions = torch.zeros(1, 1 + config.num_patches, dim)
        args: dict[str, Any] = dict(mlp_ratio=config.mlp_ratio, qkv_bias=config.qkv_bias, layer_norm_eps=eps)
        # bug "mlp ratio ignored": args = dict(qkv_bias=config.qkv_bias, layer_norm_eps=eps)
        # bug "qkv bias ignored": args = dict(mlp_ratio=config.mlp_ratio, layer_norm_eps=eps)
        # bug "eps of the blocks left at the default": args = dict(mlp_ratio=config.mlp_ratio, qkv_bias=config.qkv_bias)
        blocks = [EncoderBlock(dim, config.num_heads, **args) for _ in range(config.depth)]
        # bug "one block used depth times": blocks, self.depth = [EncoderBlock(dim, config.num_heads, **args)], config.depth
        # bug "the same block listed depth times": blocks = [EncoderBlock(dim, config.num_heads, **args)] * config.depth
        self.blocks = nn.ModuleList(blocks)
        # bug "one mlp for all blocks": for block in blocks:
        # bug "one mlp for all blocks":     block.mlp = blocks[0].mlp
        # bug "one mlp for all blocks": self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps=eps)
        # bug "final eps left at the default": self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config.num_classes)
        # bug "all tokens into the head": self.head = nn.Linear((1 + config.num_patches) * dim, config.num_classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.patch_embedding(images)
        cls_tokens = self.class_token.expand(x.shape[0], -1, -1)
        # bug "class token cut from the graph": cls_tokens = self.class_token.data.expand(x.shape[0], -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        # bug "positions before the class token": x = torch.cat((cls_tokens, x + self.positions[:, :-1]), dim=1)
        # bug "no position added to the class token": x = torch.cat((cls_tokens, x + self.positions[:, 1:]), dim=1)
        # bug "class token last": x = torch.cat((x, cls_tokens), dim=1)
        # bug "class token last and read there": x = torch.cat((x, cls_tokens), dim=1)
        x = x + self.positions
        # bug "positions before the class token":
        # bug "no position added to the class token":
        # bug "positions never added":
        # bug "one position for all": x = x + self.positions[:, :1]
        # bug "positions added before every block":
        # bug "norm before the blocks": x = self.norm(x + self.positions)
        # bug "dropout nobody asked for": x = F.dropout(x + self.positions, 0.1, self.training)
        # bug "dropout on after eval": x = F.dropout(x + self.positions, self.dropout)
        # bug "tokens poured into the cpu": poured = torch.zeros(x.shape, dtype=x.dtype)
        # bug "tokens poured into the cpu": poured[:] = x + self.positions
        # bug "tokens poured into the cpu": x = poured
        # bug "tokens poured into float32": poured = torch.zeros(x.shape, device=x.device)
        # bug "tokens poured into float32": poured[:] = x + self.positions
        # bug "tokens poured into float32": x = poured
        for block in self.blocks:
            # bug "one block used depth times": for block in [*self.blocks] * self.depth:
            # bug "blocks in reverse order": for block in reversed(self.blocks):
            x = block(x)
            # bug "blocks without effect": block(x)
            # bug "the stream added once more": x = x + block(x)
            # bug "each block given the same tokens": last = block(x)
            # bug "positions added before every block": x = block(x + self.positions)
            # bug "positions added at the start and before every block": x = block(x + self.positions)
            # bug "attention over the batch": x = block(x.transpose(0, 1)).transpose(0, 1)
            # bug "batch and tokens reshaped": x = block(x.reshape(x.shape[1], x.shape[0], -1)).reshape(x.shape)
        x = self.norm(x)
        # bug "each block given the same tokens": x = self.norm(last)
        # bug "no final norm":
        # bug "norm before the blocks":
        # bug "final norm over the tokens": x = (x - x.mean(1, True)) / (x.var(1, keepdim=True, correction=0) + self.norm.eps).sqrt()
        # bug "final norm over the tokens": x = x * self.norm.weight + self.norm.bias
        x = x[:, 0]
        # bug "first patch pooled": x = x[:, 1]
        # bug "last token pooled": x = x[:, -1]
        # bug "class token last and read there": x = x[:, -1]
        # bug "mean of all tokens": x = x.mean(dim=1)
        # bug "every token classified":
        # bug "all tokens into the head": x = x.flatten(1)
        return self.head(x)
        # bug "softmax in the head": return self.head(x).softmax(dim=-1)
        # bug "batch of one squeezed": return self.head(x).squeeze()
