"""Which mistake is named: the one that gives the same answers, and none where nothing fits."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.evaluate_check import evaluate_check
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.name_failures import name_failures
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure
from exercise_kit.reasons import Reason

CALLS: list[str] = []


def make_scale_exercise() -> Exercise:
    """``scale(x)`` should give 2 * x; four known mistakes, of which two agree on positive numbers."""
    exercise = Exercise("scale", "00_start")

    @exercise.check
    def positive_numbers_double(student: Student, probe: Probe) -> None:
        """Positive numbers double."""
        x = probe.uniform(2, 3, low=1, high=2)
        expect_equal(student(x), 2 * x, "scale")

    @exercise.check
    def negative_numbers_double(student: Student, probe: Probe) -> None:
        """Negative numbers double."""
        x = -probe.uniform(2, 3, low=1, high=2)
        expect_equal(student(x), 2 * x, "scale")

    @exercise.check
    def the_answer_is_new(student: Student, probe: Probe) -> None:
        """The answer is not the input."""
        if student(probe.normal(2, 3)) is None or student.changed_inputs:
            raise Failure("scale changed its input")

    @exercise.misconception("Three?", "00_start, Scale")
    def tripled(x: Tensor) -> Tensor:
        """Tripled."""
        CALLS.append("tripled")
        return 3 * x

    @exercise.misconception("Absolute?", "00_start, Scale")
    def absolute_tripled(x: Tensor) -> Tensor:
        """Tripled without its sign."""
        return 3 * x.abs()

    @exercise.misconception("Random?", "00_start, Scale")
    def noise_added(x: Tensor) -> Tensor:
        """Noise added."""
        return 2 * x + torch.randn(x.shape)

    @exercise.misconception("Raise?", "00_start, Scale")
    def view_of_four(x: Tensor) -> Tensor:
        """Viewed as four numbers."""
        return 2 * x.view(4)

    return exercise


def list_cause_names(results: tuple[CheckResult, ...]) -> list[tuple[str, ...]]:
    return [tuple(cause.name for cause in each.causes) for each in results]


def name_mistakes(function: Callable[[Tensor], object]) -> list[tuple[str, ...]]:
    return list_cause_names(run_checks(make_scale_exercise(), {"scale": function}))


def test_the_other_checks_decide_between_two_that_match() -> None:
    tripled, absolute = lambda x: x + 2 * x, lambda x: (3 * x).abs()
    assert name_mistakes(tripled) == [("tripled",), ("tripled",), ()]
    assert name_mistakes(absolute) == [("absolute tripled",), ("absolute tripled",), ()]


def test_both_are_named_where_nothing_decides() -> None:
    exercise = make_scale_exercise()
    exercise.checks = exercise.checks[:1]
    results = run_checks(exercise, {"scale": lambda x: 3 * x})
    assert list_cause_names(results) == [("tripled", "absolute tripled")]
    assert results[0].misconception is None
    assert "they give the same numbers" in results[0].message


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: 5 * x,
        lambda x: 3 * x + 1e-2,
        lambda x: (3 * x).double(),
        lambda x: (3 * x)[None],
        lambda x: [3 * x],
        lambda x: x.view(4, 4) @ x,
        lambda x: None + x,
        lambda x: x.nosuch,
        lambda x: None,
    ],
)
def test_a_mistake_that_nobody_knows_has_no_name(wrong: Callable[[Tensor], object]) -> None:
    assert set(name_mistakes(wrong)) == {()}


def test_a_mistake_explains_only_what_it_fails_itself() -> None:
    """The third check fails for a reason that is not recorded; *tripled* gives the same numbers and passes it."""

    def spoils(x: Tensor) -> Tensor:
        tripled = 3 * x
        x.zero_()
        return tripled

    results = run_checks(make_scale_exercise(), {"scale": spoils})
    assert results[2].seen == "scale changed its input"
    assert list_cause_names(results) == [("tripled",), ("tripled",), ()]


def make_exercise_with_refusals() -> Exercise:
    """The exercise, which also asks for an error; none of its mistakes raises it."""
    exercise = make_scale_exercise()

    @exercise.check(guard=True)
    def no_rows_are_refused(student: Student, probe: Probe) -> None:
        """A table without a row is refused."""
        error = student.catch_error(probe.normal(0, 3))
        if error is None or not error.is_a("ValueError"):
            raise Failure("scale accepted no rows", reason=Reason.ACCEPTED)

    return exercise


def test_a_missing_error_is_no_part_of_a_mistake_about_numbers() -> None:
    results = run_checks(make_exercise_with_refusals(), {"scale": lambda x: 3 * x})
    assert str(results[3].verdict) == "fail"
    assert list_cause_names(results) == [("tripled",), ("tripled",), (), ()]


def test_a_mistake_that_is_a_missing_error_is_named() -> None:
    exercise = make_exercise_with_refusals()

    @exercise.misconception("Rows?", "00_start, Scale")
    def no_rows_accepted(x: Tensor) -> Tensor:
        """A table without a row is taken."""
        return 2 * x

    assert list_cause_names(run_checks(exercise, {"scale": lambda x: x + x})) == [(), (), (), ("no rows accepted",)]


def test_no_name_contradicts_a_check_that_passes() -> None:
    """Right on negative numbers, where both known mistakes that match on positive ones are wrong."""
    assert set(name_mistakes(lambda x: torch.where(x > 0, 3 * x, 2 * x))) == {()}


def test_a_mistake_is_named_though_the_student_passes_a_guard_that_it_fails() -> None:
    exercise = make_exercise_with_refusals()

    def tripled_but_careful(x: Tensor) -> Tensor:
        if not len(x):
            raise ValueError("no rows")
        return 3 * x

    assert list_cause_names(run_checks(exercise, {"scale": tripled_but_careful})) == [
        ("tripled",),
        ("tripled",),
        (),
        (),
    ]


def test_an_exception_alone_needs_every_check_to_agree() -> None:
    always = name_mistakes(lambda x: x.view(4))
    assert always == [("view of four",)] * 3
    only_where_positive = name_mistakes(lambda x: x.view(4) if (x > 0).all() else 5 * x)
    assert set(only_where_positive) == {()}


def test_a_mistake_that_most_checks_belie_is_not_named() -> None:
    """Zeros match *absolute value less itself* where that gives zeros, and nowhere else."""
    exercise = make_scale_exercise()

    @exercise.misconception("Itself?", "00_start, Scale")
    def absolute_value_less_itself(x: Tensor) -> Tensor:
        """The absolute value, less the number."""
        return x.abs() - x

    named = ("absolute value less itself",)
    assert list_cause_names(run_checks(exercise, {"scale": lambda x: x.abs() - x})) == [named, named, ()]
    assert set(list_cause_names(run_checks(exercise, {"scale": torch.zeros_like}))) == {()}


def test_what_a_mistake_gives_is_computed_once() -> None:
    exercise = make_scale_exercise()
    CALLS.clear()
    for _ in range(3):
        run_checks(exercise, {"scale": lambda x: 5 * x})
    assert len(CALLS) == 1  # in one of the two checks that failed: after that it cannot explain most of them
    for _ in range(2):
        assert list_cause_names(run_checks(exercise, {"scale": lambda x: 3 * x}))[0] == ("tripled",)
    assert len(CALLS) == 3  # and in the other two: in the one that such a student passes it must not fail


def test_two_exercises_do_not_share_what_they_remember() -> None:
    for _ in range(2):
        assert name_mistakes(lambda x: 3 * x)[0] == ("tripled",)
    other = make_scale_exercise()
    other.misconceptions = other.misconceptions[1:]
    assert set(list_cause_names(run_checks(other, {"scale": lambda x: 3 * x}))) == {()}


def test_settings_at_the_first_diagnosis_are_not_remembered() -> None:
    def noisy(x: Tensor) -> Tensor:
        return 2 * x + torch.randn(x.shape)

    exercise = make_scale_exercise()
    torch.manual_seed(11)
    torch.set_default_dtype(torch.float64)
    try:
        first = run_checks(exercise, {"scale": noisy})
    finally:
        torch.set_default_dtype(torch.float32)
    torch.manual_seed(12)
    assert list_cause_names(first)[:2] == [("noise added",), ("noise added",)]
    assert run_checks(exercise, {"scale": noisy}) == first


def test_an_odd_mistake_does_not_stop_the_diagnosis() -> None:
    exercise = make_scale_exercise()

    @exercise.check
    def it_has_a_row(student: Student, probe: Probe) -> None:
        """It has a row."""
        if int(expect_tensor(student(probe.normal(2, 3)), (2, 3), "scale")[0, 0]) > -99:
            raise Failure("the row is wrong")

    @exercise.misconception("NaN?", "00_start, Scale")
    def not_a_number(x: Tensor) -> Tensor:
        """Not a number, over which the check stumbles."""
        return x / 0 * 0

    assert list_cause_names(run_checks(exercise, {"scale": lambda x: x / 0 * 0}))[3] == ("not a number",)
    assert list_cause_names(run_checks(exercise, {"scale": lambda x: 2 * x}))[3] == ()


def test_numbers_drawn_for_another_check_match_nothing() -> None:
    exercise, name = make_scale_exercise(), "negative_numbers_double"
    outcome = evaluate_check(exercise.checks[1], Student({"scale": lambda x: 3 * x}), Probe("another"))
    (named,) = name_failures(exercise, [outcome])
    assert (named.check.name, named.result.verdict, named.result.causes) == (name, "fail", ())


PROGRAM = """
import torch
from exercise_kit.engine import check
torch.manual_seed({seed})
def noisy(images, patch_size):
    tokens = torch.nn.functional.unfold(images.double(), patch_size, stride=patch_size).mT.to(images.dtype)
    return tokens + torch.randn(tokens.shape).to(images.dtype)
def columns(images, patch_size):
    return torch.nn.functional.unfold(images.mT.double(), patch_size, stride=patch_size).mT.to(images.dtype)
print(check("patchify", noisy, points=8))
print(check("patchify", columns, points=8))
"""


def test_two_processes_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    exec(PROGRAM.format(seed=1), {})
    here = capsys.readouterr().out
    environment = {**os.environ, "PYTHONHASHSEED": "12345", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-c", PROGRAM.format(seed=2)]
    there = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert there.stdout == here
    assert "the whole image transposed" in here
