"""`sinusoidal_positions_2d`: the table of positions for a grid of patches.

The oracle is complex numbers on the unit circle.
"""

from __future__ import annotations

from exercise_kit.engine.compare import close, expect_tensor
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
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


read_mistakes(sinusoidal_positions_2d, __name__)
declare(sinusoidal_positions_2d, Edits(quick=True))
