"""`sinusoidal_positions_2d`: the table of positions for a grid of patches.

The oracle is complex numbers on the unit circle. The known mistakes make the table patch by patch.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import expect_float32, sinusoids, vector_text

GRIDS = ((3, 5), (6, 4))


sinusoidal_positions_2d = Exercise("sinusoidal_positions_2d", LESSON, in_training=InTraining.HIDDEN)


@sinusoidal_positions_2d.check(guard=True)
def every_patch_has_a_row(student: Student, probe: Probe) -> None:
    """The table has rows · columns rows, one for each patch, and embed_dim columns."""
    for rows, columns in GRIDS:
        name = f"sinusoidal_positions_2d(({rows}, {columns}), 8)"
        expect_tensor(student((rows, columns), 8), (rows * columns, 8), name)


def _expect_half(student: Student, half: int) -> None:
    """The first half of the dimensions (0) against the 1-D table of the rows, the second (1) of the columns."""
    axis = ("row", "column")[half]
    for grid in GRIDS:
        rows, columns = grid
        table = expect_tensor(student(grid, 12), (rows * columns, 12), f"sinusoidal_positions_2d({grid}, 12)")
        codes = sinusoids(grid[half], 6)
        for patch in range(rows * columns):
            place, found = divmod(patch, columns), table[patch, 6 * half : 6 * half + 6]
            if close(found, codes[place[half]]):
                continue
            others = [other for other in range(grid[half]) if close(found, codes[other])]
            observation = f"tells {axis} {others[0]}" if others else f"is {vector_text(found)}"
            wanted = f"{axis} {place[half]}" + ("" if others else f" of a 1-D table: {vector_text(codes[place[half]])}")
            part = ("first", "second")[half]
            raise Failure(
                f"on a grid of {rows} rows and {columns} columns, patch {patch} stands in row {place[0]} and column "
                f"{place[1]}, but the {part} half of its dimensions {observation}",
                wanted,
                "Write down the (row, column) of the first six patches. Which of the two changes from one to the next?",
            )


@sinusoidal_positions_2d.check(needs=every_patch_has_a_row)
def the_first_half_tells_the_row(student: Student, probe: Probe) -> None:
    """The first half of a patch's dimensions is the 1-D code of its row."""
    _expect_half(student, 0)


@sinusoidal_positions_2d.check(needs=every_patch_has_a_row)
def the_second_half_tells_the_column(student: Student, probe: Probe) -> None:
    """The second half of a patch's dimensions is the 1-D code of its column."""
    _expect_half(student, 1)


@sinusoidal_positions_2d.check(needs=every_patch_has_a_row, worth=0.5, guard=True)
def the_table_of_a_grid_is_float32(student: Student, probe: Probe) -> None:
    """The table is float32, as the exercise says."""
    expect_float32(student, student((3, 5), 8), "sinusoidal_positions_2d((3, 5), 8)")


@sinusoidal_positions_2d.check(guard=True)
def a_length_that_four_does_not_divide_is_refused(student: Student, probe: Probe) -> None:
    """An embed_dim that is not divisible by 4 raises ValueError naming it."""
    expect_value_error(student, ((3, 5), 6), (6,), "embed_dim 6")


sinusoidal_positions_2d.example("""
>>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[4].tolist()]
[0.84, 0.54, 0.01, 1.0, 0.84, 0.54, 0.01, 1.0]
>>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[2].tolist()]
[0.0, 1.0, 0.0, 1.0, 0.91, -0.42, 0.02, 1.0]
""")


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
    """The first half of the dimensions is the code of the column and the second that of the row."""
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
    "How many patches stand in row 0, and which row does your table give to each?", GRID
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


@sinusoidal_positions_2d.misconception("What stands beside the sine of an angle, in the very next dimension?", GRID)
def sines_first_cosines_last(grid_size: tuple[int, int], embed_dim: int) -> Tensor:
    """In each half all sines come first and all cosines after them, where sine and cosine should alternate."""
    half = embed_dim // 2

    def code(number: int) -> Tensor:
        return _code(number, half).unflatten(0, (-1, 2)).mT.flatten()

    return _by_patch(grid_size, embed_dim, lambda row, column: torch.cat([code(row), code(column)]))


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


Grid = tuple[int, int]


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
    code: Callable[[int, int], Tensor] = lambda number, embed_dim: _code(number, embed_dim // 2),
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
            column_in_the_first_half: {"joined": lambda row, column: torch.cat([column, row])},
            patches_column_by_column: {"walk": lambda grid: [(r, c) for c in range(grid[1]) for r in range(grid[0])]},
            rows_counted_like_columns: {"row_of": lambda row, column, grid: (row * grid[1] + column) % grid[0]},
            columns_counted_like_rows: {"column_of": lambda row, column, grid: (row * grid[1] + column) // grid[0]},
            row_and_column_added: {"joined": torch.add, "code": _code},
            half_of_a_longer_table: {"code": lambda number, embed_dim: _code(number, embed_dim)[: embed_dim // 2]},
            row_and_column_interleaved: {"joined": lambda row, column: torch.stack([row, column], dim=1).flatten()},
            columns_taken_for_rows: {"read": lambda grid: (grid[1], grid[0])},
            square_grid_assumed: {"read": lambda grid: (grid[0], grid[0])},
            refused_for_its_half: {"odd": _refused_for_its_half},
        },
        quick=True,
    ),
)
