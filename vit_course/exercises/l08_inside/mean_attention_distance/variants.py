"""Right answers in other styles: what no check may refuse."""

from itertools import product
from math import dist

import torch

from vit_course import interpret as reference


def distance_by_cdist(weights, grid_size, patch_size):
    rows, columns = grid_size
    tokens = weights.size(-1)
    if tokens == rows * columns + 1:
        weights = weights[:, :, 1:, 1:]
        weights = weights / weights.sum(-1, keepdim=True)
    elif tokens != rows * columns:
        raise ValueError(f"{tokens} tokens, but a grid of {rows} x {columns}")
    y, x = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    centers = patch_size * (torch.stack([y, x], -1).flatten(0, 1).to(weights) + 0.5)
    return torch.einsum("bhqk,qk->h", weights, torch.cdist(centers, centers)) / weights.shape[0] / weights.shape[2]


def distance_by_loops(weights, grid_size, patch_size):
    rows, columns = grid_size
    extra = weights.shape[-1] - rows * columns
    if extra not in (0, 1):
        raise ValueError(f"a grid of {rows} rows and {columns} columns does not have {weights.shape[-1]} tokens")
    places = list(product(range(rows), range(columns)))
    ruler = torch.tensor([[patch_size * dist(here, there) for there in places] for here in places]).to(weights)
    of_heads = []
    for head in range(weights.shape[1]):
        shares = weights[:, head, extra:, extra:].clone()
        shares /= shares.sum(2, keepdim=True)
        of_heads.append((shares * ruler).sum(2).mean())
    return torch.stack(of_heads)


def distance_by_broadcasting(weights, grid_size, patch_size):
    rows, columns = grid_size
    patches = rows * columns
    if weights.shape[-1] not in (patches, patches + 1):
        raise ValueError(f"{weights.shape[-1]} is neither {rows} * {columns} nor one more")
    among = weights[..., -patches:, -patches:]
    number = torch.arange(patches, device=weights.device)
    row, column = number // columns, number % columns
    squares = (row[:, None] - row[None]) ** 2 + (column[:, None] - column[None]) ** 2
    far = squares.to(among.dtype).sqrt() * patch_size
    return ((among * far).sum(-1) / among.sum(-1)).mean(-1).mean(0)


RIGHT = {
    "mean_attention_distance": [
        reference.mean_attention_distance,
        distance_by_cdist,
        distance_by_loops,
        distance_by_broadcasting,
    ]
}
