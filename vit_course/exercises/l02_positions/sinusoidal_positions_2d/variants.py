"""Right answers in other styles: what no check may refuse."""

import einops
import torch

from vit_course import positions as reference
from vit_course.exercises.l02_positions.sinusoidal_positions.variants import (
    _refuse_indivisible_length,
    sinusoids_by_exp_and_log,
    sinusoids_by_loops,
    sinusoids_by_where,
)


def grid_by_loops(grid_size, embed_dim):
    _refuse_indivisible_length(embed_dim, 4)
    rows, columns = grid_size
    table = []
    for row in range(rows):
        for column in range(columns):
            down = sinusoids_by_loops(rows, embed_dim // 2)[row]
            across = sinusoids_by_loops(columns, embed_dim // 2)[column]
            table.append(torch.cat((down, across)))
    return torch.stack(table)


def grid_by_expand(grid_size, embed_dim):
    _refuse_indivisible_length(embed_dim, 4)
    rows, columns = grid_size
    down = reference.sinusoidal_positions(rows, embed_dim // 2)[:, None].expand(rows, columns, -1)
    across = reference.sinusoidal_positions(columns, embed_dim // 2)[None].expand(rows, columns, -1)
    return torch.cat([down, across], dim=-1).flatten(0, 1)


def grid_by_meshgrid(grid_size, embed_dim):
    _refuse_indivisible_length(embed_dim, 4)
    rows, columns = (torch.arange(size) for size in grid_size)
    row, column = torch.meshgrid(rows, columns, indexing="ij")
    table = reference.sinusoidal_positions(max(grid_size), embed_dim // 2)
    return torch.cat([table[row.flatten()], table[column.flatten()]], dim=1)


def grid_by_einops(grid_size, embed_dim):
    _refuse_indivisible_length(embed_dim, 4)
    rows, columns = grid_size
    down, across = (sinusoids_by_exp_and_log(size, embed_dim // 2) for size in grid_size)
    down = einops.repeat(down, "row d -> (row column) d", column=columns)
    across = einops.repeat(across, "column d -> (row column) d", row=rows)
    return torch.hstack([down, across])


def grid_by_division(grid_size, embed_dim):
    _refuse_indivisible_length(embed_dim, 4)
    rows, columns = grid_size
    patch = torch.arange(rows * columns)
    down, across = (sinusoids_by_where(size, embed_dim // 2) for size in grid_size)
    return torch.cat([down[patch // columns], across[patch % columns]], dim=1)


RIGHT = {
    "sinusoidal_positions_2d": [
        reference.sinusoidal_positions_2d,
        grid_by_loops,
        grid_by_expand,
        grid_by_meshgrid,
        grid_by_einops,
        grid_by_division,
    ]
}
