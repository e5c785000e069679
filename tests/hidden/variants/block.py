"""Right variants of lesson 04."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from vit_course import encoder as reference
from vit_course.attention import MultiHeadSelfAttention


def layer_norm_in_the_lesson(x, weight, bias, eps):
    mean = x.mean(dim=-1, keepdim=True)
    variance = (x - mean).square().mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + eps) * weight + bias


def layer_norm_by_var_mean(x, weight, bias, eps):
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.addcmul(bias, (x - mean) * torch.rsqrt(variance + eps), weight)


def layer_norm_by_var(x, weight, bias, eps):
    variance = x.var(-1, unbiased=False, keepdim=True)
    return weight * (x - x.mean(-1, keepdim=True)) * (variance + eps) ** -0.5 + bias


def layer_norm_by_loops(x, weight, bias, eps):
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        mean = token.sum() / len(token)
        variance = ((token - mean) ** 2).sum() / len(token)
        rows.append((token - mean) / torch.sqrt(variance + eps) * weight + bias)
    return torch.stack(rows).reshape(x.shape)


class _Norm(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        centered = x - x.mean(-1, keepdim=True)
        return centered / (centered.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()


def layer_norm_as_a_module(x, weight, bias, eps):
    return _Norm(eps)(x) * weight + bias


def layer_norm_in_float32_and_back(x, weight, bias, eps):
    wide = x.double()
    return layer_norm_by_var_mean(wide, weight.double(), bias.double(), eps).to(x.dtype)


class MlpWithModuleAndDropout(nn.Module):
    """GELU as a module, a dropout of zero, a helper."""

    def __init__(self, embed_dim, hidden_dim, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, hidden_dim)
        self.act = nn.GELU()
        self.drop = nn.Dropout(dropout)
        self.fc2 = nn.Linear(hidden_dim, embed_dim)

    def hidden(self, x):
        return self.drop(self.act(self.fc1(x)))

    def forward(self, x):
        return self.drop(self.fc2(self.hidden(x)))


class MlpWithErf(nn.Module):
    """GELU written out, torch's own constant."""

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        hidden = self.fc1(x)
        return self.fc2(0.5 * hidden * (1 + torch.erf(hidden / math.sqrt(2))))


class MlpWithTensorConstant(nn.Module):
    """A constant that is a tensor without axes, which takes no part in choosing the dtype."""

    def __init__(self, embed_dim, hidden_dim):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(embed_dim, hidden_dim), nn.Linear(hidden_dim, embed_dim)

    def forward(self, x):
        hidden = self.fc1(x)
        return self.fc2(hidden * (1 + torch.erf(hidden * torch.tensor(2.0).rsqrt())) / 2)


class BlockOfTheLesson(nn.Module):
    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6):
        super().__init__()
        self.norm1 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.attention = MultiHeadSelfAttention(embed_dim, num_heads, qkv_bias)
        self.norm2 = nn.LayerNorm(embed_dim, eps=layer_norm_eps)
        self.mlp = MlpWithErf(embed_dim, int(embed_dim * mlp_ratio))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class BlockInOneExpression(BlockOfTheLesson):
    def forward(self, x):
        return (after := x + self.attention(self.norm1(x))) + self.mlp(self.norm2(after))


class BlockOnACopy(BlockOfTheLesson):
    """In place, but on a tensor of its own, and where the gradient needs nothing of it."""

    def forward(self, x):
        stream = x.clone()
        stream = torch.add(stream, self.attention(self.norm1(stream)))
        update = self.mlp(self.norm2(stream.clone()))
        stream += update
        return stream


class NormByHand(nn.Module):
    def __init__(self, embed_dim, eps):
        super().__init__()
        self.eps = eps
        self.weight, self.bias = nn.Parameter(torch.ones(embed_dim)), nn.Parameter(torch.zeros(embed_dim))

    def forward(self, x):
        return layer_norm_in_the_lesson(x, self.weight, self.bias, self.eps)


class BlockOfHandMadeParts(nn.Module):
    """Norms by hand, attention head by head, dropouts of zero, a depth to print, and a summary to look at."""

    def __init__(self, embed_dim, num_heads, mlp_ratio=4.0, qkv_bias=True, layer_norm_eps=1e-6, dropout=0.0):
        super().__init__()
        self.mlp = MlpWithModuleAndDropout(embed_dim, round(embed_dim * mlp_ratio), dropout)
        self.attention = HeadByHead(embed_dim, num_heads, qkv_bias)
        self.norm2, self.norm1 = NormByHand(embed_dim, layer_norm_eps), NormByHand(embed_dim, layer_norm_eps)
        self.drop_path = nn.Identity()
        self.last_norms = []

    def forward(self, x, mask=None):
        for norm, branch in ((self.norm1, self.attention), (self.norm2, self.mlp)):
            self.last_norms.append(x.detach().norm())
            x = x + self.drop_path(branch(norm(x)))
        return x


class HeadByHead(nn.Module):
    def __init__(self, embed_dim, num_heads, qkv_bias):
        super().__init__()
        self.num_heads = num_heads
        self.qkv, self.projection = nn.Linear(embed_dim, 3 * embed_dim, qkv_bias), nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        parts = [part.chunk(self.num_heads, dim=-1) for part in self.qkv(x).chunk(3, dim=-1)]
        heads = [F.scaled_dot_product_attention(query, key, value) for query, key, value in zip(*parts, strict=True)]
        return self.projection(torch.cat(heads, dim=-1))


_BLOCKS = [reference.EncoderBlock, BlockOfTheLesson, BlockInOneExpression, BlockOnACopy, BlockOfHandMadeParts]
RIGHT = {
    "layer_norm": [
        layer_norm_in_the_lesson,
        layer_norm_by_var_mean,
        layer_norm_by_var,
        layer_norm_by_loops,
        layer_norm_as_a_module,
        layer_norm_in_float32_and_back,
    ],
    "Mlp": [reference.Mlp, MlpWithModuleAndDropout, MlpWithErf, MlpWithTensorConstant],
    "EncoderBlock": _BLOCKS,
    "fix_block": _BLOCKS,
}
