"""A whole run of check(): verdicts, what waits for what, and what is reported once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine import check
from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.report_lines import make_report_lines
from exercise_kit.engine.run import run_checks
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Report, Verdict
from exercise_kit.reasons import Reason
from vit_course.patches import patchify
from vit_course.vit import VisionTransformer


def make_exercise(*checks: Callable[[Student, Probe], None], needs: Callable[..., None] | None = None) -> Exercise:
    exercise = Exercise("double", "00_start")
    for each in checks:
        exercise.check(needs=needs)(each) if needs and each is not needs else exercise.check(each)
    return exercise


def run_checks_on(
    function: Callable[..., object], *checks: Callable[[Student, Probe], None], **options: Any
) -> tuple[CheckResult, ...]:
    return run_checks(make_exercise(*checks, **options), {"double": function})


def it_doubles(student: Student, probe: Probe) -> None:
    """It doubles."""
    x = probe.normal(2, 3)
    expect_equal(student(x), 2 * x, "double")


def it_answers_twice(student: Student, probe: Probe) -> None:
    """It answers twice."""
    for _ in range(2):
        it_doubles(student, probe)


def it_has_a_first_number(student: Student, probe: Probe) -> None:
    """The check itself stumbles over what is no tensor of whole numbers."""
    x = probe.normal(2, 3).round() + 3
    if int(student(x)[0, 0]) != int(2 * x[0, 0]):
        raise Failure("the first number is wrong")


@pytest.mark.parametrize(
    ("answer", "seen"),
    [
        ("text", "what double gave cannot be compared: TypeError `string indices must be integers"),
        (None, "what double gave cannot be compared: TypeError `'NoneType' object is not subscriptable`"),
        (
            torch.ones(()),
            "what double gave cannot be compared: it is a tensor of shape (), and comparing it failed with: IndexError",
        ),
        (torch.ones(2, 3) / 0, "double gave infinity among its numbers"),
        (torch.full((2, 3), float("nan")), "double gave NaN (not a number) among its numbers"),
    ],
)
def test_a_check_that_stumbles_is_a_failure_in_words(answer: object, seen: str) -> None:
    (result,) = run_checks_on(lambda x: answer, it_has_a_first_number)
    assert result.verdict == Verdict.FAIL
    assert result.seen.startswith(seen)
    assert result.look


@pytest.mark.parametrize("error", [SystemExit, RecursionError, GeneratorExit, BaseException])
def test_not_even_an_exit_inside_a_check_escapes(error: type[BaseException]) -> None:
    class Hostile(nn.Module):
        def double(self) -> nn.Module:
            raise error

    def it_can_be_doubled(student: Student, _: Probe) -> None:
        """It can be doubled."""
        student.build()._backend.module.double()

    (result,) = run_checks_on(Hostile, it_can_be_doubled)
    assert (result.verdict, error.__name__ in result.seen) == (Verdict.FAIL, True)


def test_a_check_waits_for_the_one_it_needs() -> None:
    results = run_checks_on(lambda x: 3 * x, it_doubles, it_answers_twice, it_has_a_first_number, needs=it_doubles)
    assert [str(each.verdict) for each in results] == ["fail", "undecided", "undecided"]
    assert results[1].waits
    assert "“It doubles.”" in results[1].seen
    assert make_report_lines(results, {}, [])[2].seen == results[1].seen
    assert Report("double", results, 3).score == 0


def test_the_same_failure_is_reported_once() -> None:
    first, second = make_report_lines(run_checks_on(lambda x: 3 * x, it_doubles, it_answers_twice), {}, [])
    assert "1.5 times" in first.seen
    assert (second.seen, second.expected, second.look) == ("the same as above", "", "")


def test_the_same_exception_with_other_sizes_is_reported_once() -> None:
    def it_takes_five_rows(student: Student, probe: Probe) -> None:
        """It takes five rows."""
        student(probe.normal(5, 3))

    lead, *others = make_report_lines(run_checks_on(lambda x: x @ x, it_doubles, it_takes_five_rows), {}, [])
    assert "raised RuntimeError" in lead.seen
    assert [each.waits_for for each in others] == [lead.name] * 2


def test_what_is_not_written_is_not_a_mistake() -> None:
    def unwritten(images: Tensor, patch_size: int) -> Tensor:
        raise NotImplementedError

    report = check("patchify", unwritten, points=8)
    assert "patchify is not written yet" in report.problem
    assert report.score == 0


def test_spoiling_an_input_harms_no_other_check() -> None:
    def spoils(images: Tensor, patch_size: int) -> Tensor:
        tokens = patchify(images, patch_size).clone()
        images.zero_()
        return tokens

    report = check("patchify", spoils)
    (failed,) = (each for each in report.results if each.verdict != Verdict.PASS)
    assert (failed.name, failed.reason) == ("the_images_are_left_alone", Reason.CHANGED)
    assert "changed its input of shape" in failed.seen


def test_giving_the_input_back_is_judged_by_its_numbers() -> None:
    def in_place(x: Tensor) -> Tensor:
        return x.mul_(2)

    assert run_checks_on(in_place, it_doubles)[0].verdict == Verdict.PASS


def test_state_between_calls_does_not_confuse_the_checks() -> None:
    calls: list[int] = []

    def counting(x: Tensor) -> Tensor:
        calls.append(1)
        return 2 * x if len(calls) == 1 else 3 * x

    assert [str(each.verdict) for each in run_checks_on(counting, it_doubles, it_answers_twice)] == ["pass", "fail"]


def test_a_class_that_inherits_its_parts_earns_nothing_before_it_is_written() -> None:
    class FixedViT(VisionTransformer):
        def forward(self, images: Tensor) -> Tensor:
            raise NotImplementedError

    report = check("fix_vit", FixedViT, points=3)
    assert any(each.verdict == Verdict.PASS for each in report.results)
    assert (report.score, report.passed) == (0.0, False)
    assert "not written yet" in str(report)


def test_a_check_waits_for_all_that_it_needs() -> None:
    def it_fails(student: Student, probe: Probe) -> None:
        """It fails."""
        raise Failure("wrong")

    exercise = make_exercise(it_doubles, it_fails)
    exercise.check(needs=(it_doubles, it_fails), worth=2)(it_answers_twice)
    double, fails, waiting = run_checks(exercise, {"double": lambda x: 2 * x})
    assert (double.verdict, fails.verdict, waiting.verdict) == ("pass", "fail", "undecided")
    assert waiting.waits
    assert waiting.worth == 2
    assert "It fails." in waiting.seen
