"""Hidden checks of ``mixup``. Share and partners are drawn; what is checked holds whatever they are."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l07_experiments.mixup import claims

BLENDED = claims.an_image_is_blended_with_one_other
test_images_and_targets_come_back = as_hidden(claims.images_and_targets_come_back, BLENDED, mixup=0.03)
test_both_have_the_dtype_of_the_images = as_hidden(claims.both_have_the_dtype_of_the_images, BLENDED, mixup=0.03)
test_an_image_is_blended_with_one_other = as_hidden(BLENDED, mixup=0.12)
test_one_share_holds_for_the_batch = as_hidden(claims.one_share_holds_for_the_batch, BLENDED, mixup=0.1)
test_every_image_is_a_partner_once = as_hidden(claims.every_image_is_a_partner_once, BLENDED, mixup=0.08)
test_the_partners_are_drawn = as_hidden(claims.the_partners_are_drawn, mixup=0.08)
test_targets_are_blended_as_the_images_are = as_hidden(
    claims.targets_are_blended_as_the_images_are, BLENDED, mixup=0.67
)
test_the_share_is_of_a_beta_distribution = as_hidden(claims.the_share_is_of_a_beta_distribution, mixup=0.67)
test_all_chance_is_the_generators = as_hidden(claims.all_chance_is_the_generators, mixup=0.1)
test_what_went_in_is_left_alone = as_hidden(claims.what_went_in_is_left_alone, BLENDED, mixup=0.04)
test_an_alpha_of_zero_or_less_is_refused = as_hidden(claims.an_alpha_of_zero_or_less_is_refused, BLENDED, mixup=0.03)
test_it_computes_where_the_images_are = as_hidden(claims.it_computes_where_the_images_are, BLENDED, mixup=0.03)


@pytest.mark.exercise("mixup", points=0.02)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and another batch is blended too."""
    ask_first(BLENDED, student, probe)
    expect_example(student)
