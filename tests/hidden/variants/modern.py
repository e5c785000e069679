"""Right variants of lesson 10."""

import torch
import torch.nn.functional as F
from torch import nn

from vit_course.modern import DropPath, LayerScale, QKNormAttention, add_registers, random_masking, rotary_2d


class DropPathByBernoulli(nn.Module):
    def __init__(self, probability=0.0):
        super().__init__()
        if probability < 0.0 or probability >= 1.0:
            raise ValueError(f"a probability of {probability} cannot be")
        self.keep = 1.0 - probability

    def forward(self, x):
        if self.keep == 1.0 or not self.training:
            return x
        shape = (x.shape[0],) + (1,) * (x.ndim - 1)
        return x * x.new_empty(shape).bernoulli_(self.keep).div_(self.keep)


class DropPathByWhere(nn.Module):
    def __init__(self, probability):
        super().__init__()
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"probability: {probability}")
        self.probability = probability

    def forward(self, branch):
        if self.training and self.probability > 0:
            gone = torch.rand(branch.size(0), device=branch.device).lt(self.probability)
            gone = gone.reshape([-1] + [1] * (branch.ndim - 1))
            return torch.where(gone, torch.zeros_like(branch), branch / (1 - self.probability))
        return branch


class DropPathByDropout(nn.Module):
    """A dropout of ones, a number for each image."""

    def __init__(self, probability):
        super().__init__()
        if probability < 0 or probability > 1 or probability == 1:
            raise ValueError("not in [0, 1): " + str(probability))
        self.dropout = nn.Dropout(probability)

    def forward(self, branch):
        ones = torch.ones(len(branch), *[1] * (branch.ndim - 1), dtype=branch.dtype, device=branch.device)
        return branch * self.dropout(ones)


