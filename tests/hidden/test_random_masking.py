"""Hidden checks of ``random_masking``. What is hidden is drawn; what is checked holds whatever it is."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.random_masking import claims

VISIBLE = claims.what_is_left_is_what_the_mask_leaves
test_every_image_hides_as_many = as_hidden(
    claims.every_image_hides_as_many, claims.tokens_and_a_mask_come_back, random_masking=0.32
)
test_what_is_left_is_what_the_mask_leaves = as_hidden(VISIBLE, random_masking=1.14)
test_each_image_hides_other_patches = as_hidden(claims.each_image_hides_other_patches, random_masking=1)
test_every_patch_is_hidden_as_often = as_hidden(claims.every_patch_is_hidden_as_often, random_masking=0.7)
test_all_chance_is_the_generators = as_hidden(claims.all_chance_is_the_generators, random_masking=0.34)
test_gradients_reach_what_is_left = as_hidden(claims.gradients_reach_what_is_left, random_masking=0.3)
test_what_went_in_is_left_alone = as_hidden(claims.what_went_in_is_left_alone, VISIBLE, random_masking=0.05)
test_a_ratio_that_hides_all_or_nothing_is_refused = as_hidden(
    claims.a_ratio_that_hides_all_or_nothing_is_refused, VISIBLE, random_masking=0.05
)
test_it_computes_where_the_tokens_are = as_hidden(claims.it_computes_where_the_tokens_are, VISIBLE, random_masking=0.05)


@pytest.mark.exercise("random_masking", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other tokens are hidden too."""
    ask_first(VISIBLE, student, probe)
    expect_example(student)
