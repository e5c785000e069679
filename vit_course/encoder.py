"""The Transformer encoder: attention and MLP, each on a normalized copy, each added to the stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from torch import Tensor, nn

from vit_course.attention import MultiHeadSelfAttention
from vit_course.config import Gelu


class Mlp(nn.Module):
    """Two Linears with a GELU between them, applied to every token alone.

    Dropout follows the activation and the last Linear.

    Shapes: (..., embed_dim) → (..., embed_dim), through hidden_dim.

    Source: Dosovitskiy et al. 2020, section 3.1; GELU: Hendrycks and Gimpel 2016.
    """

    def __init__(self, embed_dim: int, hidden_dim: int, dropout: float = 0.0, gelu: Gelu = "exact") -> None:
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.activation = nn.GELU(approximate="tanh" if gelu == "tanh" else "none")
        self.fc2 = nn.Linear(hidden_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Transform x (..., embed_dim) token by token."""
        hidden = self.dropout(self.activation(self.fc1(x)))  # (..., hidden_dim)
        return self.dropout(self.fc2(hidden))


class EncoderBlock(nn.Module):
    """One pre-norm block: ``x + attention(norm1(x))``, then ``x + mlp(norm2(x))``.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim).

    Source: Dosovitskiy et al. 2020, equations 2 and 3.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        qkv_bias: bool = True,
        layer_norm_eps: float = 1e-6,
        attention_dropout: float = 0.0,
        projection_dropout: float = 0.0,
        mlp_dropout: float = 0.0,
        gelu: Gelu = "exact",
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, qkv_bias, attention_dropout, projection_dropout)
        self.norm2 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.mlp = Mlp(embed_dim, round(embed_dim * mlp_ratio), mlp_dropout, gelu)

    def forward(self, x: Tensor) -> Tensor:
        """Transform tokens x (batch, tokens, embed_dim)."""
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Encoder(nn.ModuleList):
    """Blocks in a row; it is the list of its blocks, so parameters are named ``0.norm1.weight`` and so on.

    Shapes: (batch, tokens, embed_dim) → (batch, tokens, embed_dim).
    """

    def forward(self, x: Tensor) -> Tensor:
        """Run tokens x (batch, tokens, embed_dim) through every block."""
        for block in self:
            x = block(x)
        return x

    def __iter__(self) -> Iterator[EncoderBlock]:
        return cast(Iterator[EncoderBlock], super().__iter__())