class LayerScaleByOnes(nn.Module):
    def __init__(self, embed_dim, initial=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(initial * torch.ones(embed_dim))

    def forward(self, x):
        return x.mul(self.gamma)


class LayerScaleByFilling(nn.Module):
    def __init__(self, embed_dim, initial):
        super().__init__()
        self.gamma = nn.Parameter(torch.empty(embed_dim))
        nn.init.constant_(self.gamma, initial)

    def forward(self, branch):
        return torch.einsum("...d,d->...d", branch, self.gamma)


def registers_by_slices(tokens, registers):
    batch, count, dim = tokens.shape
    many = registers.shape[1]
    result = tokens.new_zeros(batch, count + many, dim)
    result[:, 0] = tokens[:, 0]
    result[:, 1 : 1 + many] = registers
    result[:, 1 + many :] = tokens[:, 1:]
    return result


def registers_by_repeat(tokens, registers):
    cls_token, patches = tokens.split([1, tokens.shape[1] - 1], dim=1)
    return torch.cat((cls_token, registers.repeat(len(tokens), 1, 1), patches), dim=1)


def registers_image_by_image(tokens, registers):
    return torch.stack([torch.cat([image[:1], registers[0], image[1:]]) for image in tokens])


def rotary_by_complex_numbers(query, key, grid_size):
    rows, columns = grid_size
    tokens, head_dim = query.shape[-2:]
    if head_dim % 4 or tokens < rows * columns:
        raise ValueError(f"head_dim {head_dim}, {tokens} tokens, a grid of {grid_size}")
    quarter = head_dim // 4
    speed = 100.0 ** -(torch.arange(quarter, dtype=torch.float64, device=query.device) / quarter)
    patch = torch.arange(rows * columns, device=query.device)
    row, column = torch.div(patch, columns, rounding_mode="floor"), patch % columns
    angles = torch.cat([torch.outer(row.double(), speed), torch.outer(column.double(), speed)], dim=1)
    front = tokens - rows * columns

    def turn(x):
        pairs = x[..., front:, :].unflatten(-1, (-1, 2)).double()
        a, b = pairs.unbind(-1)
        both = torch.stack([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
        return torch.cat([x[..., :front, :], both.flatten(-2).to(x.dtype)], dim=-2)

    return turn(query), turn(key)


def rotary_by_doubled_angles(query, key, grid_size):
    """x · cos + rotated(x) · sin, as libraries write it, with neighbors for pairs."""
    rows, columns = grid_size
    tokens, head_dim = query.shape[-2:]
    if head_dim % 4 != 0:
        raise ValueError(f"head_dim {head_dim} is not divisible by 4")
    front = tokens - rows * columns
    if front < 0:
        raise ValueError(f"there are only {tokens} tokens")
    exponents = torch.arange(head_dim // 4, device=query.device).double() / (head_dim // 4)
    speeds = torch.pow(torch.tensor(100.0, dtype=torch.float64), -exponents)
    y, x = torch.meshgrid(
        torch.arange(rows, device=query.device), torch.arange(columns, device=query.device), indexing="ij"
    )
    angles = torch.cat([y.reshape(-1, 1) * speeds, x.reshape(-1, 1) * speeds], dim=1).repeat_interleave(2, dim=1)
    angles = torch.cat([angles.new_zeros(front, head_dim), angles])
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)

    def rotated(t):
        return torch.stack([-t[..., 1::2], t[..., ::2]], dim=-1).reshape(t.shape)

    return query * cos + rotated(query) * sin, key * cos + rotated(key) * sin


class QKNormByHand(nn.Module):
    """Softmax written out, parts cut by hand."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        head_dim, rest = divmod(embed_dim, num_heads)
        if rest:
            raise ValueError(f"{embed_dim} is not divisible by {num_heads}")
        self.num_heads, self.head_dim = num_heads, head_dim
        self.qkv = nn.Linear(embed_dim, embed_dim * 3)
        self.query_norm, self.key_norm = nn.LayerNorm(head_dim), nn.LayerNorm(head_dim)
        self.projection = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        batch, tokens, dim = x.shape
        qkv = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        query, key, value = self.query_norm(qkv[0]), self.key_norm(qkv[1]), qkv[2]
        attention = (query * self.head_dim**-0.5 @ key.transpose(-2, -1)).softmax(dim=-1)
        return self.projection((attention @ value).transpose(1, 2).reshape(batch, tokens, dim))


class QKNormHeadByHead(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()
        if embed_dim % num_heads != 0:
            raise ValueError(f"embed_dim={embed_dim}, num_heads={num_heads}")
        self.num_heads = num_heads
        self.qkv = nn.Linear(embed_dim, 3 * embed_dim)
        self.projection = nn.Linear(embed_dim, embed_dim)
        self.query_norm = nn.LayerNorm(embed_dim // num_heads)
        self.key_norm = nn.LayerNorm(embed_dim // num_heads)

    def forward(self, x):
        parts = [part.chunk(self.num_heads, dim=-1) for part in self.qkv(x).chunk(3, dim=-1)]
        heads = [
            F.scaled_dot_product_attention(self.query_norm(query), self.key_norm(key), value)
            for query, key, value in zip(*parts, strict=True)
        ]
        return self.projection(torch.cat(heads, dim=-1))


def masking_of_the_paper(tokens, mask_ratio, generator):
    """The authors' way: noise, two argsorts, gather; what is left is put into order."""
    batch, num_patches, dim = tokens.shape
    keep = num_patches - round(num_patches * mask_ratio)
    if keep < 1 or keep >= num_patches:
        raise ValueError(f"a mask_ratio of {mask_ratio} is out of range")
    noise = torch.rand(batch, num_patches, generator=generator)
    shuffled = noise.argsort(dim=1)
    kept = shuffled[:, :keep].sort(dim=1).values.to(tokens.device)
    mask = torch.ones(batch, num_patches, dtype=torch.bool, device=tokens.device).scatter(1, kept, False)
    return torch.gather(tokens, 1, kept[:, :, None].expand(-1, -1, dim)), mask


def masking_image_by_image(tokens, mask_ratio, generator):
    batch, num_patches, _ = tokens.shape
    hidden = round(mask_ratio * num_patches)
    if not 1 <= hidden <= num_patches - 1:
        raise ValueError("mask_ratio " + str(mask_ratio))
    mask = torch.zeros(batch, num_patches, dtype=torch.bool)
    for image in range(batch):
        mask[image, torch.randperm(num_patches, generator=generator)[:hidden]] = True
    mask = mask.to(tokens.device)
    return torch.stack([each[~row] for each, row in zip(tokens, mask, strict=True)]), mask


def masking_by_the_smallest(tokens, mask_ratio, generator):
    num_patches = tokens.shape[1]
    hidden = round(mask_ratio * num_patches)
    if hidden <= 0 or hidden >= num_patches:
        raise ValueError(f"mask_ratio={mask_ratio} leaves nothing to do")
    noise = torch.rand(tokens.shape[:2], generator=generator)
    mask = torch.zeros_like(noise).scatter(1, noise.topk(hidden, dim=1).indices, 1.0).bool().to(tokens.device)
    return [tokens[~mask].unflatten(0, (len(tokens), -1)), mask]


RIGHT = {
    "DropPath": [DropPath, DropPathByBernoulli, DropPathByWhere, DropPathByDropout],
    "LayerScale": [LayerScale, LayerScaleByOnes, LayerScaleByFilling],
    "add_registers": [add_registers, registers_by_slices, registers_by_repeat, registers_image_by_image],
    "rotary_2d": [rotary_2d, rotary_by_complex_numbers, rotary_by_doubled_angles],
    "QKNormAttention": [QKNormAttention, QKNormByHand, QKNormHeadByHead],
    "random_masking": [
        random_masking,
        masking_of_the_paper,
        masking_image_by_image,
        masking_by_the_smallest,
    ],
}
