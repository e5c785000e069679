"""Hidden checks of ``VisionTransformer``, and of ``fix_vit``, which mends a broken one.

What a model does with images of another size than its config's is not asked, for no exercise's text tells.
"""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_modes_kept
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l05_vit.small_models import a_config
from vit_course.exercises.l05_vit.vision_transformer import claims

RIGHT = claims.the_logits_are_right


@pytest.mark.exercise("VisionTransformer", points=1)
@pytest.mark.exercise("fix_vit", points=0.5)
def test_both_ends_are_right(student, probe):
    """Without any block (depth 0) the logits are those of the class token, at its position, after the norm."""
    config = a_config(probe, claims.WIDE_MODEL, depth=0)
    look = "No block mixes tokens here. Which token does your head read?"
    claims.expect_logits(student, probe, config, "the output of a model of depth 0", look)


test_the_logits_are_right = as_hidden(RIGHT, VisionTransformer=1.5, fix_vit=0.5)
test_the_config_is_followed = as_hidden(claims.the_config_is_followed, VisionTransformer=2, fix_vit=0.5)
test_the_epsilon_of_every_norm_is_the_configs = as_hidden(
    claims.the_epsilon_of_every_norm_is_the_configs, VisionTransformer=1, fix_vit=0.25
)
test_every_parameter_learns = as_hidden(claims.every_parameter_learns, RIGHT, VisionTransformer=1, fix_vit=0.25)
test_nothing_is_dropped_after_eval = as_hidden(
    claims.nothing_is_dropped_after_eval, VisionTransformer=0.5, fix_vit=0.125
)
test_nothing_is_dropped_unasked = as_hidden(claims.nothing_is_dropped_unasked, VisionTransformer=0.5, fix_vit=0.125)
test_it_follows_its_dtype = as_hidden(claims.it_follows_its_dtype, VisionTransformer=0.5, fix_vit=0.125)
test_it_computes_where_the_images_are = as_hidden(
    claims.it_computes_where_the_images_are, RIGHT, VisionTransformer=0.5, fix_vit=0.125
)
test_class_token_and_positions_start_as_asked = as_hidden(
    claims.class_token_and_positions_start_as_asked, RIGHT, VisionTransformer=0.5, fix_vit=0.125
)


@pytest.mark.exercise("VisionTransformer", points=0.75)
@pytest.mark.exercise("fix_vit", points=0.25)
def test_every_call_stands_alone(student, probe):
    """An image gets the same logits alone as in a batch; a call changes neither the images nor the model's mode."""
    ask_first(RIGHT, student, probe)
    claims.images_do_not_see_each_other(student, probe)
    expect_left_alone(student)
    config = a_config(probe, claims.WIDE_MODEL)
    expect_modes_kept(student, (config,), claims.images_for(probe, 2, config))


@pytest.mark.exercise("VisionTransformer", points=0.25)
@pytest.mark.exercise("fix_vit", points=0.125)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and the logits of a drawn model are right too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
