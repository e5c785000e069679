"""Hidden checks of ``add_class_token``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l02_positions.add_class_token import claims

RIGHT = claims.every_token_gets_its_own_position
test_the_class_token_stands_first = as_hidden(claims.the_class_token_stands_first, add_class_token=0.9)
test_every_token_gets_its_own_position = as_hidden(RIGHT, add_class_token=0.9)
test_everything_can_be_learned = as_hidden(claims.everything_can_be_learned, RIGHT, add_class_token=0.5)
test_double_tokens_stay_double = as_hidden(claims.double_tokens_stay_double, add_class_token=0.25)
test_a_wrong_number_of_positions_is_refused = as_hidden(
    claims.a_wrong_number_of_positions_is_refused, RIGHT, add_class_token=0.45
)
test_it_computes_where_the_tokens_are = as_hidden(claims.it_computes_where_the_tokens_are, RIGHT, add_class_token=0.2)


@pytest.mark.exercise("add_class_token", points=0.5)
def test_sizes_of_any_kind_are_right(student, probe):
    """One image or many, one token or many, one dimension or many, equal numbers of all three: all come out right."""
    batch, num_patches = probe.sizes(2, low=4)
    long = probe.choice((11, 17, 19))
    for sizes in ((1, num_patches, long), (batch, 1, 2), (batch, long, 1), (batch, batch, batch)):
        claims.expect_right(student, claims.some_inputs(probe, *sizes))


@pytest.mark.exercise("add_class_token", points=0.15)
def test_every_call_stands_alone(student, probe, device):
    """Every call answers for what it is given, on its device, and leaves all three inputs as they were."""
    batch, *sizes = probe.sizes(3)
    draws = [claims.some_inputs(probe, held, *sizes) for held in (batch, batch, 1)]
    first, other, one = (tuple(each.to(device) for each in inputs) for inputs in draws)
    for inputs in (first, other, one):
        claims.expect_right(student, inputs)
    expect_left_alone(student)
    expect_result_of_its_own(student, first, other)


@pytest.mark.exercise("add_class_token", points=0.15)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
