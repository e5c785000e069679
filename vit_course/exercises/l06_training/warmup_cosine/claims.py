"""`warmup_cosine`: how the learning rate runs.

The oracle is a ramp, and the falling half of torch's Hann window.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real

import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, describe_kind
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from exercise_kit.reasons import Reason
from vit_course.exercises.l06_training import LESSON
from vit_course.exercises.l06_training.loop_cases import expect_one_number

_NEAR_0 = 0.05

warmup_cosine = Exercise("warmup_cosine", LESSON, in_training=InTraining.HIDDEN)


def draw_schedules(probe: Probe) -> tuple[tuple[int, int], ...]:
    """warmup_steps and total_steps of two schedules: a warm-up of a few steps and a descent of some more."""
    if not probe.is_secret:
        return (4, 15), (7, 40)
    drawn = (probe.sizes(2, low=3, high=12) for _ in range(2))
    return tuple((warmup_steps, warmup_steps + falling + 3) for warmup_steps, falling in drawn)


def compute_expected_factors(warmup_steps: int, total_steps: int) -> Tensor:
    """The oracle: the factor before each update, and 0 after the last one, (total_steps + 1,) float64."""
    falling = total_steps - warmup_steps
    ramp = torch.arange(1, warmup_steps + 1, dtype=torch.float64) / max(warmup_steps, 1)
    window = torch.hann_window(2 * falling, dtype=torch.float64)[falling:] if falling else ramp.new_empty(0)
    return torch.cat([ramp, window, ramp.new_zeros(1)])


def _call_at_steps(student: Student, warmup_steps: int, total_steps: int, steps: Sequence[int]) -> Tensor:
    """Ask the student for these steps, float32, which goes on record."""
    found = []
    for step in steps:
        returned = student(step, warmup_steps, total_steps)
        student.forget()
        name = f"{_format_call(student, step, warmup_steps, total_steps)} is"
        try:
            found.append(expect_one_number(returned, name, "a number"))
        except Failure as odd:
            student.note(("odd", odd.seen))
            odd.reason = Reason.KIND  # which the first check is about
            raise
    factors = torch.tensor(found)
    student.note(factors)
    return factors


def _format_call(student: Student, *arguments: int) -> str:
    return f"{student.name}({', '.join(map(str, arguments))})"


def _expect_right_factors(
    student: Student, warmup_steps: int, total_steps: int, steps: Sequence[int], look: str
) -> None:
    found = _call_at_steps(student, warmup_steps, total_steps, steps)
    right = compute_expected_factors(warmup_steps, total_steps)[list(steps)].float()
    for step, here, there in zip(steps, found, right, strict=True):
        if not are_close(here, there):
            factors = ", ".join(f"{number:.3g}" for number in found[:6].tolist())
            several = f"; from step {steps[0]} on it gives {factors}" if len(steps) > 1 else ""
            called = _format_call(student, step, warmup_steps, total_steps)
            raise Failure(f"{called} is {here:.4g}{several}", f"{there:.4g} at step {step}", look)


def expect_rise_and_descent(student: Student, probe: Probe) -> None:
    """The warm-up rises, and the cosine leads down."""
    the_warm_up_rises_in_a_line(student, probe)
    a_cosine_leads_down(student, probe)


@warmup_cosine.check(guard=True, points=0.25, first=expect_rise_and_descent)
def it_gives_a_plain_number(student: Student, probe: Probe) -> None:
    """It gives a plain number, by which the learning rate is multiplied."""
    warmup_steps, total_steps = draw_schedules(probe)[0]
    for step in (warmup_steps - 2, total_steps - 2):
        returned = student(step, warmup_steps, total_steps)
        is_number = isinstance(returned, Real) and not isinstance(returned, bool)
        student.note_instead(("a number" if is_number else type(returned).__name__,))
        if not is_number:
            look = (
                "Does every path end in a `return`?"
                if returned is None
                else "Which library's cos takes a plain number?"
            )
            seen = f"{_format_call(student, step, warmup_steps, total_steps)} is {describe_kind(returned)}"
            raise Failure(seen, "a float; AdamW takes no tensor for a learning rate", look)


@warmup_cosine.check(points=0.5)
def the_warm_up_rises_in_a_line(student: Student, probe: Probe) -> None:
    """In the warm-up it rises in a line from 1 / warmup_steps to 1, so even the first update changes the weights."""
    for warmup_steps, total_steps in draw_schedules(probe):
        look = (
            "Which factor should update number 0 have, if no update is to be wasted, and which the last of the warm-up?"
        )
        _expect_right_factors(student, warmup_steps, total_steps, range(warmup_steps), look)


@warmup_cosine.check(points=0.3)
def a_cosine_leads_down(student: Student, probe: Probe) -> None:
    """After the warm-up it falls from 1 in half a cosine, over the steps that remain."""
    for warmup_steps, total_steps in draw_schedules(probe):
        look = "How many steps of the descent are over at this step, and how many are there in all?"
        steps = range(warmup_steps, total_steps)
        try:
            _expect_right_factors(student, warmup_steps, total_steps, steps, look)
        except Failure as failure:
            if lowest := _find_early_zero(student.record[-1]):
                failure.seen += f", and it is lowest at step {warmup_steps + lowest}, {len(steps) - lowest} too soon"
            raise


def _find_early_zero(found: object) -> int:
    """At which place factors are near 0 and lowest, where they fall to it and stay or rise; else 0."""
    if not isinstance(found, Tensor):
        return 0
    lowest = int(found.argmin())
    falls_no_more = bool((found[: lowest + 1].diff() < 0).all() and (found[lowest:].diff() >= 0).all())
    return lowest if falls_no_more and 0 < lowest < len(found) - 1 and abs(found[lowest]) < _NEAR_0 else 0


@warmup_cosine.check(points=0.2)
def nothing_is_left_at_the_end(student: Student, probe: Probe) -> None:
    """It reaches 0 at step total_steps, when the last update is over, and not before."""
    for warmup_steps, total_steps in draw_schedules(probe):
        look = "Draw half a cosine. Where does it begin, and where does it end?"
        _expect_right_factors(student, warmup_steps, total_steps, (total_steps - 1, total_steps), look)


@warmup_cosine.check(points=0.25)
def a_warm_up_may_be_left_out(student: Student, probe: Probe) -> None:
    """With warmup_steps = 0 it begins with 1."""
    look = "Which of your divisions is by warmup_steps, and is it needed here?"
    (steps,) = probe.sizes(1, low=7, high=15, shown=(12,))
    _expect_right_factors(student, 0, steps, range(steps + 1), look)


@warmup_cosine.check(points=0.25)
def a_warm_up_may_be_all(student: Student, probe: Probe) -> None:
    """A schedule that is all warm-up works too, and gives a number even after its last step."""
    look = "Which of your divisions is by the number of steps that remain, and what if there are none?"
    (steps,) = probe.sizes(1, low=4, high=12, shown=(9,))
    _expect_right_factors(student, steps, steps, range(steps), look)
    (over,) = _call_at_steps(student, steps, steps, (steps,)).tolist()
    if not 0 <= over <= 1:
        raise Failure(f"{_format_call(student, steps, steps, steps)} is {over:.4g}", "a number from 0 to 1", look)


warmup_cosine.example("""
>>> [round(warmup_cosine(step, 2, 6), 3) for step in range(7)]
[0.5, 1.0, 1.0, 0.854, 0.5, 0.146, 0.0]
""")


read_mistakes(warmup_cosine, __name__)
declare_pairs(warmup_cosine, Edits(quick=True))
