"""Right answers in other styles: what no check may refuse."""

import einops
import torch
import torch.nn.functional as F

from vit_course.pretrained import resize_positions


def _refuse_positions_of_another_grid(positions, old_grid):
    if positions.shape[1] != old_grid[0] * old_grid[1] + 1:
        raise ValueError(f"a grid of {old_grid} does not have {positions.shape[1]} positions")


def resized_by_transpose_and_reshape(positions, old_grid, new_grid):
    _refuse_positions_of_another_grid(positions, old_grid)
    first, grid = positions[:, :1], positions[:, 1:]
    dim = positions.shape[-1]
    grid = grid.transpose(1, 2).reshape(1, dim, *old_grid)
    grid = F.interpolate(grid, size=new_grid, mode="bicubic", align_corners=False, antialias=False)
    return torch.cat([first, grid.reshape(1, dim, -1).transpose(1, 2)], dim=1)


def resized_by_einops(positions, old_grid, new_grid):
    _refuse_positions_of_another_grid(positions, old_grid)
    first, grid = positions.split([1, positions.shape[1] - 1], dim=1)
    grid = einops.rearrange(grid, "1 (h w) d -> 1 d h w", h=old_grid[0], w=old_grid[1])
    grid = F.interpolate(grid, tuple(new_grid), mode="bicubic")
    return torch.cat([first, einops.rearrange(grid, "1 d h w -> 1 (h w) d")], dim=1)


def resized_dimension_by_dimension(positions, old_grid, new_grid):
    _refuse_positions_of_another_grid(positions, old_grid)
    result = positions.new_empty(1, 1 + new_grid[0] * new_grid[1], positions.shape[2])
    result[:, 0] = positions[:, 0]
    for dimension in range(positions.shape[2]):
        picture = positions[0, 1:, dimension].reshape(1, 1, old_grid[0], old_grid[1])
        result[0, 1:, dimension] = F.interpolate(picture, size=new_grid, mode="bicubic").flatten()
    return result


def resized_unless_the_grids_agree(positions, old_grid, new_grid):
    _refuse_positions_of_another_grid(positions, old_grid)
    if tuple(old_grid) == tuple(new_grid):
        return positions
    return resized_by_transpose_and_reshape(positions, old_grid, new_grid)


RIGHT = {
    "resize_positions": [
        resize_positions,
        resized_by_transpose_and_reshape,
        resized_by_einops,
        resized_dimension_by_dimension,
        resized_unless_the_grids_agree,
    ]
}
