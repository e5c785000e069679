"""One right ViT in the styles in which people write one; each style hides attention or the stream in its own way."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from einops import rearrange, repeat
from torch import nn

DIM, HEADS, DEPTH, PATCH, CLASSES = 48, 4, 2, 8, 10


def by_functions(x, block):
    """No module for attention: weights and functions."""
    batch, tokens, dim = x.shape
    q, k, v = F.linear(x, block.qkv, block.qkv_bias).reshape(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    weights = F.softmax(torch.matmul(q, k.transpose(-2, -1)) / (dim // HEADS) ** 0.5, -1)
    return F.linear(torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, dim), block.out, block.out_bias)


def by_fused(x, block):
    batch, tokens, dim = x.shape
    q, k, v = F.linear(x, block.qkv, block.qkv_bias).view(batch, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    heads = F.scaled_dot_product_attention(q, k, v)
    return F.linear(heads.transpose(1, 2).reshape(batch, tokens, dim), block.out, block.out_bias)


def by_einsum(x, block):
    q, k, v = F.linear(x, block.qkv, block.qkv_bias).chunk(3, dim=-1)
    q, k, v = (each.unflatten(-1, (HEADS, -1)) for each in (q, k, v))
    scores = torch.einsum("bihd,bjhd->bhij", q, k) * (DIM // HEADS) ** -0.5
    mixed = torch.einsum("bhij,bjhd->bihd", scores.softmax(-1), v)
    return F.linear(mixed.flatten(2), block.out, block.out_bias)


def by_einops(x, block):
    q, k, v = rearrange(F.linear(x, block.qkv, block.qkv_bias), "b n (k h d) -> k b h n d", k=3, h=HEADS)
    weights = (torch.einsum("b h i d, b h j d -> b h i j", q, k) * (DIM // HEADS) ** -0.5).softmax(dim=-1)
    return F.linear(rearrange(weights @ v, "b h n d -> b n (h d)"), block.out, block.out_bias)


def by_loop_over_heads(x, block):
    q, k, v = F.linear(x, block.qkv, block.qkv_bias).chunk(3, dim=-1)
    width, found = DIM // HEADS, []
    for head in range(HEADS):
        part = slice(head * width, (head + 1) * width)
        weights = (q[..., part] @ k[..., part].transpose(1, 2) / width**0.5).softmax(-1)
        found.append(weights @ v[..., part])
    return F.linear(torch.cat(found, -1), block.out, block.out_bias)


def by_loop_over_images(x, block):
    return torch.stack([by_loop_over_heads(each[None], block)[0] for each in x])


def by_hand_made_softmax(x, block):
    q, k, v = F.linear(x, block.qkv, block.qkv_bias).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
    scores = q @ k.transpose(-2, -1) / (DIM // HEADS) ** 0.5
    grown = (scores - scores.amax(-1, keepdim=True)).exp()
    return F.linear(((grown / grown.sum(-1, keepdim=True)) @ v).transpose(1, 2).flatten(2), block.out, block.out_bias)


WAYS = {
    each.__name__: each
    for each in (
        by_functions,
        by_fused,
        by_einsum,
        by_einops,
        by_loop_over_heads,
        by_loop_over_images,
        by_hand_made_softmax,
    )
}


class Block(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.qkv_bias = nn.Parameter(torch.randn(3 * DIM, DIM) * 0.1), nn.Parameter(torch.zeros(3 * DIM))
        self.out, self.out_bias = nn.Parameter(torch.randn(DIM, DIM) * 0.1), nn.Parameter(torch.zeros(DIM))
        self.mlp = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, DIM))

    def forward(self, x, mask=None, *, scale_residual=1):
        x = x + self.attend(self.norm1(x), self)
        return x + self.mlp(self.norm2(x)) * scale_residual


class MhaBlock(nn.Module):
    """torch's own attention."""

    def __init__(self, need_weights):
        super().__init__()
        self.need_weights = need_weights
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = nn.MultiheadAttention(DIM, HEADS, dropout=0.1, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM))

    def forward(self, x, mask=None, *, scale_residual=1):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, need_weights=self.need_weights)[0]
        return x + self.mlp(self.norm2(x))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(DIM, DIM // HEADS) for _ in range(3))

    def forward(self, x):
        return (self.q(x) @ self.k(x).mT / (DIM // HEADS) ** 0.5).softmax(-1) @ self.v(x)


class ListedHeads(nn.Module):
    """Each head is a module; the projection stands outside."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.heads, self.join = nn.ModuleList(Head() for _ in range(HEADS)), nn.Linear(DIM, DIM)
        self.mlp = nn.Sequential(nn.Linear(DIM, 96), nn.GELU(), nn.Linear(96, DIM))

    def forward(self, x, mask=None, *, scale_residual=1):
        y = self.norm1(x)
        x = x + self.join(torch.cat([head(y) for head in self.heads], -1))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """A right ViT around given blocks; ``gives`` says in what the logits are handed out."""

    def __init__(self, make_block, gives=lambda logits: logits):
        super().__init__()
        self.gives = gives
        self.cut = nn.Conv2d(3, DIM, PATCH, PATCH)
        self.class_token = nn.Parameter(torch.zeros(1, 1, DIM))
        self.positions = nn.Parameter(torch.zeros(1, 17, DIM))
        self.blocks = nn.ModuleList(make_block() for _ in range(DEPTH))
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, CLASSES)
        self.seen = None

    def forward(self, images):
        x = self.cut(images).flatten(2).transpose(1, 2)
        x = torch.cat([repeat(self.class_token, "1 1 d -> b 1 d", b=len(x)), x], 1) + self.positions
        for block in self.blocks:
            x = block(x, None, scale_residual=1)
        self.seen = x  # what an earlier pass left behind cannot be copied as it is
        return self.gives(self.head(self.norm(x)[:, 0]))
