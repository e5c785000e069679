"""Hidden checks of scaled_dot_product_attention."""

import pytest

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l03_attention.scaled_dot_product_attention import claims


def numbers_first(student, probe):
    """Output and weights are right."""
    claims.expect_both(student, claims.some_inputs(probe))


test_the_weights_follow_the_formula = as_hidden(
    claims.the_weights_follow_the_formula, scaled_dot_product_attention=1.75
)
test_the_output_is_a_weighted_mean_of_the_values = as_hidden(
    claims.the_output_is_a_weighted_mean_of_the_values, scaled_dot_product_attention=1.25
)
test_any_leading_axes_will_do = as_hidden(claims.any_leading_axes_will_do, scaled_dot_product_attention=1)
test_large_scores_do_no_harm = as_hidden(claims.large_scores_do_no_harm, scaled_dot_product_attention=1)
test_the_dtype_is_kept = as_hidden(claims.the_dtype_is_kept, scaled_dot_product_attention=0.75)
test_the_gradient_flows_to_all_three = as_hidden(
    claims.the_gradient_flows_to_all_three, numbers_first, scaled_dot_product_attention=0.75
)
test_it_computes_where_its_inputs_lie = as_hidden(
    claims.it_computes_where_its_inputs_lie, scaled_dot_product_attention=0.5
)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.5)
def test_nobody_else_is_looked_at(student, probe):
    """An image alone gets the answer it gets in a batch, and shuffled keys and values change no output."""
    batch, heads, *sizes = probe.sizes(6)
    query, key, value = claims.draw(probe, (batch, heads), sizes)
    output = claims.expect_both(student, (query, key, value)).detach()
    alone, _ = claims.both(student, *(each[batch - 1 :] for each in (query, key, value)))
    look = "Along which axes do you sum, and whom do they join?"
    expect_equal(alone, output[batch - 1 :], "the output of an image alone", claims.OUTPUT_AXES, look=look)
    order = probe.permutation(sizes[1])
    shuffled, _ = claims.both(student, query, key[:, :, order], value[:, :, order])
    look = "Where do you use the number of a key, where only what it holds should count?"
    expect_equal(shuffled, output, "the output for shuffled keys and values", claims.OUTPUT_AXES, look=look)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.25)
def test_the_inputs_are_left_alone(student, probe):
    """query, key and value are not changed, and each call answers for its own inputs, with results of its own."""
    batch, *sizes = probe.sizes(5)
    one, other = (claims.draw(probe, (batch,), sizes) for _ in range(2))
    for inputs in (one, other):
        claims.expect_both(student, inputs)
        expect_left_alone(student)
    expect_result_of_its_own(student, one, other)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(numbers_first, student, probe)
    expect_example(student)
