"""Hidden checks of ``sinusoidal_positions_2d``.

One check asks for float32, in all others a table of other floats passes. Grids are small, so float32 angles are right
to 1e-6.
"""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l02_positions.sinusoidal_positions_2d import claims


def is_right(student, probe):
    """One table of drawn sizes is right."""
    rows, columns, quarter = probe.sizes(3, high=7)
    claims.expect_right(student, (rows, columns), 4 * quarter)


test_the_first_half_tells_the_row = as_hidden(claims.the_first_half_tells_the_row, sinusoidal_positions_2d=1.1)
test_the_second_half_tells_the_column = as_hidden(claims.the_second_half_tells_the_column, sinusoidal_positions_2d=1.1)
test_a_length_that_four_does_not_divide_is_refused = as_hidden(
    claims.a_length_that_four_does_not_divide_is_refused, is_right, sinusoidal_positions_2d=0.9
)
test_the_table_of_a_grid_is_float32 = as_hidden(
    claims.the_table_of_a_grid_is_float32, is_right, sinusoidal_positions_2d=0.4
)


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.7)
def test_grids_of_any_size_are_right(student, probe):
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
        claims.expect_right(student, grid, embed_dim)


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.6)
def test_every_call_stands_alone(student, probe):
    """A table depends on the grid and on the length of its own call, and on no call before."""
    rows, columns, quarter, other = probe.sizes(4, low=2, high=7)
    for grid, length in (((rows, columns), quarter), ((columns, rows), quarter), ((rows, columns), other)):
        claims.expect_right(student, grid, 4 * length)
    expect_result_of_its_own(student, (grid, 4 * length), (grid[::-1], 4 * length))


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.2)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    is_right(student, probe)
    expect_example(student)
