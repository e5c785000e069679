"""Attention distance, as ViT's authors measure it, by a table of distances between all patches."""

import math  # noqa: F401  # bugs use it

import torch
import torch.nn.functional as F  # noqa: F401  # bugs use it


def mean_attention_distance(weights: torch.Tensor, grid_size: tuple[int, int], patch_size: float) -> torch.Tensor:
    """Mean distance in pixels between query and key patch, for each head."""
    rows, columns = grid_size
    n = rows * columns
    if weights.shape[-1] not in (n, n + 1):
        # bug "misfit left to torch": if n < 1:
        raise ValueError(f"{weights.shape[-1]} tokens for {rows} rows and {columns} columns of patches")
    device = weights.device
    # bug "distances on the cpu": device = torch.device("cpu")
    patch = torch.arange(n, device=device)
    row, column = patch // columns, patch % columns
    # bug "rows and columns swapped": row, column = patch // rows, patch % rows
    # bug "square grid assumed": row, column = patch // math.isqrt(n), patch % math.isqrt(n)
    # bug "distance along the sentence": row, column = patch, patch * 0
    down, across = row[:, None] - row[None, :], column[:, None] - column[None, :]
    distances = (down**2 + across**2).to(weights.dtype).sqrt() * patch_size
    # bug "in patches not pixels": distances = (down**2 + across**2).to(weights.dtype).sqrt()
    # bug "squared distance": distances = (down**2 + across**2).to(weights.dtype) * patch_size**2
    # bug "rows plus columns": distances = (down.abs() + across.abs()).to(weights.dtype) * patch_size
    attn = weights[..., -n:, -n:]
    # bug "last token dropped": attn = weights[..., :n, :n]
    attn = attn / attn.sum(dim=-1, keepdim=True)
    # bug "share of the class token lost":
    # bug "class token at no distance": attn = attn * (n / weights.shape[-1])
    # bug "strongest key only": attn = F.one_hot(attn.argmax(dim=-1), n).to(weights.dtype)
    # bug "written into the weights": attn /= attn.sum(dim=-1, keepdim=True)
    by_query = (attn * distances).sum(dim=-1)
    # bug "keys averaged too": by_query = (attn * distances).mean(dim=-1)
    result = by_query.mean(dim=(0, 2))
    # bug "averaged over the heads": result = by_query.mean(dim=(1, 2))
    # bug "images kept apart": result = by_query.mean(dim=2)
    # bug "query patches summed": result = by_query.mean(dim=0).sum(dim=1)
    return result
    # bug "always float32": return result.float()
