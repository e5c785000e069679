"""Hidden checks of ``Mlp``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l04_block.mlp import claims

RIGHT = claims.a_gelu_stands_between_the_linears
test_a_gelu_stands_between_the_linears = as_hidden(RIGHT, Mlp=1)
test_the_gelu_is_the_exact_one = as_hidden(claims.the_gelu_is_the_exact_one, Mlp=0.5)
test_any_tokens_and_either_mode_will_do = as_hidden(claims.any_tokens_and_either_mode_will_do, Mlp=0.25)
test_it_gives_the_same_twice = as_hidden(claims.it_gives_the_same_twice, RIGHT, Mlp=0.25)
test_every_layer_learns = as_hidden(claims.every_layer_learns, Mlp=0.5)
test_the_gradient_reaches_the_tokens = as_hidden(claims.the_gradient_reaches_the_tokens, RIGHT, Mlp=0.25)


@pytest.mark.exercise("Mlp", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
