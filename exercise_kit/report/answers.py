"""Answers to one exercise: what each earned, where the lost points went, and how its checks fared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.reasons import NOTHING_WRITTEN
from exercise_kit.report.collect import SubmittedWork


class Lost(StrEnum):
    """Why points were lost."""

    NAMED = "a named mistake"
    UNNAMED = "one without a name"
    FOLLOWS = "an earlier mistake"
    UNEVALUATED = "not checkable"
    UNWRITTEN = "not written"


@dataclass(frozen=True)
class Share:
    """A part of the points that an answer lost: how many ``points``, why, and the misconception's ``name`` if any."""

    points: float
    why: Lost
    name: str = ""
    check: CheckResult | None = None


def is_unwritten(result: ExerciseResult) -> bool:
    """Say whether there is no answer, or none but what was released."""
    return not result.score and result.reason in NOTHING_WRITTEN


def list_failures(result: ExerciseResult) -> list[CheckResult]:
    """The checks that failed."""
    return [check for check in result.checks if check.verdict == Verdict.FAIL]


def is_unevaluated(result: ExerciseResult) -> bool:
    """Say whether the answer could not be evaluated: every check failed, for the one reason."""
    failed = list_failures(result)
    return bool(result.problem and failed and not any(check.message for check in failed))


def split_lost_points(result: ExerciseResult, is_consequence: bool = False) -> Iterator[Share]:
    """The points that an answer lost, in equal parts for the checks that failed (their weights are not kept).

    Args:
        result: of the answer.
        is_consequence: it builds on an earlier answer of the same notebook that is wrong too.
    """
    lost, failed = result.max_score - result.score, list_failures(result)
    if lost <= 0:
        return
    if is_unwritten(result):
        yield Share(lost, Lost.UNWRITTEN)
    elif is_unevaluated(result) or not failed:
        yield Share(lost, Lost.UNEVALUATED)
    else:
        for check in failed:
            why = Lost.NAMED if check.misconception else Lost.FOLLOWS if is_consequence else Lost.UNNAMED
            yield Share(lost / len(failed), why, check.misconception or "", check)


def find_first_unexplained_failure(result: ExerciseResult) -> CheckResult | None:
    """The first check that failed in a way of its own, and that no misconception explains."""
    return next((check for check in list_failures(result) if check.misconception is None and check.kind), None)


HALF = 0.5
BINS = ("all points", "half or more", "less than half", "none", "not written")


@dataclass(frozen=True)
class GradedAnswer:
    """One student's answer to one exercise, and the ``check`` of it that is looked at, if any."""

    work: SubmittedWork
    result: ExerciseResult
    check: CheckResult | None = None

    @property
    def share(self) -> float:
        """Of the points, from 0 to 1."""
        return self.result.score / self.result.max_score if self.result.max_score else 0.0


@dataclass
class CheckTally:
    """How often a check passed, failed, and was undecided, among the answers that were evaluated."""

    name: str
    claim: str
    passed: int = 0
    failed: int = 0
    undecided: int = 0

    @property
    def failing(self) -> float:
        """The share of failures among the decided."""
        decided = self.passed + self.failed
        return self.failed / decided if decided else 0.0


@dataclass
class ExerciseTally:
    """An exercise: what it is worth, all answers, its checks, and the lost points by their reason."""

    name: str
    lesson: str
    points: float
    answers: list[GradedAnswer] = field(default_factory=list)
    checks: dict[str, CheckTally] = field(default_factory=dict)
    lost: dict[Lost, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean share of the points."""
        return sum(each.share for each in self.answers) / len(self.answers) if self.answers else 0.0

    @cached_property
    def bins(self) -> tuple[int, ...]:
        """How many answers earned what: see BINS."""
        counts = Counter(_choose_bin(each) for each in self.answers)
        return tuple(counts[name] for name in BINS)

    @property
    def seconds(self) -> list[float]:
        """What it took to check the answers that could be checked, where the time is known, in order of size."""
        evaluated = (
            each.result for each in self.answers if not is_unevaluated(each.result) and not is_unwritten(each.result)
        )
        return sorted(each.seconds for each in evaluated if each.seconds)


def _choose_bin(answer: GradedAnswer) -> str:
    if is_unwritten(answer.result):
        return BINS[4]
    if answer.share >= 1:
        return BINS[0]
    if answer.share >= HALF:
        return BINS[1]
    return BINS[2] if answer.share else BINS[3]
