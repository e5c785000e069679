"""Hidden checks of ``EncoderBlock``, and of ``fix_block``, which mends a broken one."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l04_block.encoder_block import claims


def numbers_first(student, probe):
    """The block is right in both modes."""
    claims.expect_right(student, probe, "The numbers come first: what do the checks above say?")


test_a_block_that_adds_nothing_is_the_identity = as_hidden(
    claims.a_block_that_adds_nothing_is_the_identity, claims.expect_change, EncoderBlock=0.75, fix_block=0.25
)
test_attention_is_added_to_the_stream = as_hidden(
    claims.attention_is_added_to_the_stream, EncoderBlock=1, fix_block=0.5
)
test_the_mlp_is_added_to_the_stream = as_hidden(claims.the_mlp_is_added_to_the_stream, EncoderBlock=1, fix_block=0.5)
test_the_second_branch_starts_where_the_first_ended = as_hidden(
    claims.the_second_branch_starts_where_the_first_ended, EncoderBlock=1, fix_block=0.5
)
test_both_norms_have_an_eps_of_1e_6 = as_hidden(
    claims.both_norms_have_an_eps_of_1e_6, numbers_first, EncoderBlock=0.5, fix_block=0.25
)
test_both_norms_have_the_eps_that_is_given = as_hidden(
    claims.both_norms_have_the_eps_that_is_given, numbers_first, EncoderBlock=0.25, fix_block=0.0625
)
test_the_queries_keys_and_values_have_a_bias_only_if_asked = as_hidden(
    claims.the_queries_keys_and_values_have_a_bias_only_if_asked, numbers_first, EncoderBlock=0.25, fix_block=0.0625
)
test_every_parameter_learns = as_hidden(claims.every_parameter_learns, EncoderBlock=0.25, fix_block=0.125)
test_the_mlp_is_as_wide_as_mlp_ratio_says = as_hidden(
    claims.the_mlp_is_as_wide_as_mlp_ratio_says, numbers_first, EncoderBlock=0.25, fix_block=0.0625
)
test_it_follows_its_dtype = as_hidden(claims.it_follows_its_dtype, numbers_first, EncoderBlock=0.375, fix_block=0.125)
test_nothing_depends_on_the_mode = as_hidden(claims.nothing_depends_on_the_mode, EncoderBlock=0.125, fix_block=0.05)
test_nothing_is_left_to_chance = as_hidden(
    claims.nothing_is_left_to_chance, numbers_first, EncoderBlock=0.125, fix_block=0.025
)
test_its_layers_are_made_before_forward = as_hidden(
    claims.its_layers_are_made_before_forward, numbers_first, EncoderBlock=0.125, fix_block=0.025
)
test_the_tokens_that_go_in_are_left_alone = as_hidden(
    claims.the_tokens_that_go_in_are_left_alone, numbers_first, EncoderBlock=0.125, fix_block=0.025
)
test_the_gradient_takes_the_stream_and_both_branches = as_hidden(
    claims.the_gradient_takes_the_stream_and_both_branches, numbers_first, EncoderBlock=0.375, fix_block=0.25
)


@pytest.mark.exercise("EncoderBlock", points=0.25)
@pytest.mark.exercise("fix_block", points=0.0625)
def test_a_block_of_the_usual_width_is_right(student, probe):
    """Where no mlp_ratio is given, the numbers are right too."""
    claims.expect_right(student, probe, "Which value does mlp_ratio have when nobody gives one?", without_ratio=True)


@pytest.mark.exercise("EncoderBlock", points=0.25)
@pytest.mark.exercise("fix_block", points=0.125)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(numbers_first, student, probe)
    expect_example(student)
