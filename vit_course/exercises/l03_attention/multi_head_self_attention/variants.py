"""Right answers in other styles: what no check may refuse."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import attention as reference
from vit_course.exercises.l03_attention.scaled_dot_product_attention.variants import attention_written_out
from vit_course.exercises.l03_attention.split_heads.variants import _refuse_indivisible_embed_dim


class AttentionHeadByHead(nn.Module):
    """A loop over the heads, and attributes that nobody asked for."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        _refuse_indivisible_embed_dim(embed_dim, num_heads)
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(0.0)

    def attend_in_one_head(self, query, key, value, head):
        part = slice(head * self.head_dim, (head + 1) * self.head_dim)
        return attention_written_out(query[..., part], key[..., part], value[..., part])

    def forward(self, x, return_weights=False):
        parts = self.qkv(x).chunk(3, dim=-1)
        outputs, weights = zip(*(self.attend_in_one_head(*parts, head) for head in range(self.num_heads)), strict=True)
        output = self.dropout(self.projection(torch.cat(outputs, dim=-1)))
        return (output, torch.stack(weights, dim=1)) if return_weights else output


class AttentionByReshapeAndPermute(nn.Module):
    """The form of timm: one reshape of qkv's output, and torch's fused kernel."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{embed_dim} % {num_heads} != 0")
        self.num_heads = num_heads
        self.register_buffer("scale", torch.tensor((embed_dim // num_heads) ** -0.5))
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x, return_weights=False):
        batch, tokens, embed_dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = qkv.unbind(0)
        weights = F.softmax(query @ key.transpose(-2, -1) * self.scale, dim=-1)
        output = self.projection((weights @ value).transpose(1, 2).reshape(batch, tokens, embed_dim))
        return (output, weights) if return_weights else output


class AttentionByEinsum(nn.Module):
    """qkv's rows taken apart with slices, the rest with einsum."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        _refuse_indivisible_embed_dim(embed_dim, num_heads)
        self.heads = num_heads
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim, True)

    def forward(self, x, return_weights=False):
        d = x.shape[-1]
        mixed = self.qkv(x)
        query, key, value = (
            part.unflatten(-1, (self.heads, -1))
            for part in (mixed[..., :d], mixed[..., d : 2 * d], mixed[..., 2 * d :])
        )
        weights = (torch.einsum("bqhd,bkhd->bhqk", query, key) / query.shape[-1] ** 0.5).softmax(-1)
        output = self.projection(torch.einsum("bhqk,bkhd->bqhd", weights, value).flatten(2))
        return (output, weights) if return_weights else output


RIGHT = {
    "MultiHeadSelfAttention": [
        reference.MultiHeadSelfAttention,
        AttentionHeadByHead,
        AttentionByReshapeAndPermute,
        AttentionByEinsum,
    ]
}
