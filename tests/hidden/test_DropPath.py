"""Hidden checks of ``DropPath``. Which images lose their branch is drawn; what is checked holds whatever was drawn."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.drop_path import claims

DROPPED = claims.an_image_is_dropped_whole_or_kept
RESCALED = claims.the_others_make_up_for_it
test_a_branch_keeps_its_shape = as_hidden(claims.a_branch_keeps_its_shape, DROPPED, DropPath=0.08)
test_an_image_is_dropped_whole_or_kept = as_hidden(DROPPED, DropPath=0.1)
test_the_others_make_up_for_it = as_hidden(RESCALED, DropPath=0.18)
test_the_gradient_goes_with_the_branch = as_hidden(claims.the_gradient_goes_with_the_branch, RESCALED, DropPath=0.2)
test_as_many_are_dropped_as_the_probability_says = as_hidden(
    claims.as_many_are_dropped_as_the_probability_says, DropPath=0.24
)
test_chance_decides_anew_in_every_call = as_hidden(claims.chance_decides_anew_in_every_call, RESCALED, DropPath=1.01)
test_with_a_probability_of_zero_nothing_is_dropped = as_hidden(
    claims.with_a_probability_of_zero_nothing_is_dropped, DROPPED, DropPath=0.07
)
test_a_probability_out_of_range_is_refused = as_hidden(
    claims.a_probability_out_of_range_is_refused, DROPPED, DropPath=0.05
)
test_it_draws_where_the_branch_is = as_hidden(claims.it_draws_where_the_branch_is, DROPPED, DropPath=0.05)


@pytest.mark.exercise("DropPath", points=0.97)
def test_in_evaluation_nothing_is_dropped(student, probe):
    """In evaluation mode the branch is returned unchanged, while training some of the images are dropped."""
    claims.in_evaluation_nothing_is_dropped(student, probe)  # before: tells *only in evaluation* from *never dropped*
    ask_first(DROPPED, student, probe)


@pytest.mark.exercise("DropPath", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other branches are dropped too."""
    ask_first(DROPPED, student, probe)
    expect_example(student)
