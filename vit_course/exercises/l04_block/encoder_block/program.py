"""A pre-norm block with its shortcuts written out, as in Swin; the MLP's layers named by an OrderedDict, as in CLIP."""

from collections import OrderedDict

import torch
from torch import nn

from vit_course.attention import MultiHeadSelfAttention


class EncoderBlock(nn.Module):
    """Transformer encoder block."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        mlp_ratio: float = 4.0,
        # bug "another ratio by default": mlp_ratio: float = 2.0,
        qkv_bias: bool = True,
        layer_norm_eps: float = 1e-6,
    ) -> None:
        super().__init__()
        # bug "layers made in forward": super().__init__()
        # bug "layers made in forward": self.num_heads = num_heads
        # bug "layers made in forward": return
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
        # bug "layers in plain list": self.layers = [self.norm1, self.attention, self.norm2, fc1, fc2]
        # bug "layers in plain list": del self.norm1, self.attention, self.norm2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # bug "layers in plain list": def forward(self, x):
        # bug "layers in plain list":     return x
        # bug "layers made in forward": def forward(self, x):
        # bug "layers made in forward":     self.attention = MultiHeadSelfAttention(x.shape[-1], self.num_heads)
        # bug "layers made in forward":     fc1, fc2 = nn.Linear(x.shape[-1], x.shape[-1]), nn.Linear(x.shape[-1], x.shape[-1])
        # bug "layers made in forward":     self.mlp = nn.Sequential(OrderedDict(fc1=fc1, act=nn.GELU(), fc2=fc2))
        # bug "layers made in forward":     self.norm1, self.norm2 = nn.LayerNorm(x.shape[-1]), nn.LayerNorm(x.shape[-1])
        # bug "layers made in forward":     return x
        shortcut = x
        # bug "tokens out of the graph": shortcut = x = x.detach()
        # bug "stream out of the graph": shortcut = x.detach()
        x = self.norm1(x)
        # bug "norms never used":
        # bug "norm1 forgotten":
        # bug "norm on the branch output": x = self.attention(x)
        # bug "post norm": x = self.attention(x)
        # bug "norm2 used twice": x = self.norm2(x)
        # bug "norms trade places": x = self.norm2(x)
        # bug "mlp before attention": x = self.norm2(x)
        # bug "residual from the normed stream": shortcut = x = self.norm1(x)
        x = self.attention(x)
        # bug "norm on the branch output": x = self.norm1(x)
        # bug "post norm":
        # bug "mlp before attention": x = self.mlp(x)
        # bug "dropout nobody asked for": x = torch.dropout(self.attention(x), 0.1, True)
        x = shortcut + x
        # bug "branch added to itself": x = x + x
        # bug "no residual":
        # bug "only the mlp is added":
        # bug "post norm": x = self.norm1(shortcut + x)
        # bug "stream changed in place": shortcut += x
        # bug "stream changed in place": x = shortcut
        # bug "stream in float32": x = (torch.zeros(x.shape) + shortcut.float() + x).float()
        # bug "mlp reads attention alone": attention, x = x, shortcut + x
        # bug "both branches from the input": stream, x = shortcut + x, shortcut
        shortcut = x
        # bug "second residual from the input":
        # bug "second norm on the stream": x = self.norm2(x)
        # bug "both branches from the input": shortcut = stream
        x = self.norm2(x)
        # bug "norm2 forgotten":
        # bug "norms never used":
        # bug "norm1 used twice": x = self.norm1(x)
        # bug "norms trade places": x = self.norm1(x)
        # bug "mlp before attention": x = self.norm1(x)
        # bug "norm on the branch output": x = self.mlp(x)
        # bug "post norm": x = self.mlp(x)
        # bug "second norm on the stream": shortcut = x
        # bug "residual from the normed stream": shortcut = x = self.norm2(x)
        # bug "mlp reads attention alone": x = self.norm2(attention)
        # bug "norm2 skipped in evaluation": x = self.norm2(x) if self.training else x
        # bug "stream in float32": x = self.norm2(x.to(self.norm2.weight.dtype))
        x = self.mlp(x)
        # bug "attention twice": x = self.attention(x)
        # bug "mlp before attention": x = self.attention(x)
        # bug "norm on the branch output": x = self.norm2(x)
        # bug "post norm":
        # bug "dropout nobody asked for": x = torch.dropout(self.mlp(x), 0.1, True)
        x = shortcut + x
        # bug "only attention is added":
        # bug "no residual":
        # bug "stream in float32": x = (shortcut + x).float()
        # bug "post norm": x = self.norm2(shortcut + x)
        # bug "stream changed in place": shortcut += x
        # bug "stream changed in place": x = shortcut
        return x
        # bug "batch of one squeezed away": return x.squeeze(0)
        # bug "tokens left in front": return x.transpose(0, 1)
