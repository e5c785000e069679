"""Hidden checks of ``mean_attention_distance``: its claims, on grids of drawn sizes, wide and tall."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l08_inside.mean_attention_distance import claims

WEIGHTED, PATCHES = claims.each_key_counts_by_its_weight, claims.a_class_token_is_left_out
test_each_key_counts_by_its_weight = as_hidden(WEIGHTED, mean_attention_distance=0.75)
test_known_distances_are_found = as_hidden(claims.known_distances_are_found, mean_attention_distance=0.5)
test_a_class_token_is_left_out = as_hidden(PATCHES, mean_attention_distance=0.5)
test_the_dtype_is_kept = as_hidden(claims.the_dtype_is_kept, mean_attention_distance=0.25)
test_it_computes_where_the_weights_are = as_hidden(
    claims.it_computes_where_the_weights_are, PATCHES, mean_attention_distance=0.25
)
test_the_weights_are_left_alone = as_hidden(claims.the_weights_are_left_alone, PATCHES, mean_attention_distance=0.15)
test_a_grid_that_does_not_fit_is_refused = as_hidden(
    claims.a_grid_that_does_not_fit_is_refused, WEIGHTED, mean_attention_distance=0.25
)


@pytest.mark.exercise("mean_attention_distance", points=0.1)
def test_every_call_stands_alone(student, probe):
    """The distances are right, and no later call changes them."""
    ask_first(PATCHES, student, probe)
    weights, *others = claims.a_case(probe, claims.WIDE, class_token=True)
    expect_result_of_its_own(student, (weights, *others), (probe.normal(*weights.shape).softmax(-1), *others))


@pytest.mark.exercise("mean_attention_distance", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(WEIGHTED, student, probe)
    expect_example(student)
