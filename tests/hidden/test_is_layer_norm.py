"""Hidden checks of is_layer_norm: the student's test, asked about right and wrong layer normalization in one go."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l04_block.is_layer_norm import claims

test_it_catches_wrong_shapes = as_hidden(claims.it_catches_wrong_shapes, is_layer_norm=0.25)
test_it_catches_statistics_over_the_tokens = as_hidden(claims.it_catches_statistics_over_the_tokens, is_layer_norm=0.75)
test_it_catches_statistics_over_the_batch = as_hidden(claims.it_catches_statistics_over_the_batch, is_layer_norm=0.5)
test_it_catches_axes_counted_from_the_front = as_hidden(
    claims.it_catches_axes_counted_from_the_front, is_layer_norm=0.5
)
test_it_catches_another_divisor = as_hidden(claims.it_catches_another_divisor, is_layer_norm=0.5)
test_it_catches_eps_beside_the_variance = as_hidden(claims.it_catches_eps_beside_the_variance, is_layer_norm=0.5)
test_it_catches_an_eps_that_is_ignored = as_hidden(claims.it_catches_an_eps_that_is_ignored, is_layer_norm=0.5)
test_it_catches_a_mean_left_in = as_hidden(claims.it_catches_a_mean_left_in, is_layer_norm=0.5)
test_it_catches_look_alikes = as_hidden(claims.it_catches_look_alikes, is_layer_norm=0.5)
test_it_catches_a_missing_weight_or_bias = as_hidden(claims.it_catches_a_missing_weight_or_bias, is_layer_norm=0.25)
test_it_catches_the_bias_before_the_weight = as_hidden(claims.it_catches_the_bias_before_the_weight, is_layer_norm=0.25)
test_it_catches_another_weight = as_hidden(claims.it_catches_another_weight, is_layer_norm=0.5)
test_it_catches_an_x_that_is_changed = as_hidden(claims.it_catches_an_x_that_is_changed, is_layer_norm=0.25)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right norms pass."""
    ask_first(claims.it_catches_wrong_shapes, student, probe)
    expect_example(student)
