"""Known mistakes of lesson 02, last part: positions for another grid of patches."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.tokens import resize_positions, resized
from vit_course.exercises.misconceptions.patches import on_the_cpu

Grid = tuple[int, int]

RESIZE = "02_positions, The same picture, more patches"


def _fit(positions: Tensor, grid: Grid) -> None:
    if positions.shape[1] != 1 + grid[0] * grid[1]:
        raise ValueError(f"{positions.shape[1]} rows for a grid of {grid}")


def _resampled(positions: Tensor, old_grid: Grid, new_grid: Grid, mode: str, **options: bool) -> Tensor:
    """The grid's rows under another mode or option of torch's interpolation."""
    _fit(positions, old_grid)
    columns = [positions[0, 1:, dimension].reshape(1, 1, *old_grid) for dimension in range(positions.shape[2])]
    made = [F.interpolate(column, new_grid, mode=mode, **options).flatten() for column in columns]
    return torch.cat([positions[:, :1], torch.stack(made, dim=1)[None]], dim=1)


@resize_positions.misconception("Which mode did the exercise ask for?", RESIZE)
def bilinear_for_bicubic(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The grid is resampled with bilinear interpolation."""
    return _resampled(positions, old_grid, new_grid, "bilinear")


@resize_positions.misconception("Which mode does F.interpolate take when you name none?", RESIZE)
def nearest_neighbour(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Each new patch takes over the nearest old one's row, F.interpolate's default."""
    return _resampled(positions, old_grid, new_grid, "nearest")


@resize_positions.misconception("Do the outermost patches' centres lie on the edge of the picture?", RESIZE)
def corners_aligned(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The centres of the corner patches are laid on each other, as align_corners=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", align_corners=True)


@resize_positions.misconception("What does the exercise say about antialias?", RESIZE)
def smoothed_before_shrinking(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The grid is smoothed before it shrinks, as antialias=True does."""
    return _resampled(positions, old_grid, new_grid, "bicubic", antialias=True)


@resize_positions.misconception(
    "Are two rows that stand next to each other in the table neighbours in the image?", RESIZE
)
def stretched_as_a_line(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The rows are resampled as one long line, though they come from a grid."""
    _fit(positions, old_grid)
    line = F.interpolate(positions[:, 1:].mT, new_grid[0] * new_grid[1], mode="linear").mT
    return torch.cat([positions[:, :1], line], dim=1)


@resize_positions.misconception("Which axis does F.interpolate take for the channels?", RESIZE)
def reshaped_into_a_picture(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A reshape to (1, embed_dim, rows, columns) moves no number, so each picture mixes dimensions and places."""
    _fit(positions, old_grid)
    patches = positions[:, 1:]
    scrambled = patches.reshape(1, patches.shape[2], -1).mT
    return resized(torch.cat([positions[:, :1], scrambled], dim=1), old_grid, new_grid)


@resize_positions.misconception("After F.interpolate, which axis holds the dimensions?", RESIZE)
def reshaped_into_a_table(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A reshape to (1, new patches, embed_dim) moves no number, so each row holds a strip of one dimension."""
    _fit(positions, old_grid)
    right = resized(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], right[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception("Does a reshape ever change which numbers are neighbours in memory?", RESIZE)
def reshaped_both_ways(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The table is reshaped into a picture and back, and the dimensions are taken for places both times."""
    there = reshaped_into_a_picture(positions, old_grid, new_grid)
    return torch.cat([positions[:, :1], there[:, 1:].mT.reshape(1, -1, positions.shape[2])], dim=1)


@resize_positions.misconception(
    "Which axis of your picture does F.interpolate take for the channels?", RESIZE, InTraining.STOPS
)
def dimensions_left_last(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """F.interpolate is given (1, rows, columns, embed_dim), so it resizes columns and dimensions."""
    _fit(positions, old_grid)
    picture = positions[:, 1:].unflatten(1, old_grid)
    wrong = F.interpolate(picture, new_grid, mode="bicubic").reshape(1, -1, positions.shape[2])  # raises, as a rule
    return torch.cat([positions[:, :1], wrong], dim=1)


@resize_positions.misconception("On the way out: which axis runs fastest, the row or the column?", RESIZE)
def new_grid_read_column_by_column(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The resized picture is unrolled down its columns, where patches run along the rows."""
    _fit(positions, old_grid)
    made = resized(positions, old_grid, new_grid)
    turned = made[:, 1:].unflatten(1, new_grid).transpose(1, 2).flatten(1, 2)
    return torch.cat([made[:, :1], turned], dim=1)


@resize_positions.misconception(
    "What is first in old_grid, and what is first in a picture's size?", RESIZE, InTraining.UNSEEN
)
def old_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """old_grid is read as (columns, rows)."""
    return resized(positions, (old_grid[1], old_grid[0]), new_grid)


@resize_positions.misconception("What is first in new_grid?", RESIZE, InTraining.UNSEEN)
def new_rows_and_columns_swapped(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """new_grid is read as (columns, rows)."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, (new_grid[1], new_grid[0]))


@resize_positions.misconception(
    "Where does old_grid tell you the sides, when they are not equal?", RESIZE, InTraining.UNSEEN
)
def square_grid_assumed(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The side of the old grid is taken to be the root of the number of patches."""
    side = int((positions.shape[1] - 1) ** 0.5)
    positions[:, 1:].reshape(1, side, side, positions.shape[2])
    return resized(positions, (side, side), new_grid)


@resize_positions.misconception(
    "How many rows does the new table need, and for whom is the first?", RESIZE, InTraining.STOPS
)
def class_token_lost(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is set aside and never put back."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid)[:, 1:]


@resize_positions.misconception("At which end of the table does the class token's row belong?", RESIZE)
def class_token_put_back_last(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The class token's row is put behind the patches' rows."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).roll(-1, dims=1)


@resize_positions.misconception("Which row of positions have you not used?", RESIZE)
def zeros_for_the_class_token(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A row of zeros is put in front, and the class token's own is not used."""
    _fit(positions, old_grid)
    made = resized(positions, old_grid, new_grid)
    return torch.cat([torch.zeros_like(made[:, :1]), made[:, 1:]], dim=1)


@resize_positions.misconception(
    "How many patches does the grid have, and how many rows the table?", RESIZE, InTraining.STOPS
)
def class_token_taken_for_a_patch(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """All rows are laid out as a grid, the class token's too, and there is one too many."""
    _fit(positions, old_grid)
    return positions.reshape(1, *old_grid, positions.shape[2])


@resize_positions.misconception(
    "Which dtype does your new tensor get, and which had the positions?", RESIZE, InTraining.UNSEEN
)
def positions_as_float32(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The result is float32, whatever the dtype of the positions."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).float()


@resize_positions.misconception(
    "Who notices when the table does not belong to the old grid?", RESIZE, InTraining.UNSEEN
)
def rows_never_counted(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Nothing compares the table with the old grid, so the error comes from torch and says little."""
    positions[:, 1:].reshape(1, *old_grid, positions.shape[2])
    return resized(positions, old_grid, new_grid)


@resize_positions.misconception(
    "Which argument of F.interpolate takes a size in rows and columns?", RESIZE, InTraining.UNSEEN
)
def scale_factor_for_the_size(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """F.interpolate is given a scale_factor, and for some sizes the division leaves it a row or a column short."""
    _fit(positions, old_grid)
    factors = (new_grid[0] / old_grid[0], new_grid[1] / old_grid[1])
    made = F.interpolate(positions[:, 1:].mT.unflatten(2, old_grid), scale_factor=factors, mode="bicubic")
    return torch.cat([positions[:, :1], made.flatten(2).mT], dim=1)


@resize_positions.misconception("Are two grids the same when they have as many patches?", RESIZE, InTraining.UNSEEN)
def as_many_patches_taken_for_the_same_grid(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """A grid of other sides and as many patches is taken for the old one, and nothing is resampled."""
    _fit(positions, old_grid)
    if old_grid[0] * old_grid[1] == new_grid[0] * new_grid[1]:
        return positions
    return resized(positions, old_grid, new_grid)


@resize_positions.misconception("Does the table in your result still know its parameter?", RESIZE, InTraining.UNSEEN)
def positions_cut_from_their_gradient(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The positions are copied as bare numbers, so they can no longer learn."""
    _fit(positions, old_grid)
    return resized(positions, old_grid, new_grid).detach()


@resize_positions.misconception("Does the copy that you give back still know its parameter?", RESIZE, InTraining.UNSEEN)
def copied_without_gradient_at_the_same_grid(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """Where the grid stays, the positions are copied as bare numbers, so they can no longer learn."""
    _fit(positions, old_grid)
    return positions.detach().clone() if old_grid == new_grid else resized(positions, old_grid, new_grid)


@resize_positions.misconception(
    "On which device does your new tensor lie, and on which the positions?", RESIZE, InTraining.UNSEEN
)
def table_made_on_the_cpu(positions: Tensor, old_grid: Grid, new_grid: Grid) -> Tensor:
    """The new table is a new tensor on the CPU, wherever the positions are."""
    _fit(positions, old_grid)
    return on_the_cpu(resized(positions, old_grid, new_grid))
