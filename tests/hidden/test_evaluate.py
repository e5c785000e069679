"""Hidden checks of ``evaluate``: a slip in one of its two numbers costs that one's check, and not those of all else."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l06_training.evaluate import claims

ONE = claims.one_number_is_right
test_the_loss_is_a_mean_over_images = as_hidden(claims.the_loss_is_a_mean_over_images, evaluate=1.15)
test_the_accuracy_is_a_share_of_images = as_hidden(claims.the_accuracy_is_a_share_of_images, evaluate=1.15)
test_it_measures_in_evaluation_mode = as_hidden(claims.it_measures_in_evaluation_mode, ONE, evaluate=0.5)
test_a_model_in_training_goes_back_to_it = as_hidden(claims.a_model_in_training_goes_back_to_it, ONE, evaluate=0.15)
test_a_model_in_evaluation_stays_in_it = as_hidden(claims.a_model_in_evaluation_stays_in_it, ONE, evaluate=0.1)
test_no_graph_is_made = as_hidden(claims.no_graph_is_made, ONE, evaluate=0.15)
test_nothing_is_learned = as_hidden(claims.nothing_is_learned, ONE, evaluate=0.3)
test_batches_go_to_the_device = as_hidden(claims.batches_go_to_the_device, ONE, evaluate=0.1)
test_both_are_plain_floats = as_hidden(claims.both_are_plain_floats, ONE, evaluate=0.15)


@pytest.mark.exercise("evaluate", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(ONE, student, probe)
    expect_example(student)
