"""Hidden checks of split_heads and merge_heads."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l03_attention.split_heads import claims

SPLIT = claims.a_head_gets_a_slice_of_every_token
test_a_head_gets_a_slice_of_every_token = as_hidden(SPLIT, split_heads=1.5)
test_a_token_gets_its_pieces_back = as_hidden(claims.a_token_gets_its_pieces_back, split_heads=1.5)
test_one_of_anything_will_do = as_hidden(claims.one_of_anything_will_do, split_heads=0.75)
test_scattered_memory_and_any_dtype_will_do = as_hidden(claims.scattered_memory_and_any_dtype_will_do, split_heads=1)
test_a_number_of_heads_that_does_not_fit_is_refused = as_hidden(
    claims.a_number_of_heads_that_does_not_fit_is_refused, SPLIT, split_heads=0.5
)
test_the_gradient_finds_its_way_back = as_hidden(claims.the_gradient_finds_its_way_back, split_heads=0.25)


@pytest.mark.exercise("split_heads", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The examples in both docstrings give the results that they show, and other numbers give the right results too."""
    x, num_heads = claims.some_tokens(probe)
    claims.expect_split(student, x, num_heads)
    claims.expect_merged(student, claims.heads_of(x, num_heads))
    expect_example(student)


@pytest.mark.exercise("split_heads", points=0.25)
def test_they_work_where_their_inputs_lie(student, probe, device):
    """The results lie on the device of the inputs, those are left as they were, and no later call changes a result."""
    x, num_heads = claims.some_tokens(probe)
    x = x.to(device)
    claims.expect_split(student, x, num_heads)
    claims.expect_merged(student, claims.heads_of(x, num_heads))
    expect_left_alone(student)
    expect_result_of_its_own(student, (x, num_heads), (x + 1, num_heads))
