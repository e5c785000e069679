"""Hidden checks of ``extract_features``: its claims, of models of any width."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l09_fine_tuning.extract_features import claims

RIGHT = claims.the_features_are_what_the_head_reads
EVALUATING = claims.the_model_is_asked_in_evaluation_mode  # who never touches the mode has put nothing back
test_every_image_has_a_row = as_hidden(claims.every_image_has_a_row, RIGHT, extract_features=0.5)
test_the_features_are_what_the_head_reads = as_hidden(RIGHT, extract_features=1.55)
test_the_model_is_asked_in_evaluation_mode = as_hidden(EVALUATING, extract_features=1.4)
test_the_mode_is_put_back = as_hidden(claims.the_mode_is_put_back, EVALUATING, extract_features=0.65)
test_no_graph_is_kept = as_hidden(claims.no_graph_is_kept, RIGHT, extract_features=0.4)
test_the_model_is_left_as_it_was = as_hidden(claims.the_model_is_left_as_it_was, RIGHT, extract_features=0.5)
test_an_error_leaves_nothing_behind = as_hidden(claims.an_error_leaves_nothing_behind, RIGHT, extract_features=0.25)
test_the_loader_is_gone_through_once = as_hidden(claims.the_loader_is_gone_through_once, RIGHT, extract_features=0.25)
test_it_computes_where_the_model_is = as_hidden(
    claims.features_of_another_device_come_to_the_cpu, RIGHT, extract_features=0.25
)


@pytest.mark.exercise("extract_features", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other features are right too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
