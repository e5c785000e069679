"""Hidden checks of ``predict_with_attention``: its claims, of models of drawn sizes, wide and tall.

In training mode every block of these models is the identity, so whoever asks them in it gets other numbers.
"""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l08_inside.predict_with_attention import claims

RIGHT = claims.both_tensors_are_right
EVALUATING = claims.the_model_is_asked_in_evaluation_mode  # who never touches the mode has put nothing back
test_the_probabilities_are_the_models = as_hidden(claims.the_probabilities_are_the_models, predict_with_attention=0.65)
test_the_map_shows_where_the_class_token_looks = as_hidden(
    claims.the_map_shows_where_the_class_token_looks, predict_with_attention=0.9
)
test_the_model_is_asked_in_evaluation_mode = as_hidden(EVALUATING, predict_with_attention=0.75)
test_the_mode_is_put_back = as_hidden(claims.the_mode_is_put_back, EVALUATING, predict_with_attention=0.6)
test_no_gradient_is_kept = as_hidden(claims.no_gradient_is_kept, RIGHT, predict_with_attention=0.1)
test_the_model_is_left_as_it_was = as_hidden(claims.the_model_is_left_as_it_was, RIGHT, predict_with_attention=0.2)
test_an_error_leaves_nothing_behind = as_hidden(
    claims.an_error_leaves_nothing_behind, RIGHT, predict_with_attention=0.25
)
test_it_computes_where_the_model_is = as_hidden(
    claims.it_computes_where_the_model_is, RIGHT, predict_with_attention=0.2
)
test_a_float64_model_answers_in_float64 = as_hidden(
    claims.a_float64_model_answers_in_float64, predict_with_attention=0.15
)


@pytest.mark.exercise("predict_with_attention", points=0.2)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
