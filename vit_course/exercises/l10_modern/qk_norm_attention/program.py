"""Attention with normalized queries and keys, as in ViT-22B."""

import torch
import torch.nn.functional as F  # noqa: F401  # bugs use it
from torch import nn


class QKNormAttention(nn.Module):
    """Multi-head self-attention whose queries and keys go through a LayerNorm."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        if embed_dim % num_heads:
            # bug "heads not counted": if num_heads < 1:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        normalized = self.head_dim
        # bug "norm over the whole embedding": normalized = embed_dim
        self.qkv = nn.Linear(embed_dim, embed_dim * 3)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.query_norm = nn.LayerNorm(normalized)
        self.key_norm = nn.LayerNorm(normalized)

    def norm(self, norm: nn.LayerNorm, x: torch.Tensor) -> torch.Tensor:
        B, H, N, D = x.shape
        normed: torch.Tensor = norm(x)
        # bug "norm over the whole embedding": normed = norm(x.transpose(1, 2).reshape(B, N, H * D))
        # bug "norm over the whole embedding": normed = normed.reshape(B, N, H, D).transpose(1, 2)
        # bug "deviation over all heads": whole = F.layer_norm(x.transpose(1, 2).reshape(B, N, H * D), (H * D,))
        # bug "deviation over all heads": normed = whole.reshape(B, N, H, D).transpose(1, 2) * norm.weight + norm.bias
        # bug "lengths alone": root = (x.square().mean(dim=-1, keepdim=True) + norm.eps).sqrt()
        # bug "lengths alone": normed = x / root * norm.weight + norm.bias
        # bug "norm over the tokens": normed = F.layer_norm(x.mT, (N,)).mT * norm.weight + norm.bias
        # bug "norms out of the graph": normed = norm(x).detach()
        # bug "norms not used": normed = x
        # bug "norms in training alone": normed = norm(x) if self.training else x
        return normed.reshape(B, H, N, D)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        # bug "keys before queries": k, q, v = qkv.unbind(0)
        q, k = self.norm(self.query_norm, q), self.norm(self.key_norm, k)
        # bug "keys not normed": q = self.norm(self.query_norm, q)
        # bug "queries not normed": k = self.norm(self.key_norm, k)
        # bug "one norm for both": q, k = self.norm(self.query_norm, q), self.norm(self.query_norm, k)
        # bug "norms swapped": q, k = self.norm(self.key_norm, q), self.norm(self.query_norm, k)
        # bug "values normed too": q, k = self.norm(self.query_norm, q), self.norm(self.key_norm, k)
        # bug "values normed too": v = self.norm(self.key_norm, v)
        scores = q @ k.mT * self.head_dim**-0.5
        # bug "not scaled": scores = q @ k.mT
        # bug "scores normed": scores = F.layer_norm(q @ k.mT * self.head_dim**-0.5, (N,))
        weights = scores.softmax(dim=-1)
        # bug "softmax over queries": weights = scores.softmax(dim=-2)
        heads = (weights @ v).transpose(1, 2).reshape(B, N, C)
        output: torch.Tensor = self.projection(heads)
        # bug "no projection": output = heads
        # bug "tokens changed in place": output = self.projection(heads)
        # bug "tokens changed in place": x.data.copy_(output.data)
        return output
        # bug "weights returned too": return output, weights
