"""Hidden checks of ``resize_positions``.

A bicubic value is a sum of 16 products of order 1: float32 gives it to 1e-6, half to 2e-3. The nearest misconception,
align_corners, is off by 1e-1.
"""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l02_positions.resize_positions import claims

RIGHT = claims.the_grid_is_resampled_bicubically
test_the_grid_is_resampled_bicubically = as_hidden(RIGHT, resize_positions=1.75)
test_the_class_tokens_row_stays = as_hidden(claims.the_class_tokens_row_stays, resize_positions=0.5)
test_a_dimension_that_tells_the_row_still_does = as_hidden(
    claims.a_dimension_that_tells_the_row_still_does, resize_positions=0.65
)
test_the_same_grid_changes_nothing = as_hidden(claims.the_same_grid_changes_nothing, RIGHT, resize_positions=0.35)
test_double_positions_stay_double = as_hidden(claims.double_positions_stay_double, resize_positions=0.3)
test_positions_can_still_be_learned = as_hidden(claims.positions_can_still_be_learned, resize_positions=0.35)
test_a_grid_that_does_not_fit_is_refused = as_hidden(
    claims.a_grid_that_does_not_fit_is_refused, RIGHT, resize_positions=0.45
)
test_the_new_grid_has_the_very_size_that_was_asked_for = as_hidden(
    claims.the_new_grid_has_the_very_size_that_was_asked_for, resize_positions=0.2
)
test_it_computes_where_the_positions_are = as_hidden(
    claims.it_computes_where_the_positions_are, RIGHT, resize_positions=0.2
)


@pytest.mark.exercise("resize_positions", points=0.15)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for the positions at hand, on their device, and leaves them as they were."""
    first, old, another = claims.some_inputs(probe)
    first, other = first.to(device), probe.normal(*first.shape).to(device)
    for positions, new in ((first, another), (other, another), (other, old)):
        claims.expect_resized(student, positions, old, new)
    expect_left_alone(student)
    for new in (another, old):
        expect_result_of_its_own(student, (first, old, new), (other, old, new))


@pytest.mark.exercise("resize_positions", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_resized(student, *claims.some_inputs(probe))
    expect_example(student)
