"""Rotary positions on a grid, as x · cos + turned-by-a-right-angle(x) · sin."""

import torch


def suspect_rotary(query, key, grid_size):
    """Turn queries and keys by row and column of their patch; what stands in front of the patches stays."""
    rows, columns = grid_size
    tokens, head_dim = query.shape[-2:]
    if head_dim % 4 or tokens < rows * columns:
        raise ValueError(f"{tokens} tokens with head_dim {head_dim} do not fit {rows * columns} patches")
    pairs = head_dim // 4
    exponents = torch.arange(pairs, device=query.device).double() / pairs
    # bug "one speed for all pairs": exponents = torch.zeros(pairs, device=query.device).double()
    speeds = 100.0**-exponents
    # bug "the base of texts": speeds = 10_000.0**-exponents
    patch = torch.arange(rows * columns, device=query.device)
    row, column = patch // columns, patch % columns
    # bug "rows and columns swapped": column, row = patch // columns, patch % columns
    # bug "patches column by column": row, column = patch % rows, patch // rows
    # bug "counted from one": row, column = patch // columns + 1, patch % columns + 1
    # bug "one long row": row, column = patch, patch
    # bug "the row in both halves": row, column = patch // columns, patch // columns
    angles = torch.cat([torch.outer(row, speeds), torch.outer(column, speeds)], dim=1)
    front = angles.new_zeros(tokens - rows * columns, 2 * pairs)
    angles = torch.cat([front, angles]).repeat_interleave(2, dim=1)
    cos, sin = angles.cos().to(query.dtype), angles.sin().to(query.dtype)
    # bug "both turned the other way": cos, sin = angles.cos().to(query.dtype), -angles.sin().to(query.dtype)

    def turned(x):
        crossed = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        # bug "the minus forgotten": crossed = torch.stack([x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
        return x * cos + crossed * sin

    return turned(query), turned(key)
    # bug "the key left alone": return turned(query), key
    # bug "key before query": return turned(key), turned(query)
    # bug "the query alone": return turned(query)
    # bug "always float32": return turned(query).float(), turned(key).float()
