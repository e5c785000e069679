"""Hidden checks of ``add_registers``."""

import pytest

from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.expect import expect_left_alone, expect_result_of_its_own
from exercise_kit.judge.claims import as_hidden, ask_first
from vit_course.exercises.l10_modern.add_registers import claims

RIGHT = claims.registers_come_behind_it_and_patches_last
test_the_class_token_stays_first = as_hidden(claims.the_class_token_stays_first, add_registers=0.2)
test_registers_come_behind_it_and_patches_last = as_hidden(RIGHT, add_registers=0.87)
test_everything_can_be_learned = as_hidden(claims.everything_can_be_learned, add_registers=0.68)
test_dtype_and_layout_do_not_matter = as_hidden(claims.dtype_and_layout_do_not_matter, add_registers=0.1)
test_it_computes_where_the_tokens_are = as_hidden(claims.it_computes_where_the_tokens_are, RIGHT, add_registers=0.05)


@pytest.mark.exercise("add_registers", points=0.05)
def test_every_call_stands_alone(student, probe, device):
    """Every call gives the result for its own inputs, on their device, and does not change them."""
    ask_first(RIGHT, student, probe)
    sizes = probe.sizes(4)
    first, other = (tuple(each.to(device) for each in claims.drawn(probe, *sizes)) for _ in range(2))
    student(*first)
    expect_left_alone(student)
    expect_result_of_its_own(student, first, other)


@pytest.mark.exercise("add_registers", points=0.05)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    ask_first(RIGHT, student, probe)
    expect_example(student)
