"""Right variants of lesson 10."""

import itertools

import numpy as np
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


def rotary_by_offsets(rotate):
    """By dot products alone: the same one for the same offset, and different ones for different offsets."""
    rows, columns = 4, 3
    torch.manual_seed(8)
    query, key = torch.randn(3, 2, 1, 12).repeat(1, 1, 12, 1), torch.randn(3, 2, 1, 12).repeat(1, 1, 12, 1)
    front = torch.randn(3, 2, 4, 12)
    queries, keys = torch.cat([front, query], 2), torch.cat([front + 1, key], 2)
    try:
        new_queries, new_keys = rotate(queries, keys, (rows, columns))
        torch.testing.assert_close(new_queries.norm(dim=3), queries.norm(dim=3), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_keys.norm(dim=3), keys.norm(dim=3), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_queries[:, :, :5], queries[:, :, :5], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(new_keys[:, :, :5], keys[:, :, :5], atol=1e-4, rtol=1e-4)
        for image in range(3):
            by_itself = rotate(queries[image], keys[image], (rows, columns))
            torch.testing.assert_close(by_itself[0], new_queries[image], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(by_itself[1], new_keys[image], atol=1e-4, rtol=1e-4)
        scores = new_queries[:, :, 4:] @ new_keys[:, :, 4:].mT
        by_offset = {}
        for one, other in itertools.product(range(rows * columns), repeat=2):
            offset = (other // columns - one // columns, other % columns - one % columns)
            by_offset.setdefault(offset, []).append(scores[:, :, one, other])
    except AssertionError:
        return False
    if any((torch.stack(same) - same[0]).abs().amax() > 1e-4 for same in by_offset.values()):
        return False
    different = torch.stack([same[0].flatten() for same in by_offset.values()])
    if torch.pdist(different).amin() < 1e-3:
        return False
    return _has_speeds(rotate, 12)


def _has_speeds(rotate, head_dim):
    """Whether one-hot queries turn by different angles with a step down, and others with a step to the right."""
    speeds = []
    for grid in ((2, 1), (1, 2)):
        ones = torch.eye(head_dim)[:, None].repeat(1, 2, 1)
        speeds.append([round(each, 3) for each in rotate(ones, ones, grid)[0][:, 1].diagonal().tolist()])
    turns = [{number for number, cosine in enumerate(each) if cosine < 0.9995} for each in speeds]
    return not turns[0] & turns[1] and all(len(set(each)) == 1 + head_dim // 4 for each in speeds)


def rotary_by_numpy(rotate):
    """Each number alone, on every patch: a turn adds up from patch to patch. The answer is numpy's bool."""
    rows, columns, head_dim = 3, 4, 8
    one_hot = np.zeros((head_dim, 1 + rows * columns, head_dim))
    one_hot[np.arange(head_dim), :, np.arange(head_dim)] = 1
    noise = np.random.default_rng(5).normal(size=(2, 3, 1 + rows * columns, head_dim))
    pair, (query, key) = (torch.from_numpy(one_hot),) * 2, torch.from_numpy(noise)
    images = query[:, None] * torch.tensor([[[1.0]], [[2.0]]], dtype=torch.float64)
    found = [each.numpy() for each in rotate(*pair, (rows, columns))]
    of_images = [each.numpy() for each in rotate(images, key[:, None].expand_as(images), (rows, columns))]
    if any(each.shape != one_hot.shape for each in found) or any(each.shape != images.shape for each in of_images):
        return False
    turns = found[0].transpose(1, 0, 2)
    down, right = turns[1 + columns], turns[2]
    powers = np.linalg.matrix_power
    grid = [powers(right, column) @ powers(down, row) for row in range(rows) for column in range(columns)]
    wanted = np.stack([np.eye(head_dim), *grid])
    given = (images.numpy(), np.broadcast_to(key.numpy()[:, None], images.shape))
    same = np.allclose(turns, wanted, atol=1e-4) & np.allclose(down @ down.T, np.eye(head_dim), atol=1e-4)
    same &= np.allclose(right @ right.T, np.eye(head_dim), atol=1e-4)
    for seen, before in zip(of_images, given, strict=True):
        same &= np.allclose(seen, np.einsum("...tc,tcd->...td", before, wanted), atol=1e-4)
    cosines = [np.sort(each.diagonal())[::2] for each in (down, right)]
    still = (down.diagonal() > 0.999) ^ (right.diagonal() > 0.999)
    return same & still.all() & all((np.diff(each)[: head_dim // 4] > 1e-3).all() for each in cosines)


def rotary_by_eigenvalues(rotate):
    """A step down and a step to the right as matrices, and their angles as eigenvalues."""
    grid, width, generator = (3, 5), 16, torch.Generator().manual_seed(2)
    draw = torch.randn(2, 4, 2, 18, width, dtype=torch.float64, generator=generator)
    before = {"query": draw[0], "key": draw[1]}
    after = dict(zip(before, rotate(draw[0], draw[1], grid), strict=True))
    if any(after[name].shape != x.shape for name, x in before.items()):
        return False
    matrices = {}
    for name, x in before.items():
        if not torch.allclose(after[name][:, :, :4], x[:, :, :4], atol=1e-5):
            return False
        flat, turned = x.flatten(0, 1), after[name].flatten(0, 1)
        columns = torch.eye(width, dtype=torch.float64)[:, None].expand(-1, 18, -1)
        matrices[name] = rotate(columns, columns, grid)[name == "key"].transpose(0, 1)
        if not torch.allclose(torch.einsum("btc,tcd->btd", flat, matrices[name]), turned, atol=1e-6):
            return False
    turns = matrices["query"]
    if not torch.allclose(turns, matrices["key"], atol=1e-6):
        return False
    down, right = turns[8], turns[4]
    for number, (row, column) in enumerate(itertools.product(range(3), range(5))):
        expected = torch.linalg.matrix_power(down, row) @ torch.linalg.matrix_power(right, column)
        if not torch.allclose(turns[3 + number], expected, atol=1e-5):
            return False
    angles = [torch.linalg.eigvals(each) for each in (down, right)]
    if not all(torch.allclose(each.abs(), torch.ones(width, dtype=torch.float64), atol=1e-5) for each in angles):
        return False
    sizes = [each.angle().abs().sort().values for each in angles]
    apart = ((down - torch.eye(width)).abs().amax(1) > 1e-3) != ((right - torch.eye(width)).abs().amax(1) > 1e-3)
    steps = [((each.diff() > 1e-3).sum() == width // 4) & ((each > 1e-3).sum() == width // 2) for each in sizes]
    return bool(apart.all() and all(steps))


def rotary_that_answers_in_tensors(rotate):
    return torch.tensor(rotary_by_offsets(rotate))


RIGHT = {
    "DropPath": [DropPath, DropPathByBernoulli, DropPathByWhere, DropPathByDropout],
    "LayerScale": [LayerScale, LayerScaleByOnes, LayerScaleByFilling],
    "add_registers": [add_registers, registers_by_slices, registers_by_repeat, registers_image_by_image],
    "rotary_2d": [rotary_2d, rotary_by_complex_numbers, rotary_by_doubled_angles],
    "is_rotary": [rotary_by_offsets, rotary_by_numpy, rotary_by_eigenvalues, rotary_that_answers_in_tensors],
    "QKNormAttention": [QKNormAttention, QKNormByHand, QKNormHeadByHead],
    "random_masking": [
        random_masking,
        masking_of_the_paper,
        masking_image_by_image,
        masking_by_the_smallest,
    ],
}
