"""Hidden checks of ``count_parameters``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l05_vit.count_parameters import claims

RIGHT = claims.the_configs_choices_count
test_every_part_is_counted_once = as_hidden(claims.every_part_is_counted_once, count_parameters=0.5)
test_a_block_costs_what_it_should = as_hidden(claims.a_block_costs_what_it_should, count_parameters=0.5)
test_the_configs_choices_count = as_hidden(RIGHT, count_parameters=0.5)
test_nothing_is_built = as_hidden(claims.nothing_is_built, count_parameters=0.5)
test_the_count_is_an_int = as_hidden(claims.the_count_is_an_int, RIGHT, count_parameters=0.25)


@pytest.mark.exercise("count_parameters", points=0.5)
def test_both_ends_are_counted(student, probe):
    """Without any block (depth 0) there remain patch embedding, class token, positions, norm and head."""
    config = claims.small_model(probe, claims.WIDE_MODEL, depth=0)
    claims.expect_count(student, config, f"a model of depth 0, embed_dim {config.embed_dim}")


@pytest.mark.exercise("count_parameters", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
