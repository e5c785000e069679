"""Self-attention as timm writes it."""

from torch import nn


class SuspectAttention(nn.Module):
    """Multi-head self-attention."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"embed_dim {embed_dim} is not divisible by num_heads {num_heads}")
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.scale = self.head_dim**-0.5
        # bug "root of embed dim": self.scale = embed_dim**-0.5
        # bug "heads not scaled": self.scale = 1.0
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        # bug "qkv bias ignored": self.qkv = nn.Linear(embed_dim, embed_dim * 3)
        self.projection = nn.Linear(embed_dim, embed_dim)
        # bug "qkv bias for both": self.projection = nn.Linear(embed_dim, embed_dim, bias=qkv_bias)

    def forward(self, x, return_weights=False):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        # bug "qkv cut head by head": qkv = self.qkv(x).reshape(B, N, self.num_heads, 3, self.head_dim)
        # bug "qkv cut head by head": qkv = qkv.permute(3, 0, 2, 1, 4)
        # bug "heads split by view": qkv = self.qkv(x).reshape(B, N, 3, C).permute(2, 0, 1, 3)
        # bug "heads split by view": qkv = qkv.reshape(3, B, self.num_heads, N, self.head_dim)
        q, k, v = qkv.unbind(0)
        # bug "query and key swapped": k, q, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.softmax(dim=-1)
        # bug "softmax down the queries": attn = attn.softmax(dim=-2)
        # bug "softmax over the heads": attn = attn.softmax(dim=1)
        x = (attn @ v).transpose(1, 2).reshape(B, N, C)
        # bug "heads merged by view": x = (attn @ v).reshape(B, N, C)
        x = self.projection(x)
        # bug "projection not used":
        return (x, attn) if return_weights else x
        # bug "weights averaged over heads": return (x, attn.mean(dim=1)) if return_weights else x
