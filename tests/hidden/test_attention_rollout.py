"""Hidden checks of ``attention_rollout``: its claims, of layers of drawn sizes."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l08_inside.attention_rollout import claims

RIGHT = claims.a_later_layer_mixes_what_earlier_ones_mixed
test_one_layer_is_half_the_token_itself = as_hidden(claims.one_layer_is_half_the_token_itself, attention_rollout=0.5)
test_a_later_layer_mixes_what_earlier_ones_mixed = as_hidden(RIGHT, attention_rollout=0.75)
test_the_dtype_is_kept = as_hidden(claims.the_dtype_is_kept, attention_rollout=0.5)
test_it_computes_where_the_weights_are = as_hidden(
    claims.it_computes_where_the_weights_are, RIGHT, attention_rollout=0.25
)
test_one_image_is_a_batch_too = as_hidden(claims.one_image_is_a_batch_too, RIGHT, attention_rollout=0.25)
test_the_weights_are_left_alone = as_hidden(claims.the_weights_are_left_alone, RIGHT, attention_rollout=0.15)
test_no_layer_at_all_is_refused = as_hidden(claims.no_layer_at_all_is_refused, RIGHT, attention_rollout=0.25)


@pytest.mark.exercise("attention_rollout", points=0.1)
def test_every_call_stands_alone(student, probe):
    """The table is right, and no later call changes it."""
    ask_first(RIGHT, student, probe)
    layers = claims.attention_layers(probe)
    others = [probe.normal(*layer.shape).softmax(-1) for layer in layers]
    expect_result_of_its_own(student, (layers,), (others,))


@pytest.mark.exercise("attention_rollout", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
