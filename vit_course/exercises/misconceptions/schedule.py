"""Known mistakes of lesson 06: the schedule. Each bends one part of a right one, which is read off the oracle."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.schedule import factors_of, warmup_cosine

SCHEDULE = "06_cifar, Warm up, then glide"


def _right(step: int, warmup_steps: int, total_steps: int) -> float:
    return float(factors_of(warmup_steps, total_steps)[step])


def _glide(warmed: int, step: int, span: int) -> float:
    """Half a cosine that starts at step ``warmed`` and takes ``span`` steps."""
    return (1 + math.cos(math.pi * (step - warmed) / max(span, 1))) / 2


def _progress(step: int, warmup_steps: int, total_steps: int) -> float:
    return (step - warmup_steps) / max(total_steps - warmup_steps, 1)


@warmup_cosine.misconception("What does an update do whose learning rate is 0?", SCHEDULE)
def the_first_update_wasted(step: int, warmup_steps: int, total_steps: int) -> float:
    """The warm-up begins with 0, so the first update changes nothing."""
    return step / warmup_steps if step < warmup_steps else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("At which step of the warm-up is the factor 1?", SCHEDULE)
def the_warm_up_never_arrives(step: int, warmup_steps: int, total_steps: int) -> float:
    """The warm-up is divided by one step too many, so it ends below 1."""
    return (step + 1) / (warmup_steps + 1) if step < warmup_steps else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("At which step is the warm-up over?", SCHEDULE)
def the_warm_up_overshoots(step: int, warmup_steps: int, total_steps: int) -> float:
    """The warm-up has one step too many, in which the factor is above 1."""
    return (step + 1) / warmup_steps if step <= warmup_steps else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("What does // do with a number below 1?", SCHEDULE)
def whole_numbers_in_the_warm_up(step: int, warmup_steps: int, total_steps: int) -> float:
    """The warm-up is divided by //, so it stays at 0 until its last step."""
    return (step + 1) // warmup_steps if step < warmup_steps else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("What does // do with a number below 1?", SCHEDULE)
def whole_numbers_in_the_descent(step: int, warmup_steps: int, total_steps: int) -> float:
    """The share of the descent is divided by //, so the rate stays at 1 until all is over."""
    done = step >= total_steps > warmup_steps
    return _right(step, warmup_steps, total_steps) if step < warmup_steps or done else 1.0


@warmup_cosine.misconception("What happens in the first warmup_steps steps?", SCHEDULE)
def no_warm_up(step: int, warmup_steps: int, total_steps: int) -> float:
    """There is no warm-up: the cosine leads down from the first step."""
    return _glide(0, step, total_steps)


