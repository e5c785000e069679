"""Hidden checks of ``rotary_2d``."""

import pytest

from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)
from vit_course.exercises.l10_modern.rotary_2d.claims import (
    AXES,
    drawn,
    expect_angles,
    expect_dtype,
    expect_front,
    expect_lengths,
    expect_offsets,
)


def _inputs(probe, in_front=1, head_dim=8):
    """Query, key and a grid of two to five rows and columns, not as many of both."""
    rows = 2 + int(probe.integers(1, high=3))
    grid_size = (rows, rows + 1) if probe.choice((True, False)) else (rows + 1, rows)
    return *drawn(probe, grid_size, in_front, head_dim), grid_size


@pytest.mark.exercise("rotary_2d", points=1.1)
def test_every_pair_is_turned_by_its_angle(student, probe):
    """Rows turn the pairs of the first half and columns those of the second, on grids and sizes of any kind."""
    for in_front, head_dim in ((1, 8), (3, 4), (0, 16), (2, 12)):
        expect_angles(student, *_inputs(probe, in_front, head_dim))
    query, key, _ = _inputs(probe, 0)
    count = query.shape[-2]
    for grid_size in ((1, count), (count, 1)):
        expect_angles(student, query, key, grid_size)


@pytest.mark.exercise("rotary_2d", points=0.75)
def test_dot_products_tell_how_far_apart(student, probe):
    """Dot products of the same query and key follow from the rows and columns between them."""
    inputs = _inputs(probe)
    expect_lengths(student, *inputs)
    expect_offsets(student, probe.normal(12), probe.normal(12), (4, 3))
    expect_angles(student, *inputs)


@pytest.mark.exercise("rotary_2d", points=0.5)
def test_what_stands_in_front_is_not_turned(student, probe):
    """A class token and registers come out unchanged, and the patches after them are turned."""
    for in_front in (1, 2 + int(probe.integers(1, high=4))):
        inputs = _inputs(probe, in_front)
        expect_front(student, *inputs)
        expect_angles(student, *inputs)


@pytest.mark.exercise("rotary_2d", points=0.75)
def test_gradients_reach_query_and_key(student, reference, probe):
    """Query and key get the right gradients."""
    inputs = _inputs(probe)
    expect_angles(student, *inputs)
    expect_input_gradients(student, inputs, ("query", "key"), reference.rotary_2d, AXES)


@pytest.mark.exercise("rotary_2d", points=0.35)
def test_dtype_and_layout_do_not_matter(student, probe, device):
    """float64 stays float64, right to the last digit; heads out of order in memory are read right, on any device."""
    query, key, grid_size = _inputs(probe, 1, 12)
    expect_dtype(student, query, key, grid_size)
    turned = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in (query, key)]
    expect_angles(student, *turned, grid_size)
    alone = [each[0, 0] for each in (query, key)]
    expect_angles(student, *alone, grid_size)


@pytest.mark.exercise("rotary_2d", points=0.1)
def test_every_call_stands_alone(student, probe):
    """Every call gives the result for its own inputs, and does not change query and key."""
    query, key, grid_size = _inputs(probe)
    expect_angles(student, query, key, grid_size)
    expect_left_alone(student)
    expect_result_of_its_own(student, (query, key, grid_size), (key, query, grid_size))


@pytest.mark.exercise("rotary_2d", points=0.15)
def test_sizes_that_do_not_fit_are_refused(student, probe):
    """A head_dim that 4 does not divide, or fewer tokens than patches, raises a ValueError that names the number."""
    query, key, grid_size = _inputs(probe)
    expect_angles(student, query, key, grid_size)
    for head_dim in (2 + 4 * int(probe.integers(1, high=4)), 5):
        inputs = *drawn(probe, grid_size, 1, head_dim), grid_size
        expect_value_error(student, inputs, (head_dim,), f"a head_dim of {head_dim}")
    few = grid_size[0] * grid_size[1] - 1
    described = f"{few} tokens for {few + 1} patches"
    expect_value_error(student, (query[..., :few, :], key[..., :few, :], grid_size), (few,), described)


@pytest.mark.exercise("rotary_2d", points=0.1)
def test_it_computes_where_the_query_is(student, probe):
    """The result is on the device of the query."""
    inputs = _inputs(probe)
    expect_angles(student, *inputs)
    expect_device_of_input(student, *inputs)


@pytest.mark.exercise("rotary_2d", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    expect_angles(student, *_inputs(probe))
    expect_example(student)


@pytest.mark.exercise("rotary_2d", points=0.15)
def test_angles_are_computed_in_float64(student, probe):
    """Also where query and key are bfloat16, the patches of a long grid are turned by their right angles."""
    long = 40 + probe.sizes(1)[0]
    for grid_size in ((long, 2), (2, long)):
        inputs = (each.bfloat16() for each in drawn(probe, grid_size, 1, 12))
        expect_angles(student, *inputs, grid_size)
