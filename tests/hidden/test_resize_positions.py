"""Hidden checks of ``resize_positions``.

A bicubic value is a sum of 16 products of order 1: float32 gives it to 1e-6, half to 2e-3. The nearest misconception,
align_corners, is off by 1e-1.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, expect_tensor, shape, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)
from exercise_kit.engine.verdict import Failure

AXES = ("image", "token", "dimension")
LOOK = "Lay one dimension out on the old grid, resize it, and read it row by row. Where do you go another way?"
PATCH_AXES = ("image", "patch", "dimension")


def _draw(probe, grid, embed_dim):
    return probe.normal(1, 1 + grid[0] * grid[1], embed_dim)


def _name(old, new, described=""):
    return f"resize_positions{described} from {old} to {new}"


def _expect_right(student, reference, positions, old, new, described="", look=LOOK):
    right = reference.resize_positions(positions, old, new)
    expect_equal(student(positions, old, new), right, _name(old, new, described), AXES, look=look)


@pytest.mark.exercise("resize_positions", points=1.3)
def test_the_grid_is_resampled_bicubically(student, reference, probe):
    """The patches' new rows are the bicubic interpolation of the old grid, whether a side grows or shrinks."""
    rows, columns, more, embed_dim = probe.sizes(4, low=3, high=8)
    look = "Compare mode, align_corners and antialias with what the exercise asks for."
    for old, new in (
        ((rows, columns), (rows + 2, columns + 3)),
        ((rows + 3, columns + 2), (rows, columns)),
        ((rows, more), (rows + 3, more - 1)),
    ):
        positions = _draw(probe, old, embed_dim)
        right = reference.resize_positions(positions, old, new)
        result = expect_tensor(student(positions, old, new), right.shape, _name(old, new))
        expect_equal(result[:, 1:], right[:, 1:], f"the patches' part of {_name(old, new)}", PATCH_AXES, look=look)


@pytest.mark.exercise("resize_positions", points=0.5)
def test_the_class_tokens_row_is_carried_over(student, probe):
    """Row 0, the class token's, is returned unchanged."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=8)
    for old, new in (((rows, columns), (columns + 2, rows + 1)), ((columns, rows), (rows - 1, columns - 1))):
        positions = _draw(probe, old, embed_dim)
        result = expect_tensor(student(positions, old, new), (1, 1 + new[0] * new[1], embed_dim), _name(old, new))
        name, look = f"row 0 of {_name(old, new)}", "Where on the picture is the class token?"
        expect_equal(result[:, :1], positions[:, :1], name, AXES, look=look)


@pytest.mark.exercise("resize_positions", points=0.65)
def test_every_dimension_is_a_picture_of_its_own(student, probe):
    """A dimension that holds the row has one value along each new row, one that holds the column down each column."""
    rows, columns, extra = probe.sizes(3, low=3, high=7)
    old, new = (rows, columns), (rows + extra, columns + 2)
    down, across = (probe.normal(size) + 3 * torch.arange(1.0, size + 1) for size in old)
    by_row, by_column = down[:, None].expand(old).flatten(), across.expand(old).flatten()
    patches = torch.stack([by_row, by_column, -by_row], dim=1)
    positions = torch.cat([torch.full((1, 3), 50.0), patches])[None]
    result = expect_tensor(student(positions, old, new), (1, 1 + new[0] * new[1], 3), _name(old, new))
    look = "Which axis of your picture tells the dimension, which the row, which the column?"
    pictures = result[0, 1:].unflatten(0, new)
    # the values of one line are the same sum of the same numbers, of order 20: float32 gives them to 1e-5
    for dimension, axis, held in ((0, 1, "row"), (1, 0, "column"), (2, 1, "row")):
        spread = pictures[..., dimension].amax(axis) - pictures[..., dimension].amin(axis)
        if not (spread < 1e-3).all():
            seen = f"dimension {dimension} held the {held} and nothing else on the old grid, and differs by "
            raise Failure(f"{seen}{spread.max():.3g} along one {held} of the new grid", "one value", look)
        if not (pictures[..., dimension].amax() - pictures[..., dimension].amin() > 1):
            raise Failure(
                f"dimension {dimension} is the same in every {held} of the new grid", f"a value a {held}", look
            )


@pytest.mark.exercise("resize_positions", points=0.45)
def test_grids_of_any_shape_are_right(student, reference, probe):
    """Square or not, one row or one column, one dimension, another grid of as many patches: all come out right."""
    side, embed_dim, half = probe.sizes(3, low=3, high=6)
    for old, new, length in (
        ((side, side), (side + 2, side + 2), embed_dim),
        ((1, 2 * side), (3, side), embed_dim),
        ((half, 2 * side), (2 * half, side), embed_dim),  # as many patches as before
        ((half, 4 * half), (side, side + 1), embed_dim),  # as many patches as a square has
        ((2 * side, half), (half, 2 * side), 1),
        ((side, half), (1, 1), 2),
    ):
        _expect_right(student, reference, _draw(probe, old, length), old, new, f" of {length} dimensions")


@pytest.mark.exercise("resize_positions", points=0.35)
def test_the_same_grid_changes_nothing(student, reference, probe):
    """To another grid they are resampled; from a grid to the same grid the positions are returned unchanged."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    for old, new in (((rows, columns), (columns, rows)), ((rows, columns), (rows, columns))):
        look = "Which step on the way in is not undone on the way out?"
        _expect_right(student, reference, _draw(probe, old, embed_dim), old, new, look=look)


