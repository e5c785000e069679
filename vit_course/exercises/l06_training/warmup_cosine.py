"""`warmup_cosine`: how the learning rate runs.

The oracle is a ramp, and the falling half of torch's Hann window. The known mistakes bend one part of a right
schedule, which is read off the oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import close, kind_of
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
from exercise_kit.engine.verdict import Failure
from exercise_kit.reasons import Reason
from vit_course.exercises.l06_training import LESSON
from vit_course.exercises.l06_training.loop_cases import number_in

CASES = ((4, 15), (7, 40))  # warmup_steps, total_steps

warmup_cosine = Exercise("warmup_cosine", LESSON, in_training=InTraining.HIDDEN)


def factors_of(warmup_steps: int, total_steps: int) -> Tensor:
    """The oracle: the factor before each update, and 0 after the last one, (total_steps + 1,) float64."""
    falling = total_steps - warmup_steps
    ramp = torch.arange(1, warmup_steps + 1, dtype=torch.float64) / max(warmup_steps, 1)
    window = torch.hann_window(2 * falling, dtype=torch.float64)[falling:] if falling else ramp.new_empty(0)
    return torch.cat([ramp, window, ramp.new_zeros(1)])


def _factors(student: Student, warmup_steps: int, total_steps: int, steps: Sequence[int]) -> Tensor:
    """What the student gives for these steps, float32, which goes on record."""
    found = []
    for step in steps:
        returned = student(step, warmup_steps, total_steps)
        del student.record[-1]
        name = f"{_called(student, step, warmup_steps, total_steps)} is"
        try:
            found.append(number_in(returned, name, "a number"))
        except Failure as odd:
            student.record.append(("odd", odd.seen))
            odd.reason = Reason.KIND  # which the first check is about
            raise
    factors = torch.tensor(found)
    student.record.append(factors)
    return factors


def _called(student: Student, *arguments: int) -> str:
    return f"{student.name}({', '.join(map(str, arguments))})"


def _expect_factors(student: Student, warmup_steps: int, total_steps: int, steps: Sequence[int], look: str) -> None:
    found = _factors(student, warmup_steps, total_steps, steps)
    right = factors_of(warmup_steps, total_steps)[list(steps)].float()
    for step, here, there in zip(steps, found, right, strict=True):
        if not close(here, there):
            factors = ", ".join(f"{number:.3g}" for number in found[:6].tolist())
            several = f"; from step {steps[0]} on it gives {factors}" if len(steps) > 1 else ""
            called = _called(student, step, warmup_steps, total_steps)
            raise Failure(f"{called} is {here:.4g}{several}", f"{there:.4g} at step {step}", look)


@warmup_cosine.check(guard=True)
def it_gives_a_plain_number(student: Student, probe: Probe) -> None:
    """It gives a plain number, by which the learning rate is multiplied."""
    for step in (2, 9):
        returned = student(step, *CASES[0])
        is_number = isinstance(returned, Real) and not isinstance(returned, bool)
        student.record[-1:] = [("a number" if is_number else type(returned).__name__,)]
        if not is_number:
            look = (
                "Does every path end in a `return`?"
                if returned is None
                else "Which library's cos takes a plain number?"
            )
            seen = f"{_called(student, step, *CASES[0])} is {kind_of(returned)}"
            raise Failure(seen, "a float; AdamW takes no tensor for a learning rate", look)


@warmup_cosine.check
def the_warm_up_rises_in_a_line(student: Student, probe: Probe) -> None:
    """In the warm-up it rises in a line from 1 / warmup_steps to 1, so even the first update changes the weights."""
    for warmup_steps, total_steps in CASES:
        look = (
            "Which factor should update number 0 have, if no update is to be wasted, and which the last of the warm-up?"
        )
        _expect_factors(student, warmup_steps, total_steps, range(warmup_steps), look)


@warmup_cosine.check
def a_cosine_leads_down(student: Student, probe: Probe) -> None:
    """After the warm-up it falls from 1 in half a cosine, over the steps that remain."""
    for warmup_steps, total_steps in CASES:
        look = "How many steps of the descent are over at this step, and how many are there in all?"
        _expect_factors(student, warmup_steps, total_steps, range(warmup_steps, total_steps), look)


@warmup_cosine.check
def nothing_is_left_at_the_end(student: Student, probe: Probe) -> None:
    """It reaches 0 at step total_steps, when the last update is over, and not before."""
    for warmup_steps, total_steps in CASES:
        look = "Draw half a cosine. Where does it begin, and where does it end?"
        _expect_factors(student, warmup_steps, total_steps, (total_steps - 1, total_steps), look)


@warmup_cosine.check
def a_warm_up_may_be_left_out(student: Student, probe: Probe) -> None:
    """With warmup_steps = 0 it begins with 1."""
    look = "Which of your divisions is by warmup_steps, and is it needed here?"
    _expect_factors(student, 0, 12, range(12), look)


@warmup_cosine.check
def a_warm_up_may_be_all(student: Student, probe: Probe) -> None:
    """A schedule that is all warm-up works too, and gives a number even after its last step."""
    look = "Which of your divisions is by the number of steps that remain, and what if there are none?"
    _expect_factors(student, 9, 9, range(9), look)
    (over,) = _factors(student, 9, 9, (9,)).tolist()
    if not 0 <= over <= 1:
        raise Failure(f"{_called(student, 9, 9, 9)} is {over:.4g}", "a number from 0 to 1", look)


warmup_cosine.example("""
>>> [round(warmup_cosine(step, 2, 6), 3) for step in range(7)]
[0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
""")


SCHEDULE = "06_training, Warm-up and cosine"


def _right(step: int, warmup_steps: int, total_steps: int) -> float:
    return float(factors_of(warmup_steps, total_steps)[step])


def _glide(warmed: int, step: int, span: int) -> float:
    """Half a cosine that starts at step ``warmed`` and takes ``span`` steps."""
    return (1 + math.cos(math.pi * (step - warmed) / max(span, 1))) / 2


def _progress(step: int, warmup_steps: int, total_steps: int) -> float:
    return (step - warmup_steps) / max(total_steps - warmup_steps, 1)


@warmup_cosine.misconception("What does an update do if its learning rate is 0?", SCHEDULE)
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
    """The warm-up is computed with //, so it stays at 0 until its last step."""
    return (step + 1) // warmup_steps if step < warmup_steps else _right(step, warmup_steps, total_steps)


@warmup_cosine.misconception("What does // do with a number below 1?", SCHEDULE)
def whole_numbers_in_the_descent(step: int, warmup_steps: int, total_steps: int) -> float:
    """The share of the descent is computed with //, so the rate stays at 1 until the end."""
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


@warmup_cosine.misconception("Can the warm-up reach 1 while a cosine lowers it?", SCHEDULE)
def warm_up_times_cosine(step: int, warmup_steps: int, total_steps: int) -> float:
    """Warm-up and cosine are multiplied, so the rate never reaches 1."""
    return min((step + 1) / max(warmup_steps, 1), 1.0) * _glide(0, step, total_steps)


@warmup_cosine.misconception("Which factor has the first step after the warm-up?", SCHEDULE)
def the_descent_a_step_ahead(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent is one step ahead, as if the warm-up's last step were its first, and ends a step too early."""
    return _right(step if step < warmup_steps else min(step + 1, total_steps), warmup_steps, total_steps)


@warmup_cosine.misconception("How many updates are made with a learning rate of 0?", SCHEDULE)
def the_last_update_wasted(step: int, warmup_steps: int, total_steps: int) -> float:
    """The descent is one step too short, so the last update has a rate of 0."""
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
    """The rate falls along a straight line, and not along a cosine."""
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


Factor = Callable[[int, int, int], float]


def _made(
    step: int,
    warmup_steps: int,
    total_steps: int,
    *,
    rise: Factor = _right,
    fall: Factor = _right,
    postprocess: Callable[[float], Any] = lambda factor: factor,
) -> Any:
    rises = step < warmup_steps or (rise is the_warm_up_overshoots and step == warmup_steps)
    return postprocess((rise if rises else fall)(step, warmup_steps, total_steps))


_RISES = (
    the_first_update_wasted,
    the_warm_up_never_arrives,
    the_warm_up_overshoots,
    whole_numbers_in_the_warm_up,
)
_FALLS = (
    whole_numbers_in_the_descent,
    a_cosine_over_all_steps,
    a_cosine_that_began_with_the_warm_up,
    the_descent_a_step_ahead,
    the_last_update_wasted,
    a_quarter_of_a_wave,
    a_whole_wave,
    a_cosine_below_zero,
    a_cosine_upside_down,
    a_line_down,
    degrees,
)

declare(
    warmup_cosine,
    Parts(
        _made,
        {
            **{each: {"rise": each} for each in _RISES},
            **{each: {"fall": each} for each in _FALLS},
            no_warm_up: {"rise": no_warm_up, "fall": no_warm_up},
            warm_up_times_cosine: {"rise": warm_up_times_cosine, "fall": warm_up_times_cosine},
            divided_by_no_descent: {"rise": divided_by_no_descent, "fall": divided_by_no_descent},
            divided_by_no_warm_up: {"rise": divided_by_no_warm_up, "fall": divided_by_no_warm_up},
            a_tensor_for_a_number: {"postprocess": torch.tensor},
        },
        quick=True,
    ),
)
