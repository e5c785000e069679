"""Hidden checks of ``rotary_2d``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.rotary_2d import claims

RIGHT = claims.every_pair_is_turned_by_its_angle
test_every_pair_is_turned_by_its_angle = as_hidden(RIGHT, rotary_2d=1.35)
test_dot_products_tell_how_far_apart = as_hidden(claims.dot_products_tell_how_far_apart, rotary_2d=0.5)
test_what_stands_in_front_is_not_turned = as_hidden(claims.what_stands_in_front_is_not_turned, RIGHT, rotary_2d=0.5)
test_gradients_reach_query_and_key = as_hidden(claims.gradients_reach_query_and_key, RIGHT, rotary_2d=0.75)
test_dtype_and_layout_do_not_matter = as_hidden(claims.dtype_and_layout_do_not_matter, rotary_2d=0.35)
test_sizes_that_do_not_fit_are_refused = as_hidden(claims.sizes_that_do_not_fit_are_refused, RIGHT, rotary_2d=0.15)
test_it_computes_where_the_query_is = as_hidden(claims.it_computes_where_the_query_is, RIGHT, rotary_2d=0.1)


@pytest.mark.exercise("rotary_2d", points=0.1)
def test_every_call_stands_alone(student, probe):
    """Every call gives the result for its own inputs, and does not change query and key."""
    query, key, grid_size = claims.inputs_of(probe)
    claims.expect_angles(student, query, key, grid_size)
    expect_left_alone(student)
    expect_result_of_its_own(student, (query, key, grid_size), (key, query, grid_size))


@pytest.mark.exercise("rotary_2d", points=0.15)
def test_angles_are_computed_in_float64(student, probe):
    """Also where query and key are bfloat16, the patches of a long grid are turned by their right angles."""
    long = 40 + probe.sizes(1)[0]
    for grid_size in ((long, 2), (2, long)):
        inputs = (each.bfloat16() for each in claims.drawn(probe, grid_size, 1, 12))
        claims.expect_angles(student, *inputs, grid_size)


@pytest.mark.exercise("rotary_2d", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
