"""Hidden checks of ``QKNormAttention``."""

import pytest

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.qk_norm_attention import claims

RIGHT = claims.the_output_is_right
test_the_output_is_right = as_hidden(RIGHT, QKNormAttention=0.41)
test_large_tokens_do_not_sharpen_it = as_hidden(claims.large_tokens_do_not_sharpen_it, QKNormAttention=0.47)
test_every_parameter_learns = as_hidden(claims.every_parameter_learns, RIGHT, QKNormAttention=0.72)
test_the_gradient_reaches_the_tokens = as_hidden(claims.the_gradient_reaches_the_tokens, RIGHT, QKNormAttention=0.3)
test_either_mode_and_float64_will_do = as_hidden(claims.either_mode_and_float64_will_do, RIGHT, QKNormAttention=0.55)
test_tokens_go_in_and_tokens_come_out = as_hidden(claims.tokens_go_in_and_tokens_come_out, RIGHT, QKNormAttention=0.05)
test_the_tokens_are_left_alone = as_hidden(claims.the_tokens_are_left_alone, RIGHT, QKNormAttention=0.1)
test_a_number_of_heads_that_does_not_fit_is_refused = as_hidden(
    claims.a_number_of_heads_that_does_not_fit_is_refused, RIGHT, QKNormAttention=0.15
)


@pytest.mark.exercise("QKNormAttention", points=0.2)
def test_one_image_keeps_its_axis(student, probe):
    """A batch of one image keeps its three axes, and so does an image of one token."""
    module, weights, x, num_heads = claims.some_case(student, probe)
    for batch, tokens in ((1, 4), (2, 1), (1, 1)):
        x = probe.normal(batch, tokens, x.shape[-1])
        right = claims.steps(weights, x, num_heads)["projection:out"]
        expect_equal(module(x), right, f"the output for {batch} of {tokens} tokens", claims.TOKEN_AXES)


@pytest.mark.exercise("QKNormAttention", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
