"""Right answers in other styles: what no check may refuse."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import vit as reference
from vit_course.encoder import EncoderBlock
from vit_course.patches import PatchEmbedding
from vit_course.positions import add_class_token


class ViTFromParts(nn.Module):
    """The course's own parts, put together as a student does."""

    def __init__(self, config):
        super().__init__()
        dim = config.embed_dim
        self.patch_embedding = PatchEmbedding(config.in_channels, config.patch_size, dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.positions = nn.Parameter(torch.randn(1, config.num_tokens, dim) * 0.02)
        self.blocks = nn.ModuleList(
            EncoderBlock(
                dim,
                config.num_heads,
                config.mlp_ratio,
                qkv_bias=config.qkv_bias,
                layer_norm_eps=config.layer_norm_eps,
            )
            for _ in range(config.depth)
        )
        self.norm = nn.LayerNorm(dim, config.layer_norm_eps)
        self.head = nn.Linear(dim, config.num_classes)

    def forward(self, images):
        x = add_class_token(self.patch_embedding(images), self.class_token, self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class ViTInSequence(ViTFromParts):
    """Blocks in an nn.Sequential, the class token by repeat, the norm after pooling, and a helper or two."""

    def __init__(self, config):
        super().__init__(config)
        self.blocks = nn.Sequential(*self.blocks)
        self.config = config
        self.dropout = nn.Dropout(config.embedding_dropout)

    def compute_features(self, images):
        patches = self.patch_embedding(images)
        tokens = torch.cat([self.class_token.repeat(patches.shape[0], 1, 1), patches], 1)
        return self.blocks(self.dropout(tokens + self.positions))[:, 0]

    def forward(self, images):
        return self.head(self.norm(self.compute_features(images)))


class PastedNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.bias = nn.Parameter(torch.zeros(dim))
        self.eps = eps

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return self.weight * centered / (centered.square().mean(-1, keepdim=True) + self.eps).sqrt() + self.bias


class PastedAttention(nn.Module):
    def __init__(self, dim, num_heads, bias):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=bias)
        self.projection = nn.Linear(dim, dim)

    def forward(self, x):
        heads = []
        width = x.shape[-1] // self.num_heads
        query, key, value = self.qkv(x).chunk(3, -1)
        for head in range(self.num_heads):
            part = slice(head * width, (head + 1) * width)
            scores = torch.einsum("bqd,bkd->bqk", query[..., part], key[..., part]) / math.sqrt(width)
            heads.append(scores.softmax(-1) @ value[..., part])
        return self.projection(torch.cat(heads, -1))


class PastedBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        dim, hidden = config.embed_dim, round(config.embed_dim * config.mlp_ratio)
        self.norm1, self.norm2 = PastedNorm(dim, config.layer_norm_eps), PastedNorm(dim, config.layer_norm_eps)
        self.attention = PastedAttention(dim, config.num_heads, config.qkv_bias)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(dim, hidden), "fc2": nn.Linear(hidden, dim)})

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp.fc2(F.gelu(self.mlp.fc1(self.norm2(x))))


class PastedPatchEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.size = config.patch_size
        self.projection = nn.Linear(config.in_channels * self.size**2, config.embed_dim)

    def forward(self, images):
        return self.projection(images.unfold(2, self.size, self.size).unfold(3, self.size, self.size).permute(
            0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2))  # fmt: skip


class ViTPasted(nn.Module):
    """Nothing imported from the course: everything from the earlier lessons pasted."""

    def __init__(self, config):
        super().__init__()
        rows, columns = (side // config.patch_size for side in config.image_size)
        self.patch_embedding = PastedPatchEmbedding(config)
        self.class_token = nn.Parameter(torch.zeros(1, 1, config.embed_dim))
        self.positions = nn.Parameter(torch.empty(1, rows * columns + 1, config.embed_dim).normal_(std=0.02))
        self.blocks = nn.ModuleList([PastedBlock(config) for _ in range(config.depth)])
        self.norm = PastedNorm(config.embed_dim, config.layer_norm_eps)
        self.head = nn.Linear(config.embed_dim, config.num_classes)

    def forward(self, images):
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


_MODELS = [reference.VisionTransformer, ViTFromParts, ViTInSequence, ViTPasted]


RIGHT = {"VisionTransformer": _MODELS, "fix_vit": _MODELS}
