"""Rotary positions on a grid, as x · cos + turned-by-a-right-angle(x) · sin."""

import torch


def rotary_2d(query: torch.Tensor, key: torch.Tensor, grid_size: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Turn queries and keys by row and column of their patch; what stands in front of the patches stays."""
    rows, columns = grid_size
    tokens, head_dim = query.shape[-2:]
    if head_dim % 4 or tokens < rows * columns:
        # bug "sizes not tested": if tokens < rows * columns:
        # bug "sizes not tested":     return query, key
        # bug "sizes not tested": if head_dim < 4:
        raise ValueError(f"{tokens} tokens with head_dim {head_dim} do not fit {rows * columns} patches")
    pairs = head_dim // 4
    device = query.device
    # bug "angles on the cpu": device = torch.device("cpu")
    exponents = torch.arange(pairs, device=device).double() / pairs
    # bug "one speed for all pairs": exponents = torch.zeros(pairs, device=device).double()
    # bug "speeds over both halves": exponents = torch.arange(pairs, device=device).double() / (2 * pairs)
    # bug "the slowest at one in a hundred": exponents = torch.linspace(0, 1, pairs, device=device).double()
    speeds = 100.0**-exponents
    # bug "the base of texts": speeds = 10_000.0**-exponents
    patch = torch.arange(rows * columns, device=device)
    # bug "counted from the class token": patch = torch.arange(tokens, device=device)
    row, column = patch // columns, patch % columns
    # bug "rows and columns swapped": column, row = patch // columns, patch % columns
    # bug "patches column by column": row, column = patch % rows, patch // rows
    # bug "counted from one": row, column = patch // columns + 1, patch % columns + 1
    # bug "one long row": row, column = patch, patch
    # bug "the row in both halves": row, column = patch // columns, patch // columns
    angles = torch.cat([torch.outer(row, speeds), torch.outer(column, speeds)], dim=1)
    front = angles.new_zeros(tokens - len(patch), 2 * pairs)
    angles = torch.cat([front, angles]).repeat_interleave(2, dim=1)
    # bug "rotate half": angles = torch.cat([front, angles]).repeat(1, 2)
    # bug "halves for pairs": angles = torch.cat([front, angles]).unflatten(1, (2, 1, pairs)).repeat(1, 1, 2, 1).flatten(1)
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
    # bug "both turned the other way": cos, sin = angles.cos().to(query.dtype), -angles.sin().to(query.dtype)

    def turned(x: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        crossed = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        # bug "the minus forgotten": crossed = torch.stack([x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        # bug "rotate half": crossed = torch.cat([-x[..., head_dim // 2 :], x[..., : head_dim // 2]], dim=-1)
        # bug "two pairings mixed": crossed = torch.cat([-x[..., head_dim // 2 :], x[..., : head_dim // 2]], dim=-1)
        # bug "halves for pairs": first, second = x.unflatten(-1, (2, 2, pairs)).unbind(-2)
        # bug "halves for pairs": crossed = torch.stack([-second, first], dim=-2).flatten(-3)
        # bug "sizes not tested": x, rest = x[..., : 4 * pairs], x[..., 4 * pairs :]
        # bug "sizes not tested": crossed = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        return x * cos + crossed * sin
        # bug "sizes not tested": return torch.cat([x * cos + crossed * sin, rest], dim=-1)
        # bug "pairs not put together": return (x * cos + crossed * sin).unflatten(-1, (-1, 2)).mT.flatten(-2)
        # bug "angles added": waves = torch.stack([sin[:, 0::2], cos[:, 0::2]], dim=-1).flatten(-2)
        # bug "angles added": waves[: len(front)] = 0
        # bug "angles added": return x + waves

    return turned(query, sin), turned(key, sin)
    # bug "the key left alone": return turned(query, sin), key
    # bug "the key turned back": return turned(query, sin), turned(key, -sin)
    # bug "key before query": return turned(key, sin), turned(query, sin)
    # bug "the query alone": return turned(query, sin)
    # bug "always float32": return turned(query, sin).float(), turned(key, sin).float()
    # bug "cut from the gradient": return turned(query.detach(), sin), turned(key.detach(), sin)
    # bug "turned in place": new_query, new_key = turned(query, sin), turned(key, sin)
    # bug "turned in place": query.data.copy_(new_query.data)
    # bug "turned in place": key.data.copy_(new_key.data)
    # bug "turned in place": return new_query, new_key
