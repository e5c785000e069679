"""What only grading asks of ``sinusoidal_positions_2d``.

One check asks for float32, in all others a table of other floats passes. Grids are small, so float32 angles are right
to 1e-6.
"""

from __future__ import annotations

from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.expect import expect_independent_results
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.l02_positions.sinusoidal_positions_2d import claims


@claims.sinusoidal_positions_2d.check(graded_only=True, points=0.7)
def grids_of_any_size_are_right(student: Student, probe: Probe) -> None:
    """Square grids, a single row, column or patch, one hand for each or many: every patch has both of its codes."""
    rows, columns, quarter = probe.sizes(3, low=2, high=8)
    for grid, embed_dim in (
        ((rows, rows), 4 * quarter),
        ((1, columns), 4 * quarter),
        ((rows, 1), 4),
        ((1, 1), 8),
        ((columns, rows), 4 * probe.choice((13, 16, 19))),
        ((probe.choice((23, 31)), 2), 8),
    ):
        claims.expect_right_table(student, grid, embed_dim)


@claims.sinusoidal_positions_2d.check(graded_only=True, points=0.6)
def every_call_stands_alone(student: Student, probe: Probe) -> None:
    """A table depends on the grid and on the length of its own call, and on no call before."""
    rows, columns, quarter, other = probe.sizes(4, low=2, high=7)
    for grid, length in (((rows, columns), quarter), ((columns, rows), quarter), ((rows, columns), other)):
        claims.expect_right_table(student, grid, 4 * length)
    expect_independent_results(student, (grid, 4 * length), (grid[::-1], 4 * length))


@claims.sinusoidal_positions_2d.check(graded_only=True, points=0.2)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_drawn_table_is_right(student, probe)
    expect_docstring_example(student)
