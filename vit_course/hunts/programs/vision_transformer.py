"""The whole model, in the words of the many repositories that follow the paper's figure."""

import torch
from torch import nn

from vit_course.encoder import EncoderBlock
from vit_course.patches import PatchEmbedding


class SuspectViT(nn.Module):
    """Vision Transformer with a class token and learned positions."""

    def __init__(self, config):
        super().__init__()
        dim, eps = config.embed_dim, config.layer_norm_eps
        self.patch_embedding = PatchEmbedding(config.in_channels, config.patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, 1 + config.num_patches, dim) * 0.02)
        args = dict(mlp_ratio=config.mlp_ratio, qkv_bias=config.qkv_bias, layer_norm_eps=eps)
        # bug "mlp ratio ignored": args = dict(qkv_bias=config.qkv_bias, layer_norm_eps=eps)
        # bug "qkv bias ignored": args = dict(mlp_ratio=config.mlp_ratio, layer_norm_eps=eps)
        # bug "eps of the blocks left at the default": args = dict(mlp_ratio=config.mlp_ratio, qkv_bias=config.qkv_bias)
        blocks = [EncoderBlock(dim, config.num_heads, **args) for _ in range(config.depth)]
        # bug "the same block listed depth times": blocks = [EncoderBlock(dim, config.num_heads, **args)] * config.depth
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps=eps)
        # bug "final eps left at the default": self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, config.num_classes)

    def forward(self, images):
        x = self.patch_embedding(images)
        cls_tokens = self.class_token.expand(x.shape[0], -1, -1)
        # bug "class token cut from the graph": cls_tokens = self.class_token.data.expand(x.shape[0], -1, -1)
        x = torch.cat((cls_tokens, x), dim=1)
        # bug "positions before the class token": x = torch.cat((cls_tokens, x + self.positions[:, :-1]), dim=1)
        x = x + self.positions
        # bug "positions before the class token":
        # bug "positions never added":
        for block in self.blocks:
            x = block(x)
            # bug "attention over the batch": x = block(x.transpose(0, 1)).transpose(0, 1)
        x = self.norm(x)
        # bug "no final norm":
        x = x[:, 0]
        # bug "last token pooled": x = x[:, -1]
        # bug "mean of all tokens": x = x.mean(dim=1)
        return self.head(x)
        # bug "softmax in the head": return self.head(x).softmax(dim=-1)
