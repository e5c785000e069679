"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course.modern import QKNormAttention


class QKNormByHand(nn.Module):
    """Softmax written out, parts cut by hand."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        head_dim, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError(f"{embed_dim} is not divisible by {num_heads}")
        self.num_heads, self.head_dim = num_heads, head_dim
        self.qkv = nn.Linear(embed_dim, embed_dim * 3)
        self.query_norm, self.key_norm = nn.LayerNorm(head_dim), nn.LayerNorm(head_dim)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        query, key, value = self.query_norm(qkv[0]), self.key_norm(qkv[1]), qkv[2]
        attention = (query * self.head_dim**-0.5 @ key.transpose(-2, -1)).softmax(dim=-1)
        return self.projection((attention @ value).transpose(1, 2).reshape(batch, tokens, dim))


class QKNormHeadByHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"embed_dim={embed_dim}, num_heads={num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.query_norm = nn.LayerNorm(embed_dim // num_heads)
        self.key_norm = nn.LayerNorm(embed_dim // num_heads)

    def forward(self, x):
        parts = [part.chunk(self.num_heads, dim=-1) for part in self.qkv(x).chunk(3, dim=-1)]
        heads = [
            F.scaled_dot_product_attention(self.query_norm(query), self.key_norm(key), value)
            for query, key, value in zip(*parts, strict=True)
        ]
        return self.projection(torch.cat(heads, dim=-1))


RIGHT = {"QKNormAttention": [QKNormAttention, QKNormByHand, QKNormHeadByHead]}
