"""Known mistakes of lesson 02, first part: tables of positions, entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from vit_course.checks.in_training import InTraining
from vit_course.checks.lessons.positions import sinusoidal_positions, sinusoidal_positions_2d, sinusoids

BASE = 10_000
CLOCK = "02_positions, A clock with many hands"
GRID = "02_positions, Images are not sentences"


def _filled(num_positions: int, embed_dim: int, entry: Callable[[int, int], float]) -> Tensor:
    """A table with ``entry(position, dimension)`` everywhere; an odd embed_dim is refused."""
    if embed_dim % 2:
        raise ValueError(f"embed_dim {embed_dim} is odd")
    return torch.tensor([[entry(p, d) for d in range(embed_dim)] for p in range(num_positions)])


def _wave(dimension: int, angle: float) -> float:
    return math.cos(angle) if dimension % 2 else math.sin(angle)


def _turns(dimension: int, embed_dim: int) -> float:
    """Radians a step of the hand that a dimension belongs to."""
    return BASE ** -(dimension // 2 * 2 / embed_dim)


@sinusoidal_positions.misconception("What stands beside the sine of an angle, in the very next dimension?", CLOCK)
def halves_concatenated(num_positions: int, embed_dim: int) -> Tensor:
    """All sines come first and all cosines after them, where sine and cosine should alternate."""
    half = embed_dim // 2

    def entry(position: int, dimension: int) -> float:
        angle = position * _turns(2 * (dimension % half), embed_dim)
        return math.sin(angle) if dimension < half else math.cos(angle)

    return _filled(num_positions, embed_dim, entry)


@sinusoidal_positions.misconception("What is the sine of 0, and which dimension shows it?", CLOCK)
def sine_and_cosine_swapped(num_positions: int, embed_dim: int) -> Tensor:
    """The cosines stand in the even dimensions and the sines in the odd ones."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d + 1, p * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Where does a hand point, if its sine is all that you know?", CLOCK)
def sines_only(num_positions: int, embed_dim: int) -> Tensor:
    """Every dimension is a sine."""
    return _filled(num_positions, embed_dim, lambda p, d: math.sin(p * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which of your angles change from one position to the next?", CLOCK)
def position_missing_from_the_angle(num_positions: int, embed_dim: int) -> Tensor:
    """The angle is the frequency alone, so every position has the same row."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which dimensions share one hand, and so one frequency?", CLOCK)
def a_frequency_for_every_dimension(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent counts dimensions one by one, so a sine and the cosine beside it belong to different hands."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(d / embed_dim)))


@sinusoidal_positions.misconception("Which dimensions share one hand, and so one frequency?", CLOCK)
def column_taken_for_hand(num_positions: int, embed_dim: int) -> Tensor:
    """The i of the exponent counts columns where it should count hands, so a sine and the cosine beside it part."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(2 * d / embed_dim)))


@sinusoidal_positions.misconception("Over which numbers does the exponent run, from the first hand to the last?", CLOCK)
def exponent_half_as_large(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent is half as large as the formula has it, so even the last hand is too fast."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * BASE ** -(d // 2 / embed_dim)))


@sinusoidal_positions.misconception("How often is your index doubled on its way into the exponent?", CLOCK)
def exponent_twice_as_large(num_positions: int, embed_dim: int) -> Tensor:
    """The index is doubled twice, so the hands slow down to one in a hundred million."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim) ** 2))


@sinusoidal_positions.misconception("Do later hands turn faster, or slower?", CLOCK)
def multiplied_where_divided(num_positions: int, embed_dim: int) -> Tensor:
    """The position is multiplied by the power of 10000, so later hands race where they should crawl."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p / _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which number is raised to the power in the formula?", CLOCK)
def base_e_for_10000(num_positions: int, embed_dim: int) -> Tensor:
    """The base of the power is e, so all hands turn at nearly the same speed."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * math.exp(-(d // 2 * 2 / embed_dim))))


@sinusoidal_positions.misconception("What is 2 // 8 in Python, and what is 2 / 8?", CLOCK)
def exponent_rounded_to_zero(num_positions: int, embed_dim: int) -> Tensor:
    """The exponent is a whole number and always 0, so all hands turn alike."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, float(p)))


@sinusoidal_positions.misconception("What is the number of the first position?", CLOCK)
def counted_from_1(num_positions: int, embed_dim: int) -> Tensor:
    """The first position is called 1, so every hand is a step ahead."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, (p + 1) * _turns(d, embed_dim)))


@sinusoidal_positions.misconception("Which axis counts the positions?", CLOCK, InTraining.STOPS)
def table_on_its_side(num_positions: int, embed_dim: int) -> Tensor:
    """The table has a row for every dimension and a column for every position."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim))).T


@sinusoidal_positions.misconception("How many axes was the table asked to have?", CLOCK, InTraining.UNSEEN)
def a_batch_axis_in_front(num_positions: int, embed_dim: int) -> Tensor:
    """The table has a batch axis of length 1 in front, and nobody asked for one."""
    return _filled(num_positions, embed_dim, lambda p, d: _wave(d, p * _turns(d, embed_dim)))[None]


@sinusoidal_positions.misconception("If embed_dim is 7, which sine has no cosine?", CLOCK, InTraining.UNSEEN)
def odd_length_rounded_up(num_positions: int, embed_dim: int) -> Tensor:
    """For an odd embed_dim the table has one dimension too many, and nobody is told."""
    return sinusoids(num_positions, embed_dim + embed_dim % 2)


@sinusoidal_positions.misconception("If embed_dim is 7, which sine has no cosine?", CLOCK, InTraining.UNSEEN)
def odd_length_accepted(num_positions: int, embed_dim: int) -> Tensor:
    """For an odd embed_dim the last sine stands without its cosine, and nobody is told."""
    entries = [[_wave(d, p * _turns(d, embed_dim)) for d in range(embed_dim)] for p in range(num_positions)]
    return torch.tensor(entries)


@sinusoidal_positions.misconception("Who notices when embed_dim is odd: you, or torch?", CLOCK, InTraining.UNSEEN)
def odd_length_left_to_torch(num_positions: int, embed_dim: int) -> Tensor:
    """Nothing looks at embed_dim, so for an odd one torch stumbles over sines and cosines that do not match."""
    if embed_dim % 2:
        raise RuntimeError("The expanded size of the tensor must match the existing size")
    return sinusoids(num_positions, embed_dim)


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
