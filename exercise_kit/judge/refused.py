"""Hidden checks that refuse the lesson's own model answer: the instructor reads which, and they count for nobody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.collecting import place_of_item
from exercise_kit.judge.hidden import HiddenCheck
from exercise_kit.judge.marking import NOTHING_DECIDED
from exercise_kit.judge.result import CheckOutcome, ExerciseResult, LogEntry, LogKind, Result
from exercise_kit.reasons import Reason
from exercise_kit.submission.flags import STOPPED, TIMEOUT

Refused = Mapping[str, Mapping[str, str]]  # exercise → check → what it says of the model answer
SEEN = "this check refuses the lesson's own model answer; it does not count, and your instructor can read why"


def refused_by(model: Result) -> Refused:
    """The checks that fail the model answers of a lesson.

    A model answer that could not be evaluated, or not to its end, says nothing of the checks.
    """
    if model.status != "graded" or not {TIMEOUT, STOPPED}.isdisjoint(model.flags):
        return {}
    failed = {
        each.name: {check.name: check.message or "" for check in each.checks if check.verdict == Verdict.FAIL}
        for each in model.exercises
        if not each.problem
    }
    return {name: checks for name, checks in failed.items() if checks}


def not_counted(
    result: ExerciseResult, refused: Mapping[str, str], checks: Sequence[HiddenCheck]
) -> tuple[ExerciseResult, Iterator[LogEntry]]:
    """A result in which the refused checks are undecided, and entries for the instructor.

    Args:
        result: of the exercise, judged by the other checks; by all of them where all are refused.
        refused: the names of its refused checks, and what they say of the model answer.
        checks: all checks of the exercise.
    """
    found = {each.name: each for each in result.checks if each.name not in refused}
    outcomes = (
        found.get(each.name, CheckOutcome(each.name, Verdict.UNDECIDED, SEEN, None, each.claim, {"Seen": SEEN}))
        for each in checks
    )
    entries = (
        LogEntry(
            LogKind.REFUSED_CHECK,
            f"{place_of_item(each.item)} fails the lesson's model answer. {refused[each.name]}",
            result.name,
            each.name,
        )
        for each in checks
        if each.name in refused
    )
    result = replace(result, checks=tuple(outcomes))
    if not found:
        problem = NOTHING_DECIDED.format(result.name)
        result = replace(result, score=0.0, misconception=None, problem=problem, reason=Reason.NOTHING_DECIDED)
    return result, entries
