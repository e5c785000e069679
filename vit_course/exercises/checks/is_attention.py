"""Public checks of lesson 03: a test that the student writes, tested with right and with wrong attention.

A test that says no to everything would catch every mistake; so the mistakes are not asked about before it has
let the right ones pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, NotWritten
from vit_course.exercises.checks import attends
from vit_course.exercises.checks.attention import LESSON

Attend = Callable[..., Any]
TRIES = 3

is_attention = Exercise("is_attention", LESSON, in_training=InTraining.UNSEEN)


@is_attention.check
def right_attention_passes(student: Student, probe: Probe) -> None:
    """Right attention passes, however it was computed."""
    for attend in attends.RIGHT:
        tries = [_judge(student, attend, right=True, seed=seed) for seed in range(TRIES)]
        failures = [failure for failure in tries if failure]
        if 0 < len(failures) < TRIES:
            failures[0].seen += f", in {len(failures)} of {TRIES} tries"
        _tell(student, failures)


@is_attention.check(needs=right_attention_passes)
def it_catches_wrong_shapes(student: Student, probe: Probe) -> None:
    """It catches output or weights of a wrong shape."""
    _expect_caught(
        student, "shape", "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_a_wrong_axis(student: Student, probe: Probe) -> None:
    """It catches a softmax over the queries, over everything, or none at all."""
    _expect_caught(student, "axis", "Which sums of the weights do you know without computing any attention?")


@is_attention.check(needs=right_attention_passes)
def it_catches_missing_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were not scaled."""
    _expect_caught(
        student, "no scale", "For which small query and keys can you work out the weights with pencil and paper?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_other_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were scaled by something else than the root of head_dim."""
    _expect_caught(
        student, "other scale", "Which of your sizes are equal by accident, so that one can stand for the other?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_other_values(student: Student, probe: Probe) -> None:
    """It catches an output that is no mean of the values under the weights."""
    _expect_caught(student, "values", "When you know weights and values, what must the output be?")


@is_attention.check(needs=right_attention_passes)
def it_catches_a_mask(student: Student, probe: Probe) -> None:
    """It catches a mask that hides keys by their place."""
    _expect_caught(
        student, "mask", "What happens to right attention when the keys are shuffled, together with their values?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_foreign_weights(student: Student, probe: Probe) -> None:
    """It catches weights that do not belong to the output."""
    _expect_caught(
        student, "belonging", "Does your test look at output and weights apart, or also at the two together?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_mixed_batches(student: Student, probe: Probe) -> None:
    """It catches images of a batch that get mixed."""
    _expect_caught(student, "batch", "Does the answer for one image change when the other images of the batch do?")


@is_attention.check(needs=right_attention_passes)
def it_catches_a_constant_output(student: Student, probe: Probe) -> None:
    """It catches an output that does not depend on the query."""
    _expect_caught(student, "constant", "Which numbers would tell two different queries apart?")


@is_attention.check(needs=right_attention_passes)
def it_catches_what_is_no_softmax(student: Student, probe: Probe) -> None:
    """It catches weights that sum to one but are no softmax of the scores."""
    _expect_caught(student, "not a softmax", "Which one example, worked out by hand, would nail down the numbers?")


is_attention.example("""
>>> is_attention(lambda query, key, value: (value, query))
False
""")


def _expect_caught(student: Student, family: str, look: str) -> None:
    wrong = attends.WRONG[family]
    _tell(student, [failure for attend in wrong if (failure := _judge(student, attend, right=False, look=look))])


def _tell(student: Student, failures: list[Failure]) -> None:
    """Raise the first failure, after the test has been asked about one attend of every family.

    These answers go on record, so that a likely cause is named only where the whole pattern fits.
    """
    if failures:
        for family in attends.WRONG.values():
            _judge(student, family[0], right=False)
        raise failures[0]


def _judge(student: Student, attend: Attend, right: bool, look: str = "", seed: int = 0) -> Failure | None:
    """Ask the student's test about one attend; the failure when it answers wrong.

    ``seed`` is set first, so that a test that draws without a seed draws the same for every attend.
    """
    described = f"an attend that {'is right: it ' if right else ''}{attend.__doc__}"
    torch.manual_seed(seed)
    try:
        answer = student(attend)
    except NotWritten:
        raise
    except Failure as failure:
        asks = "A fact may turn out false, but is_attention should still answer. What could it return then?"
        seen = f"{failure.seen}; it was asked about {described}"
        return Failure(seen, str(right), failure.look if right else asks)
    if not _is_bool(answer):
        seen = "None" if answer is None else f"a {type(answer).__name__}"
        line = "Does every path end in a `return`?" if answer is None else "What does your `return` line give back?"
        return Failure(f"is_attention(attend) gives {seen}", "True or False", line)
    if bool(answer) is right:
        return None
    far = "Print what your test compares, for your own attention. Is a fact of yours wrong, or only too strict?"
    return Failure(f"is_attention(attend) is {bool(answer)} for {described}", str(right), look or far)


def _is_bool(answer: object) -> bool:
    """Whether it is True or False, be it as a tensor or a number of numpy."""
    if isinstance(answer, torch.Tensor):
        return answer.dtype == torch.bool and answer.numel() == 1
    return type(answer).__name__ in ("bool", "bool_")
