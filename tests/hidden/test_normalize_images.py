"""Hidden checks of ``normalize_images``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l00_start.normalize_images import claims

RIGHT = claims.every_channel_has_its_own_statistics
test_every_channel_has_its_own_statistics = as_hidden(RIGHT, normalize_images=0.45)
test_no_other_axis_is_taken_for_the_channels = as_hidden(
    claims.no_other_axis_is_taken_for_the_channels, normalize_images=0.25
)
test_one_image_of_one_channel_is_a_batch_too = as_hidden(
    claims.one_image_of_one_channel_is_a_batch_too, normalize_images=0.3
)
test_lists_and_tuples_will_do = as_hidden(claims.lists_and_tuples_will_do, normalize_images=0.25)
test_images_keep_their_dtype = as_hidden(claims.images_keep_their_dtype, normalize_images=0.2)
test_a_wrong_number_of_means_is_refused = as_hidden(
    claims.a_wrong_number_of_means_is_refused, RIGHT, normalize_images=0.2
)
test_it_computes_where_the_images_are = as_hidden(claims.it_computes_where_the_images_are, RIGHT, normalize_images=0.15)


@pytest.mark.exercise("normalize_images", points=0.1)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for what it is given, and leaves images, mean and std as they were."""
    first = tuple(each.to(device) for each in claims.some_inputs(probe))
    images, *statistics = tuple(each.to(device) for each in claims.some_inputs(probe, *first[0].shape))
    for inputs in (first, (images, *statistics), (images.mT, *statistics)):
        claims.expect_normalized(student, *inputs)
    expect_left_alone(student)
    expect_result_of_its_own(student, first, (images, *statistics))


@pytest.mark.exercise("normalize_images", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
