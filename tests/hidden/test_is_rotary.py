"""Hidden checks of ``is_rotary``: the student's test, asked about all right and wrong rotary positions."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.is_rotary import claims

ADDED = claims.it_catches_positions_that_are_added
test_right_rotations_pass = as_hidden(claims.right_rotations_pass, ADDED, is_rotary=0.4)
test_it_catches_what_comes_back_wrong = as_hidden(claims.it_catches_what_comes_back_wrong, is_rotary=0.25)
test_it_catches_queries_and_keys_that_disagree = as_hidden(
    claims.it_catches_queries_and_keys_that_disagree, is_rotary=0.41
)
test_it_catches_an_axis_that_does_not_count = as_hidden(claims.it_catches_an_axis_that_does_not_count, is_rotary=0.27)
test_it_catches_rows_and_columns_taken_together = as_hidden(
    claims.it_catches_rows_and_columns_taken_together, is_rotary=0.35
)
test_it_catches_patches_at_other_places = as_hidden(claims.it_catches_patches_at_other_places, is_rotary=0.2)
test_it_catches_positions_that_are_added = as_hidden(claims.it_catches_positions_that_are_added, is_rotary=0.1)
test_it_catches_other_lengths = as_hidden(claims.it_catches_other_lengths, is_rotary=0.16)
test_it_catches_pairs_of_one_speed = as_hidden(claims.it_catches_pairs_of_one_speed, is_rotary=0.34)
test_it_catches_another_start = as_hidden(claims.it_catches_another_start, is_rotary=0.12)
test_it_catches_mixed_images = as_hidden(claims.it_catches_mixed_images, is_rotary=0.15)
test_it_catches_uneven_steps = as_hidden(claims.it_catches_uneven_steps, is_rotary=0.2)


@pytest.mark.exercise("is_rotary", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The example in the docstring comes out as it stands there, and right rotations pass."""
    ask_first(ADDED, student, probe)
    expect_example(student)
