"""Parts of tables of positions: the wave, the angle, the position, the layout; rows and columns of a grid."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.positions import sinusoidal_positions, sinusoidal_positions_2d
from vit_course.exercises.misconceptions import positions as wrong
from vit_course.exercises.misconceptions import positions_2d as wrong_2d
from vit_course.exercises.misconceptions.positions import BASE

Grid = tuple[int, int]


def _refused(embed_dim: int) -> None:
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")


def _left_to_torch(embed_dim: int) -> None:
    if embed_dim % 2:
        raise RuntimeError("The expanded size of the tensor must match the existing size")


def _table(
    num_positions: int,
    embed_dim: int,
    *,
    wave: Callable[[int, float, int], float] = lambda d, angle, half: math.cos(angle) if d % 2 else math.sin(angle),
    hand: Callable[[int, int], int] = lambda d, half: d // 2 * 2,
    power: Callable[[int, int], float] = lambda hand, embed_dim: BASE ** -(hand / embed_dim),
    place: Callable[[int], float] = float,
    odd: Callable[[int], None] = _refused,
    laid: Callable[[Tensor], Tensor] = lambda table: table,
) -> Tensor:
    odd(embed_dim)
    half = embed_dim // 2
    dimensions = [(d, power(hand(d, half), embed_dim)) for d in range(embed_dim)]
    return laid(
        torch.tensor([[wave(d, place(p) * turn, half) for d, turn in dimensions] for p in range(num_positions)])
    )


declare(
    sinusoidal_positions,
    Parts(
        _table,
        {
            wrong.halves_concatenated: {
                "wave": lambda d, angle, half: math.sin(angle) if d < half else math.cos(angle),
                "hand": lambda d, half: 2 * (d % half),
            },
            wrong.sine_and_cosine_swapped: {
                "wave": lambda d, angle, half: math.sin(angle) if d % 2 else math.cos(angle)
            },
            wrong.sines_only: {"wave": lambda d, angle, half: math.sin(angle)},
            wrong.position_missing_from_the_angle: {"place": lambda p: 1.0},
            wrong.a_frequency_for_every_dimension: {"hand": lambda d, half: d},
            wrong.column_taken_for_hand: {"hand": lambda d, half: 2 * d},
            wrong.exponent_half_as_large: {"power": lambda hand, embed_dim: BASE ** -(hand / 2 / embed_dim)},
            wrong.exponent_twice_as_large: {"power": lambda hand, embed_dim: BASE ** -(2 * hand / embed_dim)},
            wrong.multiplied_where_divided: {"power": lambda hand, embed_dim: BASE ** (hand / embed_dim)},
            wrong.base_e_for_10000: {"power": lambda hand, embed_dim: math.exp(-hand / embed_dim)},
            wrong.exponent_rounded_to_zero: {"power": lambda hand, embed_dim: 1.0},
            wrong.counted_from_1: {"place": lambda p: p + 1.0},
            wrong.table_on_its_side: {"laid": lambda table: table.T},
            wrong.a_batch_axis_in_front: {"laid": lambda table: table[None]},
            wrong.odd_length_accepted: {"odd": lambda embed_dim: None},
            wrong.odd_length_left_to_torch: {"odd": _left_to_torch},
        },
        quick=True,
    ),
)


def _row_by_row(grid: Grid) -> list[Grid]:
    return [(row, column) for row in range(grid[0]) for column in range(grid[1])]


def _patches(
    grid_size: Grid,
    embed_dim: int,
    *,
    read: Callable[[Grid], Grid] = lambda grid: grid,
    walk: Callable[[Grid], list[Grid]] = _row_by_row,
    row_of: Callable[[int, int, Grid], int] = lambda row, column, grid: row,
    column_of: Callable[[int, int, Grid], int] = lambda row, column, grid: column,
    code: Callable[[int, int], Tensor] = lambda number, embed_dim: wrong_2d._code(number, embed_dim // 2),
    joined: Callable[[Tensor, Tensor], Tensor] = lambda row, column: torch.cat([row, column]),
    odd: Callable[[int], None] = lambda embed_dim: None,
) -> Tensor:
    odd(embed_dim)
    if embed_dim % 4:
        raise ValueError(f"embed_dim {embed_dim} is not divisible by 4")
    grid = read(grid_size)
    entries = []
    for row, column in walk(grid):
        numbers = row_of(row, column, grid), column_of(row, column, grid)
        entries.append(joined(*(code(number, embed_dim) for number in numbers)))
    return torch.stack(entries)


def _column_by_column(grid: Grid) -> list[Grid]:
    return [(row, column) for column in range(grid[1]) for row in range(grid[0])]


def _refused_for_its_half(embed_dim: int) -> None:
    if embed_dim // 2 % 2:
        raise ValueError(f"embed_dim {embed_dim // 2} is odd")


declare(
    sinusoidal_positions_2d,
    Parts(
        _patches,
        {
            wrong_2d.column_in_the_first_half: {"joined": lambda row, column: torch.cat([column, row])},
            wrong_2d.patches_column_by_column: {
                "walk": lambda grid: [(r, c) for c in range(grid[1]) for r in range(grid[0])]
            },
            wrong_2d.rows_counted_like_columns: {
                "row_of": lambda row, column, grid: (row * grid[1] + column) % grid[0]
            },
            wrong_2d.columns_counted_like_rows: {
                "column_of": lambda row, column, grid: (row * grid[1] + column) // grid[0]
            },
            wrong_2d.row_and_column_added: {"joined": torch.add, "code": wrong_2d._code},
            wrong_2d.half_of_a_longer_table: {
                "code": lambda number, embed_dim: wrong_2d._code(number, embed_dim)[: embed_dim // 2]
            },
            wrong_2d.row_and_column_interleaved: {
                "joined": lambda row, column: torch.stack([row, column], dim=1).flatten()
            },
            wrong_2d.columns_taken_for_rows: {"read": lambda grid: (grid[1], grid[0])},
            wrong_2d.square_grid_assumed: {"read": lambda grid: (grid[0], grid[0])},
            wrong_2d.refused_for_its_half: {"odd": _refused_for_its_half},
        },
        quick=True,
    ),
)