@pytest.mark.exercise("resize_positions", points=0.3)
def test_dtype_and_memory_layout_do_not_matter(student, reference, probe):
    """Double and half positions keep their dtype, and positions that do not lie in order in memory are read right."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    old, new = (rows, columns), (columns, rows + 2)
    turned = _draw(probe, old, embed_dim).double().mT.contiguous().mT
    _expect_right(student, reference, turned, old, new, " of float64 positions")
    half = _draw(probe, old, embed_dim).half()
    right, name = reference.resize_positions(half, old, new), _name(old, new, " of float16 positions")
    found = expect_tensor(student(half, old, new), right.shape, name)
    if found.dtype != torch.float16:
        raise Failure(f"{name} gives {short(found.dtype)}", "float16", "Which dtype has the result of your last line?")
    # as bfloat16, in which 5e-2 is allowed: grid_sample, whose coordinates are half too, is off by 2e-2
    look = "Is it F.interpolate, as the exercise's text has it? Other functions may round more in half precision."
    expect_equal(found.bfloat16(), right.bfloat16(), name, AXES, look=look)
    stepped = _draw(probe, old, 2 * embed_dim)[..., ::2]
    _expect_right(student, reference, stepped, old, new, " of every second dimension")


@pytest.mark.exercise("resize_positions", points=0.15)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for the positions at hand, on their device, and leaves them as they were."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    for new in ((columns, rows + 1), (columns, rows + 1), (rows, columns)):
        _expect_right(student, reference, _draw(probe, (rows, columns), embed_dim).to(device), (rows, columns), new)
    expect_left_alone(student)
    first, other = (_draw(probe, (rows, columns), embed_dim).to(device) for _ in range(2))
    for new in ((columns, rows + 1), (rows, columns)):
        expect_result_of_its_own(student, (first, (rows, columns), new), (other, (rows, columns), new))


@pytest.mark.exercise("resize_positions", points=0.35)
def test_positions_can_still_be_learned(student, reference, probe):
    """The right gradient reaches every row of positions, to another grid and to the same one."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    for new in ((columns + 1, rows), (rows, columns)):
        inputs = _draw(probe, (rows, columns), embed_dim), (rows, columns), new
        expect_input_gradients(student, inputs, ("positions",), reference.resize_positions, AXES)


@pytest.mark.exercise("resize_positions", points=0.45)
def test_a_grid_that_does_not_fit_is_refused(student, reference, probe):
    """Where positions does not have 1 + rows · columns rows, ValueError names the number of its rows."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    old, new = (rows, columns), (columns, rows + 1)
    positions = _draw(probe, old, embed_dim)
    _expect_right(student, reference, positions, old, new)
    for wrong in ((rows, columns + 1), (rows - 1, columns), (1, rows * columns + 1)):
        described = f"{shape(positions)} positions for an old grid of {wrong}"
        expect_value_error(student, (positions, wrong, new), (1 + rows * columns,), described)
    short_one = positions[:, 1:]  # a grid without a class token's row
    described = f"{shape(short_one)} positions for an old grid of {old}"
    expect_value_error(student, (short_one, old, new), (rows * columns,), described)


@pytest.mark.exercise("resize_positions", points=0.2)
def test_the_new_grid_has_the_very_size_that_was_asked_for(student, reference, probe):
    """The new grid is as large as new_grid says, also where dividing the sizes leaves a rounded number."""
    side, embed_dim, other = probe.sizes(3, low=2, high=6)
    for few, many in ((11, 15), (13, 15), (23, 13)):
        for old, new in (((few, side), (many, other)), ((side, few), (side, many))):
            _expect_right(student, reference, _draw(probe, old, embed_dim), old, new)


@pytest.mark.exercise("resize_positions", points=0.2)
def test_it_computes_where_the_positions_are(student, reference, probe):
    """The result lies on the device of the positions."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    inputs = _draw(probe, (rows, columns), embed_dim), (rows, columns), (columns, rows + 1)
    _expect_right(student, reference, *inputs)
    expect_device_of_input(student, *inputs)


@pytest.mark.exercise("resize_positions", points=0.1)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    rows, columns, embed_dim = probe.sizes(3, low=3, high=7)
    _expect_right(student, reference, _draw(probe, (rows, columns), embed_dim), (rows, columns), (columns, rows + 1))
    expect_example(student)
