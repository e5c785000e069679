"""Hidden checks of MultiHeadSelfAttention."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l03_attention.multi_head_self_attention import claims


def numbers_first(student, probe):
    """Output and weights are right in both modes."""
    claims.expect_right(student, probe, "The numbers come first: what do the checks above say?")


test_the_output_is_right = as_hidden(claims.the_output_is_right, MultiHeadSelfAttention=1.75)
test_every_head_attends_by_itself = as_hidden(claims.every_head_attends_by_itself, MultiHeadSelfAttention=1.5)
test_the_bias_of_qkv_can_be_left_out = as_hidden(claims.the_bias_of_qkv_can_be_left_out, MultiHeadSelfAttention=0.75)
test_the_gradient_reaches_the_tokens = as_hidden(
    claims.the_gradient_reaches_the_tokens, numbers_first, MultiHeadSelfAttention=0.75
)
test_every_parameter_learns = as_hidden(claims.every_parameter_learns, MultiHeadSelfAttention=0.5)
test_it_computes_where_the_tokens_lie = as_hidden(
    claims.it_computes_where_the_tokens_lie, numbers_first, MultiHeadSelfAttention=0.5
)
test_it_follows_its_dtype = as_hidden(claims.it_follows_its_dtype, numbers_first, MultiHeadSelfAttention=0.5)
test_nothing_depends_on_the_mode = as_hidden(claims.nothing_depends_on_the_mode, MultiHeadSelfAttention=0.5)
test_nothing_is_left_to_chance = as_hidden(
    claims.nothing_is_left_to_chance, numbers_first, MultiHeadSelfAttention=0.125
)
test_asking_for_weights_changes_nothing = as_hidden(
    claims.asking_for_weights_changes_nothing, numbers_first, MultiHeadSelfAttention=0.125
)
test_shuffled_tokens_come_out_shuffled = as_hidden(
    claims.shuffled_tokens_come_out_shuffled, numbers_first, MultiHeadSelfAttention=0.1
)
test_an_image_does_not_see_the_others = as_hidden(
    claims.an_image_does_not_see_the_others, numbers_first, MultiHeadSelfAttention=0.05
)
test_the_tokens_are_left_alone = as_hidden(claims.the_tokens_are_left_alone, numbers_first, MultiHeadSelfAttention=0.1)
test_a_number_of_heads_that_does_not_fit_is_refused_when_built = as_hidden(
    claims.a_number_of_heads_that_does_not_fit_is_refused_when_built, numbers_first, MultiHeadSelfAttention=0.5
)


@pytest.mark.exercise("MultiHeadSelfAttention", points=1)
def test_one_of_anything_will_do(student, probe):
    """One head, heads of one number, one token, a batch of one and scattered memory work too."""
    batch, tokens, num_heads, head_dim = claims.some_sizes(probe)
    for images, seen, heads, width in (
        (batch, tokens, 1, head_dim),
        (1, tokens, num_heads, 1),
        (batch, 1, num_heads, head_dim),
    ):
        module, right = claims.attention_pair(student, probe, heads * width, heads, True)
        x = probe.normal(images, heads * width, seen).mT
        described = f" (batch {images}, tokens {seen}, num_heads {heads}, head_dim {width})"
        claims.expect_output(module, right, x, f"the output{described}")
        claims.expect_weights(module, right, x, f"the weights tensor{described}")


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_qkv_has_a_bias_unless_told(student, probe):
    """A module that is built without a word about qkv_bias has a bias in qkv, and uses it."""
    claims.qkv_has_a_bias_unless_told(student, probe)
    batch, tokens, num_heads, head_dim = claims.some_sizes(probe)
    module, right = claims.attention_pair(student, probe, num_heads * head_dim, num_heads)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    claims.expect_output(module, right, x, "the output of a module that is built without qkv_bias")


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_one_module_serves_any_batch(student, probe):
    """One and the same module takes more tokens, fewer, and other batches, one call after the other."""
    few, many, num_heads, head_dim = claims.some_sizes(probe)
    module, right = claims.attention_pair(student, probe, num_heads * head_dim, num_heads, True)
    look = "What does your module keep from one call to the next?"
    for batch, tokens in ((few, many), (many, few), (1, many + 1), (few, many)):
        x = probe.normal(batch, tokens, num_heads * head_dim)
        claims.expect_output(module, right, x, f"the output (batch {batch}, tokens {tokens})", look)
        claims.expect_weights(module, right, x, look=look)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(numbers_first, student, probe)
    expect_example(student)
