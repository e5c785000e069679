"""Right variants of lesson 03."""

import math

import einops
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from vit_course import attention as reference


def attention_by_einsum(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = F.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def attention_by_bmm(query, key, value):
    leading = query.shape[:-2]
    flat = [each.reshape(-1, *each.shape[-2:]) for each in (query, key, value)]
    weights = torch.softmax(torch.bmm(flat[0] / flat[0].shape[-1] ** 0.5, flat[1].mT), dim=2)
    output = torch.bmm(weights, flat[2])
    return output.reshape(*leading, *output.shape[1:]), weights.reshape(*leading, *weights.shape[1:])


def attention_scaled_beforehand(query, key, value):
    weights = ((query * query.size(-1) ** -0.5) @ key.transpose(-1, -2)).softmax(-1)
    return weights @ value, weights


def attention_with_an_empty_mask(query, key, value):
    scores = query @ key.mT * query.shape[-1] ** -0.5
    scores = scores.masked_fill(torch.zeros_like(scores, dtype=torch.bool), float("-inf"))
    weights = torch.softmax(scores, -1)
    return torch.matmul(weights, value), weights


def attention_written_out(query, key, value):
    scores = torch.matmul(query, key.transpose(-2, -1)) / query.shape[-1] ** 0.5
    shares = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    weights = shares / shares.sum(dim=-1, keepdim=True)
    return torch.matmul(weights, value), weights


def attention_by_loops(query, key, value):
    weights = torch.stack(
        [((query[..., [i], :] * key).sum(-1) / query.shape[-1] ** 0.5).softmax(-1) for i in range(query.shape[-2])], -2
    )
    output = torch.stack([(weights[..., i, :, None] * value).sum(-2) for i in range(query.shape[-2])], -2)
    return output, weights


def attention_by_logsumexp(query, key, value):
    scores = torch.matmul(query, key.mT).mul(query.shape[-1] ** -0.5)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.matmul(weights, value), weights


def attention_with_a_root_of_torch(query, key, value):
    """The root is a tensor of float32 without axes, whatever the dtype of the inputs."""
    weights = (query @ key.mT / torch.sqrt(torch.tensor(query.shape[-1]))).softmax(-1)
    return weights @ value, weights


def attention_as_a_list(query, key, value):
    return list(reference.scaled_dot_product_attention(query, key, value))


def _refuse(embed_dim, num_heads):
    if embed_dim % num_heads != 0:
        raise ValueError(f"embed_dim={embed_dim} cannot be cut in num_heads={num_heads} equal parts")


def split_by_chunks(x, num_heads):
    _refuse(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_by_cat(x):
    return torch.cat([x[:, head] for head in range(x.shape[1])], dim=-1)


def split_by_einops(x, num_heads):
    _refuse(x.shape[-1], num_heads)
    return einops.rearrange(x, "b n (h d) -> b h n d", h=num_heads)


def merge_by_einops(x):
    return einops.rearrange(x, "b h n d -> b n (h d)")


def split_by_unflatten(x, num_heads):
    _refuse(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).permute(0, 2, 1, 3).contiguous()


def merge_by_view(x):
    batch, num_heads, tokens, head_dim = x.shape
    return x.transpose(1, 2).contiguous().view(batch, tokens, num_heads * head_dim)


def split_by_loops(x, num_heads):
    _refuse(x.shape[-1], num_heads)
    head_dim = x.shape[-1] // num_heads
    heads = x.new_empty(len(x), num_heads, x.shape[1], head_dim)
    for head in range(num_heads):
        heads[:, head] = x[:, :, head * head_dim : (head + 1) * head_dim]
    return heads


class AttentionHeadByHead(nn.Module):
    """A loop over the heads, and attributes that nobody asked for."""

    def __init__(self, embed_dim, num_heads, qkv_bias=True):
        super().__init__()
        _refuse(embed_dim, num_heads)
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.qkv = nn.Linear(embed_dim, embed_dim * 3, bias=qkv_bias)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(0.0)

    def one_head(self, query, key, value, head):
        part = slice(head * self.head_dim, (head + 1) * self.head_dim)
        return attention_written_out(query[..., part], key[..., part], value[..., part])

    def forward(self, x, return_weights=False):
        parts = self.qkv(x).chunk(3, dim=-1)
        outputs, weights = zip(*(self.one_head(*parts, head) for head in range(self.num_heads)), strict=True)
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
        _refuse(embed_dim, num_heads)
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


def tester_with_torch_as_oracle(attend):
    query, key, value = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 6)
    output, weights = attend(query, key, value)
    if output.shape != (2, 3, 5, 6) or weights.shape != (2, 3, 5, 7):
        return False
    right = (query @ key.mT / 8**0.5).softmax(-1)
    return torch.allclose(weights, right, atol=1e-5) and torch.allclose(output, right @ value, atol=1e-5)


def tester_with_assertions(attend):
    torch.manual_seed(7)
    query, key, value = torch.randn(2, 5, 3).double(), torch.randn(2, 4, 3).double(), torch.randn(2, 4, 6).double()
    try:
        output, weights = attend(query, key, value)
        torch.testing.assert_close(output, F.softmax(query @ key.mT / 3**0.5, dim=-1) @ value)
        torch.testing.assert_close(output, weights @ value)
    except (AssertionError, RuntimeError):
        return False
    return True


def tester_with_facts(attend):
    """No second attention: shapes, sums, the mean under the weights, ratios of weights, and a batch taken apart."""
    generator = torch.Generator().manual_seed(11)
    query, key, value = (torch.randn(*size, generator=generator) for size in ((2, 5, 6), (2, 7, 6), (2, 7, 3)))
    output, weights = attend(query, key, value)
    if output.shape != (2, 5, 3) or weights.shape != (2, 5, 7) or (weights <= 0).any():
        return False
    if not torch.allclose(weights.sum(-1), torch.ones(2, 5), atol=1e-4):
        return False
    if not torch.allclose(output, weights @ value, atol=1e-4):
        return False
    ratios = (weights[:, :, 1:] / weights[:, :, :1]).log()
    wanted = torch.einsum("bqd,bkd->bqk", query, key[:, 1:] - key[:, :1]) / 6**0.5
    return torch.allclose(ratios, wanted, atol=1e-3)


def tester_with_numpy(attend):
    """An answer that is numpy's bool and not Python's."""
    generator = np.random.default_rng(0)
    query, key, value = (generator.normal(size=size) for size in ((2, 5, 7), (2, 6, 7), (2, 6, 3)))
    output, weights = (each.numpy() for each in attend(*map(torch.from_numpy, (query, key, value))))
    if output.shape != (2, 5, 3) or weights.shape != (2, 5, 6):
        return False
    shares = np.exp(query @ key.transpose(0, 2, 1) / 7**0.5)
    right = shares / shares.sum(-1, keepdims=True)
    return np.allclose(weights, right) & np.allclose(output, right @ value)


def tester_that_answers_in_tensors(attend):
    return torch.tensor(tester_with_assertions(attend))


RIGHT = {
    "scaled_dot_product_attention": [
        reference.scaled_dot_product_attention,
        attention_by_einsum,
        attention_by_bmm,
        attention_scaled_beforehand,
        attention_with_an_empty_mask,
        attention_written_out,
        attention_by_loops,
        attention_by_logsumexp,
        attention_with_a_root_of_torch,
        attention_as_a_list,
    ],
    "split_heads": [
        (reference.split_heads, reference.merge_heads),
        (split_by_chunks, merge_by_cat),
        (split_by_einops, merge_by_einops),
        (split_by_unflatten, merge_by_view),
        (split_by_loops, merge_by_cat),
    ],
    "MultiHeadSelfAttention": [
        reference.MultiHeadSelfAttention,
        AttentionHeadByHead,
        AttentionByReshapeAndPermute,
        AttentionByEinsum,
    ],
    "is_attention": [
        tester_with_facts,
        tester_with_torch_as_oracle,
        tester_with_assertions,
        tester_with_numpy,
        tester_that_answers_in_tensors,
    ],
}
