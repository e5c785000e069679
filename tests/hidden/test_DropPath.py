"""Hidden checks of ``DropPath``. Which images lose their branch is drawn; what is checked holds whatever was drawn."""

import pytest

from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import expect_device_of_input, expect_value_error
from vit_course.exercises.l10_modern.drop_path.claims import (
    CALLS,
    IMAGES,
    case_of,
    expect_gradients,
    expect_half,
    expect_identity,
    expect_new_draws,
    expect_rescaled,
    expect_shapes,
    expect_share,
    expect_whole,
)


def _probability(probe):
    """Between 0.25 and 0.75."""
    return 0.25 + int(probe.integers(1, high=51)) / 100


def _whole(student, probe):
    expect_whole(student, case_of(probe, 50 + probe.sizes(1)[0], 3, 4, probability=0.5))


@pytest.mark.exercise("DropPath", points=0.25)
def test_a_branch_keeps_its_shape(student, probe):
    """A branch of any number of axes comes back in its shape and dtype, and an image is dropped whole or kept."""
    first, second, third = probe.sizes(3)
    sizes = ((2, first), (1, first, second), (3, second, first, third))
    expect_shapes(student, [case_of(probe, *each, probability=_probability(probe)) for each in sizes])
    _whole(student, probe)


@pytest.mark.exercise("DropPath", points=0.75)
def test_an_image_is_dropped_whole_or_kept(student, probe):
    """Each image has one random number: its branch is dropped as a whole, or kept as a whole."""
    for axes in (2, 3, 4):
        expect_whole(student, case_of(probe, 60, *probe.sizes(axes - 1), probability=0.5))


@pytest.mark.exercise("DropPath", points=0.75)
def test_the_others_make_up_for_it(student, probe):
    """What is kept is divided by the probability of being kept, so the mean stays, and its gradient with it."""
    cases = [case_of(probe, 60, 3, probability=_probability(probe)) for _ in range(2)]
    expect_rescaled(student, cases)
    expect_gradients(student, cases[0])


@pytest.mark.exercise("DropPath", points=0.5)
def test_as_many_are_dropped_as_the_probability_says(student, probe):
    """The share of the images that are dropped is the probability, and other images are dropped in every call."""
    few = 0.1 + _probability(probe) / 5
    expect_share(student, [case_of(probe, IMAGES, 2, probability=each) for each in (few, 0.7)])
    expect_new_draws(
        student, case_of(probe, 40, 3, probability=0.5, calls=CALLS, seed=int(probe.integers(1, high=999)))
    )


@pytest.mark.exercise("DropPath", points=0.5)
def test_in_evaluation_nothing_is_dropped(student, probe):
    """In evaluation mode, and with a probability of 0, the branch is returned unchanged; else some are dropped."""
    expect_identity(student, [case_of(probe, 50, 3, probability=_probability(probe), training=False)])
    expect_identity(student, [case_of(probe, 50, 3, probability=0.0)])
    _whole(student, probe)


@pytest.mark.exercise("DropPath", points=0.1)
def test_a_probability_out_of_range_is_refused(student, probe):
    """A probability below 0, or of 1 and more, raises a ValueError that names it; others are accepted."""
    _whole(student, probe)
    for probability in (-1, -2 - int(probe.integers(1, high=7)), 1, 2 + int(probe.integers(1, high=7))):
        expect_value_error(student, (probability,), (probability,), f"probability {probability}")


@pytest.mark.exercise("DropPath", points=0.1)
def test_it_draws_where_the_branch_is(student, probe):
    """What it draws is on the device of the branch, and in half precision where the branch is."""
    _whole(student, probe)
    expect_half(student, case_of(probe, 4, *probe.sizes(2), probability=_probability(probe)))
    expect_device_of_input(student, probe.normal(4, *probe.sizes(2)), arguments=(0.5,))


@pytest.mark.exercise("DropPath", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other branches are dropped too."""
    _whole(student, probe)
    expect_example(student)
