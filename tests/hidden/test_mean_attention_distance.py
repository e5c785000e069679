"""Hidden checks of ``mean_attention_distance``: grids of drawn sizes, wide and tall, against the reference."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)
from vit_course.exercises.l08_inside.mean_attention_distance.claims import attention_to

AXES = ("head",)


def _grids(probe):
    """A wide grid and a tall one, whose number of patches is that of no square."""
    short, long = sorted(probe.sizes(2, low=2, high=7))
    short, long = (short, long + 1) if (short, long) in ((2, 8), (3, 12)) else (short, long)
    return (short, long), (long, short)


def _weights(probe, grid_size, class_token=False, dtype=torch.float32, images=None, num_heads=None):
    batch, heads = probe.sizes(2, high=5)
    tokens = grid_size[0] * grid_size[1] + class_token
    return probe.normal(images or batch, num_heads or heads, tokens, tokens, scale=2.0).softmax(-1).to(dtype)


def _expect(student, reference, weights, grid_size, patch_size, look):
    described = f"mean_attention_distance on {grid_size[0]} rows and {grid_size[1]} columns of {patch_size} pixels"
    right = reference.mean_attention_distance(weights, grid_size, patch_size)
    expect_equal(student(weights, grid_size, patch_size), right, described, AXES, look=look)


@pytest.mark.exercise("mean_attention_distance", points=0.75)
def test_keys_count_by_their_weight(student, reference, probe):
    """Every head gets its mean distance in pixels: keys count by weight, all images and query patches equally."""
    look = "One row of weights, one row of distances: how do they become one number, and which axes remain?"
    for grid_size in _grids(probe):
        for num_heads in (None, 1):
            weights = _weights(probe, grid_size, num_heads=num_heads)
            _expect(student, reference, weights, grid_size, probe.choice((2, 3, 5, 8)), look)


@pytest.mark.exercise("mean_attention_distance", points=0.5)
def test_a_look_goes_as_the_crow_flies(student, reference, probe):
    """Where every patch looks at one other, the distances are those between the centers of the two."""
    grid_size = probe.choice(_grids(probe))
    patches = grid_size[0] * grid_size[1]
    looked_at = [probe.permutation(patches).tolist() for _ in range(3)]
    look = "Put a ruler on the centers of two patches. Which rows, columns and units does your code use?"
    _expect(student, reference, attention_to(looked_at, patches), grid_size, probe.choice((2, 4, 7)), look)


@pytest.mark.exercise("mean_attention_distance", points=0.5)
def test_a_class_token_is_left_out(student, reference, probe):
    """A class token in front is left out, and then each patch's weights are divided by their sum again."""
    look = "Where is the class token among queries and keys, and what do the rows sum to once it is gone?"
    for grid_size in _grids(probe):
        weights = _weights(probe, grid_size, class_token=True)
        _expect(student, reference, weights, grid_size, probe.choice((2, 3, 5, 8)), look)


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_it_computes_where_the_weights_are(student, reference, probe):
    """The distances are right, and lie on the device of the weights."""
    grid_size, _ = _grids(probe)
    weights = _weights(probe, grid_size, class_token=True)
    _expect(student, reference, weights, grid_size, 2, "Which tokens are patches?")
    expect_device_of_input(student, weights, grid_size, 2)


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_it_follows_device_and_dtype(student, reference, probe, device):
    """float64 weights give float64 distances, on their device; one image alone does too."""
    grid_size = probe.choice(_grids(probe))
    weights = _weights(probe, grid_size, True, torch.float64, images=1).to(device)
    _expect(student, reference, weights, grid_size, 3, "Which line makes a tensor, of which dtype?")


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_the_weights_are_left_alone(student, reference, probe):
    """The distances are right, no later call changes them, and the weights that go in are not changed."""
    for _ in range(2):
        grid_size = probe.choice(_grids(probe))
        # with a class token no row sums to one over the patches, so dividing by the sum in place changes every number
        _expect(student, reference, _weights(probe, grid_size, True), grid_size, 3, "What are the rows' sums?")
    expect_left_alone(student)
    first, other = (_weights(probe, grid_size, True) for _ in range(2))
    expect_result_of_its_own(student, (first, grid_size, 3), (other, grid_size, 3))


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_a_grid_that_does_not_fit_is_refused(student, reference, probe):
    """Fitting grids are measured; with any other number of tokens a ValueError names tokens, rows and columns."""
    (rows, columns), _ = _grids(probe)
    weights = _weights(probe, (rows, columns))
    _expect(student, reference, weights, (rows, columns), 2, "Which tokens are patches?")
    for other in ((rows + 1, columns), (rows, columns - 1)):
        described = f"{rows * columns} tokens for {other[0]} rows and {other[1]} columns"
        expect_value_error(student, (weights, other, 2), (rows * columns, *other), described)


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    grid_size, _ = _grids(probe)
    _expect(student, reference, _weights(probe, grid_size), grid_size, 2, "Which distance, in which unit?")
    expect_example(student)
