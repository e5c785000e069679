"""Right variants of lesson 02."""

import math

import einops
import numpy as np
import torch
import torch.nn.functional as F

from vit_course import positions as reference
from vit_course.pretrained import resize_positions


def _refuse(embed_dim, divisor):
    if embed_dim % divisor:
        raise ValueError(f"embed_dim must be divisible by {divisor}, got {embed_dim}")


def sinusoids_by_loops(num_positions, embed_dim):
    _refuse(embed_dim, 2)
    table = torch.zeros(num_positions, embed_dim)
    for position in range(num_positions):
        for i in range(embed_dim // 2):
            angle = position / 10000 ** (2 * i / embed_dim)
            table[position, 2 * i] = math.sin(angle)
            table[position, 2 * i + 1] = math.cos(angle)
    return table


def sinusoids_by_exp_and_log(num_positions, embed_dim):
    _refuse(embed_dim, 2)
    position = torch.arange(num_positions).unsqueeze(1)
    turn = torch.exp(torch.arange(0, embed_dim, 2) * (-math.log(10000.0) / embed_dim))
    table = torch.zeros(num_positions, embed_dim)
    table[:, 0::2] = torch.sin(position * turn)
    table[:, 1::2] = torch.cos(position * turn)
    return table


def sinusoids_by_numpy(num_positions, embed_dim):
    _refuse(embed_dim, 2)
    dimensions = np.arange(embed_dim)
    angles = np.arange(num_positions)[:, None] / np.power(10000, 2 * (dimensions // 2) / embed_dim)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return torch.from_numpy(angles).float()


def sinusoids_by_a_shifted_sine(num_positions, embed_dim):
    _refuse(embed_dim, 2)
    dimension = torch.arange(embed_dim)
    angles = torch.arange(num_positions)[:, None] / 10000 ** ((dimension - dimension % 2) / embed_dim)
    return torch.sin(angles + dimension % 2 * math.pi / 2)


def sinusoids_by_where(num_positions, embed_dim):
    _refuse(embed_dim, 2)
    dimension = torch.arange(embed_dim)
    angles = torch.arange(num_positions)[:, None] / 10000 ** (2 * (dimension // 2) / embed_dim)
    return torch.where(dimension % 2 == 0, angles.sin(), angles.cos())


def grid_by_loops(grid_size, embed_dim):
    _refuse(embed_dim, 4)
    rows, columns = grid_size
    table = []
    for row in range(rows):
        for column in range(columns):
            down = sinusoids_by_loops(rows, embed_dim // 2)[row]
            across = sinusoids_by_loops(columns, embed_dim // 2)[column]
            table.append(torch.cat((down, across)))
    return torch.stack(table)


def grid_by_expand(grid_size, embed_dim):
    _refuse(embed_dim, 4)
    rows, columns = grid_size
    down = reference.sinusoidal_positions(rows, embed_dim // 2)[:, None].expand(rows, columns, -1)
    across = reference.sinusoidal_positions(columns, embed_dim // 2)[None].expand(rows, columns, -1)
    return torch.cat([down, across], dim=-1).flatten(0, 1)


def grid_by_meshgrid(grid_size, embed_dim):
    _refuse(embed_dim, 4)
    rows, columns = (torch.arange(size) for size in grid_size)
    row, column = torch.meshgrid(rows, columns, indexing="ij")
    table = reference.sinusoidal_positions(max(grid_size), embed_dim // 2)
    return torch.cat([table[row.flatten()], table[column.flatten()]], dim=1)


def grid_by_einops(grid_size, embed_dim):
    _refuse(embed_dim, 4)
    rows, columns = grid_size
    down, across = (sinusoids_by_exp_and_log(size, embed_dim // 2) for size in grid_size)
    down = einops.repeat(down, "row d -> (row column) d", column=columns)
    across = einops.repeat(across, "column d -> (row column) d", row=rows)
    return torch.hstack([down, across])


def grid_by_division(grid_size, embed_dim):
    _refuse(embed_dim, 4)
    rows, columns = grid_size
    patch = torch.arange(rows * columns)
    down, across = (sinusoids_by_where(size, embed_dim // 2) for size in grid_size)
    return torch.cat([down[patch // columns], across[patch % columns]], dim=1)


def _count(tokens, positions):
    if positions.size(1) != tokens.size(1) + 1:
        raise ValueError(f"expected {tokens.size(1) + 1} positions, got {positions.size(1)}")


def class_token_by_expand(tokens, class_token, positions):
    _count(tokens, positions)
    return torch.cat((class_token.expand(tokens.shape[0], -1, -1), tokens), 1) + positions


def class_token_by_repeat(tokens, class_token, positions):
    _count(tokens, positions)
    return torch.cat([class_token.repeat(len(tokens), 1, 1), tokens], dim=1) + positions


def class_token_by_tile(tokens, class_token, positions):
    _count(tokens, positions)
    return torch.hstack([torch.tile(class_token, (len(tokens), 1, 1)), tokens]) + positions


def class_token_by_repeat_interleave(tokens, class_token, positions):
    _count(tokens, positions)
    return torch.cat([class_token.repeat_interleave(len(tokens), dim=0), tokens], dim=1) + positions


def class_token_by_broadcast_to(tokens, class_token, positions):
    _count(tokens, positions)
    batch, _, embed_dim = tokens.shape
    return torch.cat([class_token.broadcast_to(batch, 1, embed_dim), tokens], dim=1) + positions.expand(batch, -1, -1)


def class_token_with_positions_first(tokens, class_token, positions):
    _count(tokens, positions)
    first = (class_token + positions[:, :1]).expand(len(tokens), -1, -1)
    return torch.cat([first, tokens + positions[:, 1:]], dim=1)


def class_token_by_new_empty(tokens, class_token, positions):
    _count(tokens, positions)
    batch, num_patches, embed_dim = tokens.shape
    result = tokens.new_empty(batch, num_patches + 1, embed_dim)
    result[:, 0] = class_token[0, 0]
    result[:, 1:] = tokens
    result += positions
    return result


def class_token_by_padding(tokens, class_token, positions):
    _count(tokens, positions)
    return F.pad(tokens, (0, 0, 1, 0)) + positions + F.pad(class_token, (0, 0, 0, tokens.shape[1]))


def class_token_by_loops(tokens, class_token, positions):
    _count(tokens, positions)
    return torch.stack([torch.cat([class_token[0], image]) + positions[0] for image in tokens])


def _fit(positions, old_grid):
    if positions.shape[1] != old_grid[0] * old_grid[1] + 1:
        raise ValueError(f"a grid of {old_grid} does not have {positions.shape[1]} positions")


def resized_by_transpose_and_reshape(positions, old_grid, new_grid):
    _fit(positions, old_grid)
    first, grid = positions[:, :1], positions[:, 1:]
    dim = positions.shape[-1]
    grid = grid.transpose(1, 2).reshape(1, dim, *old_grid)
    grid = F.interpolate(grid, size=new_grid, mode="bicubic", align_corners=False, antialias=False)
    return torch.cat([first, grid.reshape(1, dim, -1).transpose(1, 2)], dim=1)


def resized_by_einops(positions, old_grid, new_grid):
    _fit(positions, old_grid)
    first, grid = positions.split([1, positions.shape[1] - 1], dim=1)
    grid = einops.rearrange(grid, "1 (h w) d -> 1 d h w", h=old_grid[0], w=old_grid[1])
    grid = F.interpolate(grid, tuple(new_grid), mode="bicubic")
    return torch.cat([first, einops.rearrange(grid, "1 d h w -> 1 (h w) d")], dim=1)


def resized_dimension_by_dimension(positions, old_grid, new_grid):
    _fit(positions, old_grid)
    result = positions.new_empty(1, 1 + new_grid[0] * new_grid[1], positions.shape[2])
    result[:, 0] = positions[:, 0]
    for dimension in range(positions.shape[2]):
        picture = positions[0, 1:, dimension].reshape(1, 1, old_grid[0], old_grid[1])
        result[0, 1:, dimension] = F.interpolate(picture, size=new_grid, mode="bicubic").flatten()
    return result


def resized_unless_the_grids_agree(positions, old_grid, new_grid):
    _fit(positions, old_grid)
    if tuple(old_grid) == tuple(new_grid):
        return positions
    return resized_by_transpose_and_reshape(positions, old_grid, new_grid)


RIGHT = {
    "sinusoidal_positions": [
        reference.sinusoidal_positions,
        sinusoids_by_loops,
        sinusoids_by_exp_and_log,
        sinusoids_by_numpy,
        sinusoids_by_a_shifted_sine,
        sinusoids_by_where,
    ],
    "sinusoidal_positions_2d": [
        reference.sinusoidal_positions_2d,
        grid_by_loops,
        grid_by_expand,
        grid_by_meshgrid,
        grid_by_einops,
        grid_by_division,
    ],
    "add_class_token": [
        reference.add_class_token,
        class_token_by_expand,
        class_token_by_repeat,
        class_token_by_tile,
        class_token_by_repeat_interleave,
        class_token_by_broadcast_to,
        class_token_with_positions_first,
        class_token_by_new_empty,
        class_token_by_loops,
        class_token_by_padding,
    ],
    "resize_positions": [
        resize_positions,
        resized_by_transpose_and_reshape,
        resized_by_einops,
        resized_dimension_by_dimension,
        resized_unless_the_grids_agree,
    ],
}
