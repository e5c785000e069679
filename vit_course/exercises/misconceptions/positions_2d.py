"""Known mistakes of lesson 02, first part: the table of positions for a grid, patch by patch."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.positions import sinusoidal_positions_2d, sinusoids

GRID = "02_positions, Images are not sentences"


def _by_patch(grid_size: tuple[int, int], embed_dim: int, code: Callable[[int, int], Tensor]) -> Tensor:
    """A table with ``code(row, column)`` for every patch, row by row; a length that 4 does not divide is refused."""
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    rows, columns = grid_size
    return torch.stack([code(row, column) for row in range(rows) for column in range(columns)])


def _code(number: int, embed_dim: int) -> Tensor:
    return sinusoids(number + 1, embed_dim)[number]


@sinusoidal_positions_2d.misconception("Which half of the dimensions was promised to the row?", GRID)
def column_in_the_first_half(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The first half of the dimensions tells the column and the second the row."""
    half = embed_dim // 2
    return _by_patch(grid_size, embed_dim, lambda row, column: torch.cat([_code(column, half), _code(row, half)]))


@sinusoidal_positions_2d.misconception(
    "From one patch to the next in the table: which number grows, row or column?", GRID
)
def patches_column_by_column(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The table runs down the columns of the grid, but the patches run along its rows."""
    rows, columns = grid_size
    half = embed_dim // 2
    return _by_patch((columns, rows), embed_dim, lambda c, r: torch.cat([_code(r, half), _code(c, half)]))


@sinusoidal_positions_2d.misconception(
    "How many patches stand in row 0, and which row does your table tell each?", GRID
)
def rows_counted_like_columns(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The row's code changes from patch to patch, as the column's does, though a whole row of patches shares one."""
    (rows, columns), half = grid_size, embed_dim // 2

    def code(row: int, column: int) -> Tensor:
        return torch.cat([_code((row * columns + column) % rows, half), _code(column, half)])

    return _by_patch(grid_size, embed_dim, code)


@sinusoidal_positions_2d.misconception("In which column stands the second patch, and in which in your table?", GRID)
def columns_counted_like_rows(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The column's code stays for several patches, as the row's does, though each patch of a row has its own."""
    (rows, columns), half = grid_size, embed_dim // 2

    def code(row: int, column: int) -> Tensor:
        return torch.cat([_code(row, half), _code((row * columns + column) // rows, half)])

    return _by_patch(grid_size, embed_dim, code)


@sinusoidal_positions_2d.misconception("How far apart are a patch and the one below it, in your table?", GRID)
def patches_counted_like_words(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The patches are numbered from first to last and given the 1-D table, as if the image were a sentence."""
    columns = grid_size[1]
    return _by_patch(grid_size, embed_dim, lambda row, column: _code(row * columns + column, embed_dim))


@sinusoidal_positions_2d.misconception("Can you read the row off a sum of row and column?", GRID)
def row_and_column_added(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The codes of row and column are added over all dimensions, where each should have its own half."""
    return _by_patch(grid_size, embed_dim, lambda row, column: _code(row, embed_dim) + _code(column, embed_dim))


@sinusoidal_positions_2d.misconception("How long is the 1-D table that fills one half?", GRID)
def half_of_a_longer_table(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """Each half is cut from a 1-D table of embed_dim dimensions, so its slowest hands are missing."""
    half = embed_dim // 2

    def code(row: int, column: int) -> Tensor:
        return torch.cat([_code(row, embed_dim)[:half], _code(column, embed_dim)[:half]])

    return _by_patch(grid_size, embed_dim, code)


@sinusoidal_positions_2d.misconception(
    "Do row and column take turns, or does each have half the dimensions in one piece?", GRID
)
def row_and_column_interleaved(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """Dimensions of the row and of the column alternate."""
    half = embed_dim // 2

    def code(row: int, column: int) -> Tensor:
        return torch.stack([_code(row, half), _code(column, half)], dim=1).flatten()

    return _by_patch(grid_size, embed_dim, code)


@sinusoidal_positions_2d.misconception("What is first in grid_size?", GRID, InTraining.UNSEEN)
def columns_taken_for_rows(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """grid_size is read as (columns, rows)."""
    half = embed_dim // 2
    turned = (grid_size[1], grid_size[0])
    return _by_patch(turned, embed_dim, lambda row, column: torch.cat([_code(row, half), _code(column, half)]))


@sinusoidal_positions_2d.misconception("How many columns has a grid of 3 rows and 5 columns?", GRID, InTraining.UNSEEN)
def square_grid_assumed(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The grid is taken to have as many columns as rows."""
    half, square = embed_dim // 2, (grid_size[0], grid_size[0])
    return _by_patch(square, embed_dim, lambda row, column: torch.cat([_code(row, half), _code(column, half)]))


@sinusoidal_positions_2d.misconception(
    "Which number does your message name: the caller's, or yours?", GRID, InTraining.UNSEEN
)
def refused_for_its_half(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The ValueError comes from the 1-D table and names half of embed_dim, a number that the caller never gave."""
    half = embed_dim // 2
    if half % 2:
        raise ValueError(f"embed_dim {half} is odd")
    return _by_patch(grid_size, embed_dim, lambda row, column: torch.cat([_code(row, half), _code(column, half)]))


@sinusoidal_positions_2d.misconception(
    "Which dtype has your table, and which one does the text ask for?", GRID, InTraining.UNSEEN
)
def table_in_float64(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """The table is float64, as NumPy makes it, where float32 was asked for."""
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    half = embed_dim // 2
    code = _by_patch(grid_size, embed_dim, lambda row, column: torch.cat([_code(row, half), _code(column, half)]))
    return code.double()
