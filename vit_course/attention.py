"""Attention: every token looks at every other and takes a weighted mean of what it finds."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, dropout: float = 0.0
) -> tuple[Tensor, Tensor]:
    """softmax(query · keyᵀ / √head_dim) · value.

    Args:
        query: (..., queries, head_dim).
        key: (..., keys, head_dim).
        value: (..., keys, value_dim).
        dropout: probability with which each weight is dropped before it meets the values.

    Returns:
        output (..., queries, value_dim) and weights before dropout (..., queries, keys), whose rows sum to 1.

    Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., queries, keys)
    weights = scores.softmax(dim=-1)
    return F.dropout(weights, dropout) @ value, weights


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """Cut every token into one piece for each head.

    Shapes: (batch, tokens, embed_dim) → (batch, num_heads, tokens, head_dim).

    Raises:
        ValueError: embed_dim is not divisible by ``num_heads``.
    """
    batch, tokens, embed_dim = x.shape
    if embed_dim % num_heads:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
    pieces = x.reshape(batch, tokens, num_heads, embed_dim // num_heads)  # (batch, tokens, num_heads, head_dim)
    return pieces.transpose(1, 2)  # (batch, num_heads, tokens, head_dim)


def merge_heads(x: Tensor) -> Tensor:
    """Lay every token's pieces end to end: the inverse of :func:`split_heads`.

    Shapes: (batch, num_heads, tokens, head_dim) → (batch, tokens, embed_dim).
    """
    return x.transpose(1, 2).flatten(2)  # (batch, tokens, embed_dim)


class MultiHeadSelfAttention(nn.Module):
    """All heads in one matrix product.

    ``qkv`` maps a token to its query, key and value: the first embed_dim rows of its weight make the queries
    of all heads, the next the keys, the last the values. ``projection`` mixes the heads' outputs.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim), and on request the weights
    (batch, num_heads, tokens, tokens).

    Raises:
        ValueError: ``embed_dim`` is not divisible by ``num_heads``.

    Source: Vaswani et al. 2017, section 3.2.2; Dosovitskiy et al. 2020, appendix A.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        qkv_bias: bool = True,
        attention_dropout: float = 0.0,
        projection_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.attention_dropout = nn.Dropout(attention_dropout)
        self.projection_dropout = nn.Dropout(projection_dropout)

    def forward(self, x: Tensor, return_weights: bool = False) -> Tensor | tuple[Tensor, Tensor]:
        """Mix tokens x (batch, tokens, embed_dim); on request also give the weights, before dropout."""
        query, key, value = (split_heads(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1))
        dropout = self.attention_dropout.p if self.training else 0.0
        # torch's fused kernel does the same arithmetic and never stores the weights; on a CPU in bfloat16 it takes five
        # to ten times as long to differentiate
        is_slow = x.dtype == torch.bfloat16 and x.device.type == "cpu"
        if return_weights or is_slow:
            heads, weights = scaled_dot_product_attention(query, key, value, dropout)
        else:
            heads = F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
        output = self.projection_dropout(self.projection(merge_heads(heads)))
        return (output, weights) if return_weights else output
