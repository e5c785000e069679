"""Hidden checks of ``warmup_cosine``: stretches of schedules of drawn lengths."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l06_training.warmup_cosine import claims


def up_and_down(student, probe):
    claims.the_warm_up_rises_in_a_line(student, probe)
    claims.a_cosine_leads_down(student, probe)


test_the_warm_up_rises_in_a_line = as_hidden(claims.the_warm_up_rises_in_a_line, warmup_cosine=0.5)
test_a_cosine_leads_down = as_hidden(claims.a_cosine_leads_down, warmup_cosine=0.3)
test_nothing_is_left_at_the_end = as_hidden(claims.nothing_is_left_at_the_end, warmup_cosine=0.2)
test_a_warm_up_may_be_left_out = as_hidden(claims.a_warm_up_may_be_left_out, warmup_cosine=0.25)
test_a_warm_up_may_be_all = as_hidden(claims.a_warm_up_may_be_all, warmup_cosine=0.25)
test_it_gives_a_plain_number = as_hidden(claims.it_gives_a_plain_number, up_and_down, warmup_cosine=0.25)


@pytest.mark.exercise("warmup_cosine", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    up_and_down(student, probe)
    expect_example(student)
