"""`sinusoidal_positions_2d`: the table of positions for a grid of patches.

The oracle is complex numbers on the unit circle.
"""

from __future__ import annotations

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_value_error, ignore_wrong_numbers
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions import LESSON
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import (
    call_and_expect_float_table,
    compute_expected_table,
    expect_float32,
    format_vector,
)

PATCH_AXES = ("patch", "dimension")
LOOK = "Write down the (row, column) of the first six patches. Which of the two changes from one to the next?"


sinusoidal_positions_2d = Exercise("sinusoidal_positions_2d", LESSON, in_training=InTraining.HIDDEN)


def compute_expected_table_2d(grid: tuple[int, int], embed_dim: int) -> Tensor:
    """The oracle of sinusoidal_positions_2d, (rows * columns, embed_dim) in float32."""
    down, across = (compute_expected_table(size, embed_dim // 2) for size in grid)
    return torch.cat([down.repeat_interleave(grid[1], dim=0), across.repeat(grid[0], 1)], dim=1)


def call_and_expect_table(student: Student, grid: tuple[int, int], embed_dim: int) -> tuple[str, Tensor]:
    """(name, table) of one call."""
    return call_and_expect_float_table(student, (grid, embed_dim), grid[0] * grid[1])


def expect_right_table(student: Student, grid: tuple[int, int], embed_dim: int) -> None:
    """The whole table, right."""
    name, table = call_and_expect_table(student, grid, embed_dim)
    expect_equal(table, compute_expected_table_2d(grid, embed_dim), name, PATCH_AXES, look=LOOK, any_float=True)


def expect_drawn_table_is_right(student: Student, probe: Probe) -> None:
    """One table of drawn sizes is right."""
    rows, columns, quarter = probe.sizes(3, high=7)
    expect_right_table(student, (rows, columns), 4 * quarter)


@sinusoidal_positions_2d.check(guard=True)
def every_patch_has_a_row(student: Student, probe: Probe) -> None:
    """The table has rows · columns rows, one for each patch, and embed_dim columns."""
    for grid in ((3, 5), (6, 4)):
        call_and_expect_table(student, grid, 8)


def _expect_half(student: Student, probe: Probe, half: int) -> None:
    """The first half of the dimensions (0) against the 1-D table of the rows, the second (1) of the columns."""
    axis = ("row", "column")[half]
    some, more = probe.sizes(2, high=7, shown=(3, 5))
    for grid, length in (((some, more), probe.choice((4, 8, 10), shown=6)), ((more + 1, some + 1), 6)):
        rows, columns = grid
        _, table = call_and_expect_table(student, grid, 2 * length)
        codes = compute_expected_table(grid[half], length)
        for patch in range(rows * columns):
            place, found = divmod(patch, columns), table[patch, length * half :][:length]
            if are_close(found, codes[place[half]]):
                continue
            others = [other for other in range(grid[half]) if are_close(found, codes[other])]
            observation = f"tells {axis} {others[0]}" if others else f"is {format_vector(found)}"
            wanted = f"{axis} {place[half]}" + (
                "" if others else f" of a 1-D table: {format_vector(codes[place[half]])}"
            )
            part = ("first", "second")[half]
            raise Failure(
                f"on a grid of {rows} rows and {columns} columns, patch {patch} stands in row {place[0]} and column "
                f"{place[1]}, but the {part} half of its dimensions {observation}",
                wanted,
                LOOK,
            )


@sinusoidal_positions_2d.check(needs=every_patch_has_a_row, points=1.1)
def the_first_half_tells_the_row(student: Student, probe: Probe) -> None:
    """The first half of a patch's dimensions is the 1-D code of its row."""
    _expect_half(student, probe, 0)


@sinusoidal_positions_2d.check(needs=every_patch_has_a_row, points=1.1)
def the_second_half_tells_the_column(student: Student, probe: Probe) -> None:
    """The second half of a patch's dimensions is the 1-D code of its column."""
    _expect_half(student, probe, 1)


@sinusoidal_positions_2d.check(
    needs=every_patch_has_a_row, worth=0.5, guard=True, points=0.4, first=expect_drawn_table_is_right
)
def the_table_of_a_grid_is_float32(student: Student, probe: Probe) -> None:
    """The table is float32, as the exercise says."""
    rows, columns, quarter = probe.sizes(3, high=7, shown=(3, 5, 2))
    grid, embed_dim = (rows, columns), 4 * quarter
    expect_float32(student, student(grid, embed_dim), f"sinusoidal_positions_2d({grid}, {embed_dim})")


@sinusoidal_positions_2d.check(guard=True, points=0.9, first=ignore_wrong_numbers(expect_drawn_table_is_right))
def a_length_that_four_does_not_divide_is_refused(student: Student, probe: Probe) -> None:
    """An embed_dim that is not divisible by 4 raises ValueError naming it."""
    rows, columns, quarter = probe.sizes(3, high=7, shown=(3, 5, 1))
    for embed_dim in (4 * quarter + 2, 4 * quarter + 1, 4 * quarter + 3, 2):
        expect_value_error(student, ((rows, columns), embed_dim), (embed_dim,), f"embed_dim {embed_dim}")


sinusoidal_positions_2d.example("""
>>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[4].tolist()]
[0.84, 0.54, 0.01, 1.0, 0.84, 0.54, 0.01, 1.0]
>>> [round(number, 2) for number in sinusoidal_positions_2d((2, 3), 8)[2].tolist()]
[0.0, 1.0, 0.0, 1.0, 0.91, -0.42, 0.02, 1.0]
""")


read_mistakes(sinusoidal_positions_2d, __name__)
declare_pairs(sinusoidal_positions_2d, Edits(quick=True))
