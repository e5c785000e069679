"""Hidden checks of ``linear_probe``: the objective is convex, so whoever comes near its minimum is right."""

import pytest

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.l09_fine_tuning.linear_probe.claims import (
    FEW_STEPS,
    clouds,
    expect_device,
    expect_dtype,
    expect_free_bias,
    expect_large_features,
    expect_minimum,
    expect_unchanged,
)


def _task(probe, weight_decay=None):
    """Clouds of any number of classes, in any number of dimensions."""
    return clouds(
        probe,
        60 + int(probe.integers(1, high=40)),
        3 + int(probe.integers(1, high=4)),
        3 + int(probe.integers(1, high=3)),
        weight_decay,
    )


@pytest.mark.exercise("linear_probe", points=1.5)
def test_it_finds_the_minimum(student, probe):
    """It minimizes its objective."""
    for _ in range(2):
        expect_minimum(student, _task(probe), "for some features", FEW_STEPS)


@pytest.mark.exercise("linear_probe", points=1.0)
def test_the_weight_decay_counts(student, probe):
    """The weight decay is the one that was given, and half of it multiplies the squares."""
    for weight_decay in (0.05, 0.4):
        expect_minimum(student, _task(probe, weight_decay), f"with weight_decay={weight_decay}", FEW_STEPS)


@pytest.mark.exercise("linear_probe", points=0.75)
def test_the_bias_is_free(student, probe):
    """The bias is not decayed."""
    expect_free_bias(student, _task(probe, 15.0 + int(probe.integers(1, high=10))))


@pytest.mark.exercise("linear_probe", points=0.75)
def test_features_may_be_large(student, probe):
    """Features that are larger, or far from zero, are classified as well."""
    expect_large_features(student, _task(probe))


@pytest.mark.exercise("linear_probe", points=0.25)
def test_what_went_in_is_left_alone(student, probe):
    """The minimum is found, and the features and labels that go in are not changed."""
    expect_minimum(student, _task(probe), "for some features", FEW_STEPS)
    expect_unchanged(student, _task(probe))


@pytest.mark.exercise("linear_probe", points=0.25)
def test_the_layer_has_the_features_dtype(student, probe):
    """The minimum is found, and the layer has the dtype of the features."""
    expect_minimum(student, _task(probe), "for some features", FEW_STEPS)
    expect_dtype(student, _task(probe))


@pytest.mark.exercise("linear_probe", points=0.25)
def test_it_computes_where_the_features_are(student, probe):
    """The minimum is found, and for features on another device the layer is made there."""
    expect_minimum(student, _task(probe), "for some features", FEW_STEPS)
    expect_device(student, _task(probe))


@pytest.mark.exercise("linear_probe", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other features are classified too."""
    expect_minimum(student, _task(probe), "for some features", FEW_STEPS)
    expect_example(student)
