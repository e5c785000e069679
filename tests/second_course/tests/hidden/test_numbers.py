"""Hidden checks of the second course."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.expect import expect_input_gradients, expect_value_error

AXES = ("row", "place")


@pytest.mark.exercise("moving_average", points=2)
def test_every_window_has_its_mean(student, reference, probe):
    """Place i holds the mean of the width values that begin at i."""
    rows, width, more = probe.sizes(3)
    values = probe.normal(rows, width + more)
    expect_equal(student(values, width), reference.moving_average(values, width), "moving_average", AXES)
    expect_input_gradients(student, (values, width), ("values",), reference.moving_average, AXES)


@pytest.mark.exercise("moving_average", points=1)
def test_a_window_that_is_too_wide_is_refused(student, probe):
    """A width above the number of values raises ValueError naming both."""
    rows, places = probe.sizes(2)
    described = f"{places} values and width {places + 2}"
    expect_value_error(student, (probe.normal(rows, places), places + 2), (places, places + 2), described)


@pytest.mark.exercise("one_hot", points=2)
def test_each_label_is_a_row_with_one_one(student, reference, probe):
    """Row i has a one at the place of label i, and zeros elsewhere, in float32."""
    count, classes = probe.sizes(2, low=3)
    labels = probe.integers(count, high=classes)
    expect_equal(student(labels, classes), reference.one_hot(labels, classes), "one_hot", AXES)


@pytest.mark.exercise("Standardize", points=3)
def test_columns_are_standardized(student, reference, probe):
    """Every column gets mean 0 and variance 1, and is then scaled and shifted."""
    rows, features = probe.sizes(2, low=3)
    module, right = student.build(features), reference.Standardize(features)
    weights = probe.weights({"scale": (features,), "shift": (features,)})
    module.load(weights)
    right.load_state_dict(weights)
    x = probe.normal(rows + 4, features)
    with torch.no_grad():
        expect_equal(module(x), right(x), "Standardize", AXES)
