"""Hidden checks of ``linear_probe``: the objective is convex, so whoever comes near its minimum is right."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l09_fine_tuning.linear_probe import claims

MINIMUM = claims.it_finds_the_minimum
test_it_finds_the_minimum = as_hidden(MINIMUM, linear_probe=0.4)
test_the_weight_decay_counts = as_hidden(claims.the_weight_decay_counts, linear_probe=0.55)
test_the_bias_is_free = as_hidden(claims.the_bias_is_free, linear_probe=1.67)
test_features_may_be_large = as_hidden(claims.features_may_be_large, linear_probe=1.67)
test_what_went_in_is_left_alone = as_hidden(claims.what_went_in_is_left_alone, MINIMUM, linear_probe=0.14)
test_the_layer_has_the_features_dtype = as_hidden(claims.the_layer_has_the_features_dtype, MINIMUM, linear_probe=0.14)
test_it_computes_where_the_features_are = as_hidden(
    claims.it_computes_where_the_features_are, MINIMUM, linear_probe=0.18
)


@pytest.mark.exercise("linear_probe", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other features are classified too."""
    ask_first(MINIMUM, student, probe)
    expect_example(student)
