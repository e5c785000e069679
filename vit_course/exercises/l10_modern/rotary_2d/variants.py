"""Right answers in other styles: what no check may refuse."""

import torch

from vit_course.modern import rotary_2d


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

    def rotate_by_complex_numbers(x):
        pairs = x[..., front:, :].unflatten(-1, (-1, 2)).double()
        a, b = pairs.unbind(-1)
        both = torch.stack([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)
        return torch.cat([x[..., :front, :], both.flatten(-2).to(x.dtype)], dim=-2)

    return rotate_by_complex_numbers(query), rotate_by_complex_numbers(key)


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

    def rotate_by_doubled_angles(t):
        return torch.stack([-t[..., 1::2], t[..., ::2]], dim=-1).reshape(t.shape)

    return query * cos + rotate_by_doubled_angles(query) * sin, key * cos + rotate_by_doubled_angles(key) * sin


RIGHT = {"rotary_2d": [rotary_2d, rotary_by_complex_numbers, rotary_by_doubled_angles]}
