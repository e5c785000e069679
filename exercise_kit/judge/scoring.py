"""The score of an exercise and the student's report, from what its checks found.

An answer that calls another exercise's answer fails when that one is wrong. So it is evaluated a second time, with the
model solutions in place of its parts: a check that passes then counts as passed, and the report says where the mistake
is. Hidden checks that refuse the lesson's own model answer count for nobody; the instructor reads which they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from exercise_kit.engine.course import course
from exercise_kit.engine.evaluate_check import Outcome, make_check_result
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.name_failures import find_first_failed_check
from exercise_kit.engine.python_slips import describe_leftover_stub_line, describe_unwritten_part
from exercise_kit.engine.report_lines import make_report_lines
from exercise_kit.engine.slip_searches import Definition
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.replays import find_commonest_misconception
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.reasons import Reason

FAILS_ALL_THE_SAME = "it is not so with right answers to the exercises that it calls, either"


def merge_outcomes(
    own_outcomes: Sequence[Outcome], right_outcomes: Sequence[Outcome]
) -> tuple[list[Outcome], int] | None:
    """The outcomes that count, and how many checks pass only with the model solutions of the parts.

    None where these change nothing: none passes that failed, and none that met a part which is not written has
    anything else against the answer.

    Args:
        own_outcomes: with the student's own parts; a class of which something is not written earns nothing.
        right_outcomes: of the same checks, with the model solutions; those that could not be evaluated are missing.
    """
    again = {each.check.name: each for each in right_outcomes}
    pairs = [(each, again.get(each.check.name, each)) for each in own_outcomes]
    failed = [(first, second) for first, second in pairs if first.result.verdict == Verdict.FAIL]
    gained = sum(second.result.verdict == Verdict.PASS for _, second in failed)
    if not gained and not any(_fails_for_itself(*pair) for pair in failed):
        return None
    return [_choose_better_outcome(*pair) for pair in pairs], gained


def _fails_for_itself(first: Outcome, second: Outcome) -> bool:
    """Say whether what met an unwritten part fails with a right one, too."""
    return first.result.unwritten and second.result.verdict == Verdict.FAIL and not second.result.unwritten


def _choose_better_outcome(first: Outcome, second: Outcome) -> Outcome:
    """The second where it passes, and its record for the mistake's name; of a second failure no word is shown.

    The model solution stood beside the answer then, and a hostile one could put it into an exception's text or a
    class's name.
    """
    if first.result.verdict == Verdict.PASS:
        return first
    if second.result.verdict == Verdict.PASS:
        return second
    result = first.result
    if _fails_for_itself(first, second):
        result = replace(result, seen=FAILS_ALL_THE_SAME, expected="", look="", reason=second.result.reason)
    return replace(first, record=second.record, result=result)


NOTHING_DECIDED = "{} is not graded yet: none of its checks could decide anything, and that is no fault of yours"
OUR_ERROR = "{} is not graded yet: there is an error in the exercise, and no fault of yours"


def compute_fraction(exercise: str, outcomes: Sequence[Outcome]) -> float:
    """The share of the points earned, from 0 to 1: the checks' points are weights, and undecided checks do not count.

    A class with a part that is not written yet earns nothing: the student did not write what the class inherits.
    """
    if course().exercises[exercise].is_class and any(each.result.unwritten for each in outcomes):
        return 0.0
    counted = _list_decided_outcomes(outcomes)
    earned = sum(each.check.worth for each in counted if each.result.verdict == Verdict.PASS)
    return earned / sum(each.check.worth for each in counted) if counted else 0.0


def _list_decided_outcomes(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """List what the checks found that give points and could decide."""
    return [each for each in outcomes if each.check.worth and each.result.verdict != Verdict.UNDECIDED]


def score_checks(
    exercise: str,
    max_score: float | None,
    outcomes: Sequence[Outcome],
    problem: str | None = None,
    reason: Reason | None = None,
    kind: str = "",
    written: Sequence[Definition] = (),
) -> ExerciseResult:
    """The result of an exercise whose checks were evaluated.

    Args:
        exercise: its name.
        max_score: what it is worth; None: the points of its checks.
        outcomes: of all its checks, failures with their causes.
        problem: what has to be said first; None: that it is not written yet, where this is so.
        reason: of the problem.
        kind: of the problem, as :class:`ExerciseResult` has it.
        written: what the student wrote, in which slips of Python are looked for.
    """
    if max_score is None:
        max_score = sum(each.check.worth for each in outcomes)
    results = _make_check_results(exercise, outcomes, written)
    if problem is None and any(each.unwritten for each in results):
        begun = any(each.verdict == Verdict.PASS for each in results)
        reason, what = (Reason.PARTLY_WRITTEN, "something in {}") if begun else (Reason.NOT_WRITTEN, "{}")
        problem, kind = (f"{what.format(whose)} is not written yet" for whose in (exercise, "the answer"))
        problem = describe_leftover_stub_line(written) or describe_unwritten_part(exercise, written) or problem
        results = tuple(
            replace(each, seen="", kind="", same_as="") if each.unwritten and not each.leads else each
            for each in results
        )
    waits_for = ""
    if problem is None and outcomes and not _list_decided_outcomes(outcomes):
        problem, reason = NOTHING_DECIDED.format(exercise), Reason.NOTHING_DECIDED
        waits_for = next((each.broke for each in outcomes if each.broke), "")
    score = round(max_score * compute_fraction(exercise, outcomes), 4)
    named = find_commonest_misconception(outcomes)
    return ExerciseResult(
        *(exercise, score, round(max_score, 4), named, results, problem, reason, kind), waits_for=waits_for
    )


def fail_all_checks(
    exercise: str,
    max_score: float | None,
    checks: Sequence[Check],
    problem: str | None,
    reason: Reason | None,
    kind: str,
) -> ExerciseResult:
    """The result of an exercise that could not be evaluated: every check fails, for one reason."""
    failed = [Outcome(each, replace(make_check_result(each), verdict=Verdict.FAIL)) for each in checks]
    return score_checks(exercise, max_score, failed, problem, reason, kind)


def _make_check_results(
    exercise: str, outcomes: Sequence[Outcome], written: Sequence[Definition]
) -> tuple[CheckResult, ...]:
    """The lines of the report, as ``check`` has them: what follows from something else folds under it."""
    results = tuple(each.result for each in outcomes)
    none_passes = not any(each.verdict == Verdict.PASS for each in results)
    if none_passes and any(each.unwritten or not each.reason for each in results):
        return results  # nothing is written, or was evaluated: that is all there is to say
    named = {each.misconception for each in results}
    known = course().exercises[exercise]
    leads = {
        wrong.name: f"test_{find_first_failed_check(known, wrong)}"
        for wrong in known.misconceptions
        if wrong.name in named
    }
    return make_report_lines(results, {each.check.name: each.check.needs for each in outcomes}, written, leads)
