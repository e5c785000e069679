"""Right variants of lesson 04."""

import math

import numpy as np
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


def norm_tester_by_formula(norm):
    x, weight, bias = torch.randn(2, 3, 4, 8), torch.randn(8), torch.randn(8)
    kept = x.clone()
    result = norm(x, weight, bias, 0.3)
    if result.shape != x.shape or not torch.equal(x, kept):
        return False
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.allclose(result, (x - mean) / torch.sqrt(variance + 0.3) * weight + bias, atol=1e-5)


def norm_tester_with_assertions(norm):
    """Arguments by name, float64, and a single image too."""
    torch.manual_seed(7)
    weight, bias = torch.randn(2, 5).double()
    try:
        for front in ((4,), (3, 4), (3, 2, 4)):
            x = 3 * torch.randn(*front, 5).double() + 1
            before = x.clone()
            found = norm(x=x, weight=weight, bias=bias, eps=2.0)
            torch.testing.assert_close(x, before, rtol=0, atol=0)
            centered = x - x.sum(-1, keepdim=True) / 5
            right = centered / (centered.pow(2).sum(-1, keepdim=True) / 5 + 2.0).sqrt()
            torch.testing.assert_close(found, right * weight + bias)
    except (AssertionError, RuntimeError):
        return False
    return True


def norm_tester_with_facts(norm):
    """No formula for a token: means, variances, tokens alone, stretched tokens, and what weight and bias do."""
    generator = torch.Generator().manual_seed(11)
    x, weight, bias = (torch.randn(*size, generator=generator) for size in ((3, 2, 4, 6), (6,), (6,)))
    before, ones, zeros = x.clone(), torch.ones(6), torch.zeros(6)
    plain = norm(x, ones, zeros, 0.8)
    if plain.shape != before.shape or not torch.equal(x, before):
        return False
    variance = x.var(-1, correction=0)
    one_to_another = (x[..., 1:] - x[..., :1]) / (variance + 0.8).sqrt().unsqueeze(-1)
    alone = torch.stack([norm(each, weight, bias, 0.8) for each in x.reshape(-1, 6)]).reshape(x.shape)
    facts = [
        (plain.mean(-1), torch.zeros(3, 2, 4)),
        (plain.var(-1, correction=0), variance / (variance + 0.8)),
        (plain[..., 1:] - plain[..., :1], one_to_another),
        (norm(x, weight, bias, 0.8), weight * plain + bias),
        (norm(5 * x - 3, weight, bias, 20.0), weight * plain + bias),
        (alone, weight * plain + bias),
    ]
    return all(torch.allclose(*each, atol=1e-4) for each in facts)


def norm_tester_with_numpy(norm):
    """An answer that is numpy's bool and not Python's."""
    generator = np.random.default_rng(1)
    x, weight, bias = (generator.normal(size=size) for size in ((2, 3, 4, 7), (7,), (7,)))
    given = torch.tensor(x)
    found = norm(given, torch.tensor(weight), torch.tensor(bias), 0.5).numpy()
    if found.shape != x.shape:
        return False
    right = weight * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5) + bias
    return np.allclose(found, right) & np.array_equal(given.numpy(), x)


def norm_tester_by_pencil(norm):
    """Two tokens worked out by hand, in the corners of a batch of others."""
    x = 10 * torch.rand(2, 2, 3, 4)
    x[0, 0, 0], x[1, 1, 2] = torch.tensor([0.0, 0.0, 2.0, 6.0]), torch.tensor([9.0, 5.0, 5.0, 1.0])
    weight, bias = torch.tensor([2.0, -3.0, 0.5, 5.0]), torch.tensor([1.0, 0.0, -2.0, 7.0])
    kept = x.clone()
    found = norm(x, weight, bias, 10.0)
    if tuple(found.shape) != (2, 2, 3, 4) or (x != kept).any():
        return False
    first = weight * torch.tensor([-2.0, -2.0, 0.0, 4.0]) / 4 + bias
    last = weight * torch.tensor([4.0, 0.0, 0.0, -4.0]) / math.sqrt(18) + bias
    return torch.stack([found[0, 0, 0] - first, found[1, 1, 2] - last]).abs().max() < 1e-5


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
    "is_layer_norm": [
        norm_tester_by_formula,
        norm_tester_with_assertions,
        norm_tester_with_facts,
        norm_tester_with_numpy,
        norm_tester_by_pencil,
    ],
    "Mlp": [reference.Mlp, MlpWithModuleAndDropout, MlpWithErf, MlpWithTensorConstant],
    "EncoderBlock": _BLOCKS,
    "fix_block": _BLOCKS,
}
