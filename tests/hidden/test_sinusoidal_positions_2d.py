"""Hidden checks of ``sinusoidal_positions_2d``.

One check asks for float32, in all others a table of other floats passes. Grids are small, so float32 angles are right
to 1e-6.
"""

import pytest

from exercise_kit.engine.compare import close, expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_result_of_its_own, expect_value_error
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l02_positions.sinusoidal_positions.claims import expect_float32

AXES = ("patch", "dimension")
LOOK = "Write down the (row, column) of the first patches. Which of the two changes from one to the next?"


def _table(student, grid, embed_dim):
    """(name, table) of one call; Failure unless it has the right shape, and floats."""
    name = f"sinusoidal_positions_2d({grid}, {embed_dim})"
    table = expect_tensor(student(grid, embed_dim), (grid[0] * grid[1], embed_dim), name)
    if not table.is_floating_point():
        raise Failure(f"{name} has dtype {short(table.dtype)}", "float32", "Which line decides the dtype of the table?")
    return name, table


def _expect_right(student, reference, grid, embed_dim):
    name, table = _table(student, grid, embed_dim)
    expect_equal(table, reference.sinusoidal_positions_2d(grid, embed_dim), name, AXES, look=LOOK, any_float=True)


def _expect_half(student, reference, probe, half):
    """The first half of the dimensions (0) against the 1-D codes of the rows, the second (1) of the columns."""
    rows, columns = probe.sizes(2, low=2, high=7)
    for grid, quarter in (((rows, columns), probe.choice((2, 4, 5))), ((columns, rows), 3)):
        name, table = _table(student, grid, 4 * quarter)
        codes = reference.sinusoidal_positions(grid[half], 2 * quarter)
        halves = table[:, 2 * quarter * half :][:, : 2 * quarter]
        axis, part = ("row", "column")[half], ("first", "second")[half]

        def describe(actual, expected, codes=codes, across=grid[1], axis=axis):
            patch = next(number for number in range(len(actual)) if not close(actual[number], expected[number]))
            place = divmod(patch, across)
            found = [number for number, code in enumerate(codes) if close(actual[patch], code)]
            seen = f"patch {patch}, in row {place[0]} and column {place[1]}, has the code of {axis} {found[0]}"
            return seen, f"{axis} {place[half]}"

        right = codes[[divmod(patch, grid[1])[half] for patch in range(len(table))]]
        expect_equal(halves, right, f"the {part} half of {name}", AXES, describe, LOOK, any_float=True)


@pytest.mark.exercise("sinusoidal_positions_2d", points=1.1)
def test_the_first_half_tells_the_row(student, reference, probe):
    """The first half of a patch's dimensions is the 1-D code of its row, in tall grids and in wide ones."""
    _expect_half(student, reference, probe, 0)


@pytest.mark.exercise("sinusoidal_positions_2d", points=1.1)
def test_the_second_half_tells_the_column(student, reference, probe):
    """The second half of a patch's dimensions is the 1-D code of its column, in tall grids and in wide ones."""
    _expect_half(student, reference, probe, 1)


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.7)
def test_grids_of_any_size_are_right(student, reference, probe):
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
        _expect_right(student, reference, grid, embed_dim)


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.6)
def test_every_call_stands_alone(student, reference, probe):
    """A table depends on the grid and on the length of its own call, and on no call before."""
    rows, columns, quarter, other = probe.sizes(4, low=2, high=7)
    for grid, length in (((rows, columns), quarter), ((columns, rows), quarter), ((rows, columns), other)):
        _expect_right(student, reference, grid, 4 * length)
    expect_result_of_its_own(student, (grid, 4 * length), (grid[::-1], 4 * length))


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.9)
def test_a_length_that_four_does_not_divide_is_refused(student, reference, probe):
    """An embed_dim that is not divisible by 4 raises ValueError naming it, an even one like an odd one."""
    rows, columns, quarter = probe.sizes(3, low=2, high=7)
    _expect_right(student, reference, (rows, columns), 4 * quarter)
    for embed_dim in (4 * quarter + 2, 4 * quarter + 1, 4 * quarter + 3, 2):
        expect_value_error(student, ((rows, columns), embed_dim), (embed_dim,), f"embed_dim {embed_dim}")


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.4)
def test_the_table_is_float32(student, reference, probe):
    """The table is float32, as the exercise says."""
    rows, columns, quarter = probe.sizes(3, low=2, high=7)
    _expect_right(student, reference, (rows, columns), 4 * quarter)
    name, table = _table(student, (rows, columns), 4 * quarter)
    expect_float32(student, table, name)


@pytest.mark.exercise("sinusoidal_positions_2d", points=0.2)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    rows, columns, quarter = probe.sizes(3, low=2, high=7)
    _expect_right(student, reference, (rows, columns), 4 * quarter)
    expect_example(student)
