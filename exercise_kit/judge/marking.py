"""From what the checks of an exercise found to its score, and to what a student reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exercise_kit.engine.course import course
from exercise_kit.engine.run import without_repetition
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.hidden import HiddenCheck, Outcome
from exercise_kit.judge.naming import commonest
from exercise_kit.judge.result import CheckOutcome, ExerciseResult
from exercise_kit.reasons import Reason

NOTHING_DECIDED = "none of the checks of {} could decide anything"


def fraction(exercise: str, outcomes: Sequence[Outcome]) -> float:
    """The share of the points earned, from 0 to 1: the points of marks are weights, and undecided checks do not count.

    A class of which a part is not written yet earns nothing, for what it inherits is not the student's.
    """
    if course().exercises[exercise].is_class and any(each.result.unwritten for each in outcomes):
        return 0.0
    counted = [each for each in outcomes if each.result.verdict != Verdict.UNDECIDED]
    earned = sum(each.check.points for each in counted if each.result.verdict == Verdict.PASS)
    return earned / sum(each.check.points for each in counted) if counted else 0.0


def marked(
    exercise: str,
    max_score: float | None,
    outcomes: Sequence[Outcome],
    problem: str | None = None,
    reason: Reason | None = None,
) -> ExerciseResult:
    """The result of an exercise whose checks were asked.

    Args:
        exercise: its name.
        max_score: what it is worth; None: the points of its checks.
        outcomes: of all its checks, failures with their causes.
        problem: what has to be said first; None: that it is not written yet, where this is so.
        reason: what kind of problem it is.
    """
    if max_score is None:
        max_score = sum(each.check.points for each in outcomes)
    results = tuple(map(_briefly, without_repetition([each.result for each in outcomes])))
    if problem is None and any(each.unwritten for each in results):
        problem, reason = _unwritten(exercise, results)
        results = tuple(replace(each, seen="") if each.unwritten else each for each in results)
    if problem is None and results and all(each.verdict == Verdict.UNDECIDED for each in results):
        problem, reason = NOTHING_DECIDED.format(exercise), Reason.NOTHING_DECIDED
    score = round(max_score * fraction(exercise, outcomes), 4)
    checks = tuple(map(_as_outcome, results))
    return ExerciseResult(exercise, score, round(max_score, 4), commonest(outcomes), checks, problem, reason)


def unasked(
    exercise: str, max_score: float | None, checks: Sequence[HiddenCheck], problem: str | None, reason: Reason | None
) -> ExerciseResult:
    """The result of an exercise that there was nothing to ask of: every check fails, for one reason."""
    failed = [Outcome(each, CheckResult(each.name, each.claim, Verdict.FAIL), []) for each in checks]
    return marked(exercise, max_score, failed, problem, reason)


def _briefly(result: CheckResult) -> CheckResult:
    """Of a mistake that was explained above its name is enough: what it did to other numbers is nothing new."""
    return replace(result, seen="", expected="") if result.again else result


def _unwritten(exercise: str, results: Sequence[CheckResult]) -> tuple[str, Reason]:
    if not any(each.verdict == Verdict.PASS for each in results):
        return f"{exercise} is not written yet", Reason.NOT_WRITTEN
    return f"something in {exercise} is not written yet", Reason.PARTLY_WRITTEN


def _as_outcome(result: CheckResult) -> CheckOutcome:
    return CheckOutcome(
        result.name, str(result.verdict), result.message, result.misconception, result.claim, result.parts()
    )
