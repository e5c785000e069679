"""Hidden checks of ``split_indices``. Many splits are right; what is checked holds for all of them."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l06_training.split_indices import claims


def whole(student, probe):
    claims.the_two_parts_have_the_sizes_asked_for(student, probe)
    claims.every_image_is_used_once(student, probe)


def whole_and_repeatable(student, probe):
    whole(student, probe)
    claims.the_same_seed_gives_the_same_split(student, probe)


test_no_image_is_in_both_parts = as_hidden(claims.no_image_is_in_both_parts, whole, split_indices=0.15)
test_every_image_is_used_once = as_hidden(claims.every_image_is_used_once, whole, split_indices=0.3)
test_the_parts_are_int64_tensors = as_hidden(claims.the_parts_are_int64_tensors, whole, split_indices=0.15)
test_chance_chooses_the_validation_images = as_hidden(
    claims.chance_chooses_the_validation_images, whole, split_indices=0.2
)
test_the_same_seed_gives_the_same_split = as_hidden(claims.the_same_seed_gives_the_same_split, whole, split_indices=0.2)
test_another_seed_gives_another_split = as_hidden(
    claims.another_seed_gives_another_split, whole_and_repeatable, split_indices=0.5
)
test_any_image_may_be_chosen = as_hidden(claims.any_image_may_be_chosen, whole_and_repeatable, split_indices=0.5)
test_nobody_elses_chance_is_touched = as_hidden(claims.nobody_elses_chance_is_touched, whole, split_indices=0.5)
test_a_part_that_would_be_empty_is_refused = as_hidden(
    claims.a_part_that_would_be_empty_is_refused, whole, split_indices=0.3
)


@pytest.mark.exercise("split_indices", points=0.2)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    whole(student, probe)
    expect_example(student)
