"""Hidden checks of ``layer_norm``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l04_block.layer_norm import claims

RIGHT = claims.weight_multiplies_then_bias_is_added
test_every_token_gets_mean_zero_and_variance_one = as_hidden(
    claims.every_token_gets_mean_zero_and_variance_one, layer_norm=1
)
test_weight_multiplies_then_bias_is_added = as_hidden(RIGHT, layer_norm=0.75)
test_only_the_last_axis_counts = as_hidden(claims.only_the_last_axis_counts, layer_norm=0.75)
test_eps_is_added_to_the_variance = as_hidden(claims.eps_is_added_to_the_variance, layer_norm=0.75)
test_a_token_of_equal_numbers_becomes_the_bias = as_hidden(
    claims.a_token_of_equal_numbers_becomes_the_bias, layer_norm=0.25
)
test_a_large_mean_does_no_harm = as_hidden(claims.a_large_mean_does_no_harm, RIGHT, layer_norm=0.375)
test_the_gradient_takes_every_way = as_hidden(claims.the_gradient_takes_every_way, RIGHT, layer_norm=0.375)
test_float64_and_any_memory_layout_are_fine = as_hidden(claims.float64_and_any_memory_layout_are_fine, layer_norm=0.25)


@pytest.mark.exercise("layer_norm", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)


@pytest.mark.exercise("layer_norm", points=0.25)
def test_what_goes_in_stays_as_it_is(student, probe):
    """x, weight and bias are the same after the call as before, and so is a result after the next call."""
    x, *others = claims.some_inputs(probe)
    claims.expect_right(student, (x, *others))
    expect_left_alone(student)
    expect_result_of_its_own(student, (x, *others), (x + 1, *others))
