"""Hidden checks of is_attention: the student's test, asked about right and wrong attention in one go."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l03_attention.is_attention import claims

test_it_catches_wrong_shapes = as_hidden(claims.it_catches_wrong_shapes, is_attention=0.5)
test_it_catches_a_wrong_axis = as_hidden(claims.it_catches_a_wrong_axis, is_attention=0.75)
test_it_catches_missing_scaling = as_hidden(claims.it_catches_missing_scaling, is_attention=0.25)
test_it_catches_other_scaling = as_hidden(claims.it_catches_other_scaling, is_attention=1)
test_it_catches_altered_queries_and_keys = as_hidden(claims.it_catches_altered_queries_and_keys, is_attention=0.5)
test_it_catches_other_values = as_hidden(claims.it_catches_other_values, is_attention=1)
test_it_catches_a_mask = as_hidden(claims.it_catches_a_mask, is_attention=1.25)
test_it_catches_foreign_weights = as_hidden(claims.it_catches_foreign_weights, is_attention=0.75)
test_it_catches_mixed_batches = as_hidden(claims.it_catches_mixed_batches, is_attention=0.75)
test_it_catches_a_constant_output = as_hidden(claims.it_catches_a_constant_output, is_attention=0.25)
test_it_catches_what_is_no_softmax = as_hidden(claims.it_catches_what_is_no_softmax, is_attention=0.75)


@pytest.mark.exercise("is_attention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right attention passes."""
    ask_first(claims.it_catches_wrong_shapes, student, probe)
    expect_example(student)