@warmup_cosine.misconception("How long is the descent, if the warm-up takes a part of all steps?", SCHEDULE)
def a_cosine_over_all_steps(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent is stretched over total_steps, though the warm-up has used some of them, so it never reaches 0."""
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else _glide(warmup_steps, step, total_steps)


@warmup_cosine.misconception("How many steps of the descent are over when the warm-up ends?", SCHEDULE)
def a_cosine_that_began_with_the_warm_up(step: int, warmup_steps: int, total_steps: int) -> float:
    """The cosine has run since step 0, so the rate jumps down where the warm-up ends."""
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else _glide(0, step, total_steps)


@warmup_cosine.misconception("Does the warm-up rise to 1 when a cosine pulls it down?", SCHEDULE)
def warm_up_times_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Warm-up and cosine are multiplied, so the rate never reaches 1."""
    return min((step + 1) / max(warmup_steps, 1), 1.0) * _glide(0, step, total_steps)


@warmup_cosine.misconception("Which factor has the first step after the warm-up?", SCHEDULE)
def the_descent_a_step_ahead(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent is one step ahead, as if the warm-up's last step were its first, and ends a step too early."""
    return _right(step if step < warmup_steps else min(step + 1, total_steps), warmup_steps, total_steps)


@warmup_cosine.misconception("How many updates are made with a learning rate of 0?", SCHEDULE)
def the_last_update_wasted(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent takes one step less than there are, so the last update has a rate of 0."""
    if step < warmup_steps:
        return _right(step, warmup_steps, total_steps)
    return _glide(warmup_steps, min(step, total_steps - 1), total_steps - warmup_steps - 1)


@warmup_cosine.misconception("Where is a cosine 0, and where is it -1?", SCHEDULE)
def a_quarter_of_a_wave(step: int, warmup_steps: int, total_steps: int) -> float:
    """The rate falls along the first quarter of a cosine, from 1 to 0, which starts slowly and ends steeply."""
    progress = _progress(step, warmup_steps, total_steps)
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else math.cos(math.pi / 2 * progress)


@warmup_cosine.misconception("How far round the circle is half a wave?", SCHEDULE)
def a_whole_wave(step: int, warmup_steps: int, total_steps: int) -> float:
    """The cosine makes a whole wave, so the rate falls to 0 and rises again."""
    progress = _progress(step, warmup_steps, total_steps)
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else _wave(progress)


def _wave(progress: float) -> float:
    return (1 + math.cos(2 * math.pi * progress)) / 2


@warmup_cosine.misconception("Between which two numbers does a cosine run?", SCHEDULE, InTraining.WORSE)
def a_cosine_below_zero(step: int, warmup_steps: int, total_steps: int) -> float:
    """The bare cosine is taken, which runs from 1 to -1, so that training climbs uphill in its second half."""
    progress = _progress(step, warmup_steps, total_steps)
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else math.cos(math.pi * progress)


@warmup_cosine.misconception("Does your curve lead down or up after the warm-up?", SCHEDULE)
def a_cosine_upside_down(step: int, warmup_steps: int, total_steps: int) -> float:
    """The cosine is subtracted, so the rate drops to 0 where the warm-up ends and rises from there."""
    right = _right(step, warmup_steps, total_steps)
    return right if step < warmup_steps else 1 - right


@warmup_cosine.misconception("Which curve is straight, and which is asked for?", SCHEDULE)
def a_line_down(step: int, warmup_steps: int, total_steps: int) -> float:
    """The rate falls in a line, and not in a cosine."""
    progress = _progress(step, warmup_steps, total_steps)
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else 1 - progress


@warmup_cosine.misconception("In which unit does math.cos read an angle?", SCHEDULE)
def degrees(step: int, warmup_steps: int, total_steps: int) -> float:
    """The angle runs from 0 to 180, and the rate leaps up and down from one step to the next."""
    progress = _progress(step, warmup_steps, total_steps)
    return _right(step, warmup_steps, total_steps) if step < warmup_steps else (1 + math.cos(180 * progress)) / 2


@warmup_cosine.misconception("What is 1 / warmup_steps when there is no warm-up?", SCHEDULE, InTraining.UNSEEN)
def divided_by_no_warm_up(step: int, warmup_steps: int, total_steps: int) -> float:
    """The warm-up's share is computed at every step, which divides by zero when there is no warm-up."""
    share = (step + 1) / warmup_steps
    return share if share <= 1 else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("How many steps remain when all of them are warm-up?", SCHEDULE, InTraining.UNSEEN)
def divided_by_no_descent(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent's share is computed even where no step remains for it, which divides by zero."""
    progress = (step - warmup_steps) / (total_steps - warmup_steps)
    return (
        _right(step, warmup_steps, total_steps)
        if progress < 0
        else _glide(0, step - warmup_steps, total_steps - warmup_steps)
    )


@warmup_cosine.misconception("Which library's cos takes a plain number?", SCHEDULE, InTraining.UNSEEN)
def a_tensor_for_a_number(step: int, warmup_steps: int, total_steps: int) -> Tensor:
    """The factor is a tensor with one element, where a plain number is asked for."""
    return torch.tensor(_right(step, warmup_steps, total_steps))
