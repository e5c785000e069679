"""Hidden checks of ``LayerScale``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.layer_scale import claims

RIGHT = claims.each_dimension_has_its_own_number
test_all_of_gamma_starts_at_initial = as_hidden(claims.all_of_gamma_starts_at_initial, RIGHT, LayerScale=0.57)
test_each_dimension_has_its_own_number = as_hidden(RIGHT, LayerScale=0.1)
test_any_tokens_and_either_mode_will_do = as_hidden(claims.any_tokens_and_either_mode_will_do, RIGHT, LayerScale=0.24)
test_gamma_learns = as_hidden(claims.gamma_learns, RIGHT, LayerScale=0.67)
test_the_gradient_reaches_the_branch = as_hidden(claims.the_gradient_reaches_the_branch, RIGHT, LayerScale=0.26)
test_the_branch_is_left_alone = as_hidden(claims.the_branch_is_left_alone, RIGHT, LayerScale=0.06)


@pytest.mark.exercise("LayerScale", points=0.1)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
