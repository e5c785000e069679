"""Hidden checks of ``warmup_cosine``: stretches of schedules of drawn lengths, compared with the reference."""

from numbers import Real

import pytest
import torch

from exercise_kit.engine.compare import close, kind_of
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l06_training.loop_cases import number_in


def _expect(student, reference, warmup_steps, total_steps, steps, look):
    found = []
    for step in steps:
        called = f"warmup_cosine({step}, {warmup_steps}, {total_steps}) is"
        found.append(number_in(student(step, warmup_steps, total_steps), called, "a number"))
    for step, here in zip(steps, found, strict=True):
        there = reference.warmup_cosine(step, warmup_steps, total_steps)
        if not close(torch.tensor(here), torch.tensor(there)):
            raise Failure(f"warmup_cosine({step}, {warmup_steps}, {total_steps}) is {here:.4g}", f"{there:.4g}", look)


def _sizes(probe):
    """A warm-up of a few steps and a descent of some more."""
    warmup_steps, falling = probe.sizes(2, low=3, high=12)
    return warmup_steps, warmup_steps + falling + 3


@pytest.mark.exercise("warmup_cosine", points=0.5)
def test_the_warm_up_is_a_line(student, reference, probe):
    """Up to the end of the warm-up it rises in a line, from 1 / warmup_steps to 1, whatever comes after it."""
    for _ in range(2):
        warmup_steps, total_steps = _sizes(probe)
        look = "Which factor should the first update have, and which the last of the warm-up?"
        _expect(student, reference, warmup_steps, total_steps, range(warmup_steps), look)


@pytest.mark.exercise("warmup_cosine", points=0.5)
def test_half_a_cosine_leads_down(student, reference, probe):
    """From the end of the warm-up on it falls from 1 in half a cosine, over the steps that remain, to 0 at the end."""
    for _ in range(2):
        warmup_steps, total_steps = _sizes(probe)
        look = "How many steps of the descent are over at this step, and how many are there in all?"
        _expect(student, reference, warmup_steps, total_steps, range(warmup_steps, total_steps + 1), look)


@pytest.mark.exercise("warmup_cosine", points=0.25)
def test_a_schedule_without_warm_up(student, reference, probe):
    """With a warm-up of 0 steps it begins with 1."""
    (total_steps,) = probe.sizes(1, low=7, high=15)
    look = "Which of your divisions is by warmup_steps?"
    _expect(student, reference, 0, total_steps, range(total_steps + 1), look)


@pytest.mark.exercise("warmup_cosine", points=0.25)
def test_a_schedule_that_is_all_warm_up(student, reference, probe):
    """A schedule that is all warm-up rises to 1, and gives a number even after its last step."""
    (steps,) = probe.sizes(1, low=4, high=12)
    look = "Which of your divisions is by the number of steps that remain?"
    _expect(student, reference, steps, steps, range(steps), look)
    over = number_in(student(steps, steps, steps), f"warmup_cosine({steps}, {steps}, {steps}) is", "a number")
    if not 0 <= over <= 1:
        raise Failure(f"warmup_cosine({steps}, {steps}, {steps}) is {over:.4g}", "a number from 0 to 1", look)


@pytest.mark.exercise("warmup_cosine", points=0.25)
def test_it_is_a_plain_number(student, reference, probe):
    """Rising and falling, the factor is right and a plain number: AdamW takes no tensor for a learning rate."""
    warmup_steps, total_steps = _sizes(probe)
    steps = (warmup_steps - 2, total_steps - 2)
    for step in steps:
        returned = student(step, warmup_steps, total_steps)
        if not isinstance(returned, Real) or isinstance(returned, bool):
            look = "Which library's cos takes a plain number?"
            raise Failure(f"warmup_cosine gave {kind_of(returned)} at step {step}", "a float", look)
    _expect(student, reference, warmup_steps, total_steps, steps, "Follow your formula with a pencil at this step.")


@pytest.mark.exercise("warmup_cosine", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    warmup_steps, total_steps = _sizes(probe)
    _expect(student, reference, warmup_steps, total_steps, (0, total_steps - 1), "Follow your formula with a pencil.")
    expect_example(student)
