"""Heads by two new axes and a swap, and back."""

import torch


def split_heads(x: torch.Tensor, num_heads: int) -> torch.Tensor:
    """(B, N, D) -> (B, H, N, D / H)."""
    B, N, D = x.shape
    # bug "pieces out of the graph": x, (B, N, D) = x.detach(), x.shape
    if D % num_heads:
        # bug "leftover numbers dropped": if num_heads < 1:
        raise ValueError(f"{D} numbers cannot be shared by {num_heads} heads")
    H, head_dim = num_heads, D // num_heads
    # bug "number of heads for head dim": H, head_dim = D // num_heads, num_heads
    # bug "leftover numbers dropped": H, head_dim, x = num_heads, D // num_heads, x[..., : D // num_heads * num_heads]
    pieces = x.reshape(B, N, H, head_dim)
    # bug "every other number to a head": pieces = x.reshape(B, N, head_dim, H).transpose(2, 3)
    heads = pieces.transpose(1, 2)
    # bug "reshaped where transposed": heads = x.reshape(B, H, N, head_dim)
    # bug "heads left behind the tokens": heads = pieces
    # bug "heads before the batch": heads = pieces.permute(2, 0, 1, 3).reshape(B, H, N, head_dim)
    return heads
    # bug "batch of one squeezed away": return heads.squeeze(0)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """(B, H, N, D / H) -> (B, N, D)."""
    B, H, N, head_dim = x.shape
    tokens = x.transpose(1, 2).reshape(B, N, H * head_dim)
    # bug "merged without transpose": tokens = x.reshape(B, N, H * head_dim)
    # bug "pieces shuffled together": tokens = x.permute(0, 2, 3, 1).reshape(B, N, H * head_dim)
    # bug "heads added up": tokens = x.sum(dim=1)
    return tokens
    # bug "merged in float32": return tokens.float()
