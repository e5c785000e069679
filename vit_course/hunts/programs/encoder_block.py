"""A pre-norm block with its shortcuts written out, as in Swin; the MLP's layers named by an OrderedDict, as in CLIP."""

from collections import OrderedDict

from torch import nn

from vit_course.attention import MultiHeadSelfAttention


class SuspectBlock(nn.Module):
    """Transformer encoder block."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6):
        super().__init__()
        hidden_dim = round(embed_dim * mlp_ratio)
        # bug "ratio fixed at four": hidden_dim = 4 * embed_dim
        self.norm1 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        # bug "the eps of torch": self.norm1 = nn.LayerNorm(embed_dim)
        # bug "eps not passed on": self.norm1 = nn.LayerNorm(embed_dim, eps=1e-6)
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, qkv_bias)
        # bug "qkv bias not passed on": self.attention = MultiHeadSelfAttention(embed_dim, num_heads)
        self.norm2 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        # bug "eps not passed on": self.norm2 = nn.LayerNorm(embed_dim, eps=1e-6)
        # bug "one norm under two names": self.norm2 = self.norm1
        # bug "the eps of torch": self.norm2 = nn.LayerNorm(embed_dim)
        fc1, fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)
        self.mlp = nn.Sequential(OrderedDict(fc1=fc1, act=nn.GELU(), fc2=fc2))

    def forward(self, x):
        shortcut = x
        x = self.norm1(x)
        # bug "norms never used":
        # bug "norm on the branch output": x = self.attention(x)
        x = self.attention(x)
        # bug "norm on the branch output": x = self.norm1(x)
        x = shortcut + x
        # bug "no residual":
        shortcut = x
        # bug "second residual from the input":
        # bug "second norm on the stream": x = self.norm2(x)
        x = self.norm2(x)
        # bug "norm2 forgotten":
        # bug "norms never used":
        # bug "norm1 used twice": x = self.norm1(x)
        # bug "norm on the branch output": x = self.mlp(x)
        # bug "second norm on the stream": shortcut = x
        x = self.mlp(x)
        # bug "attention twice": x = self.attention(x)
        # bug "norm on the branch output": x = self.norm2(x)
        x = shortcut + x
        # bug "only attention is added":
        # bug "no residual":
        return x
