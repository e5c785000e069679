"""Answers to one exercise: what each earned, and how its checks fared."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property

from exercise_kit.judge.result import CheckOutcome, ExerciseResult
from exercise_kit.report.shares import Lost, is_unasked, is_unwritten
from exercise_kit.report.work import HandedInWork

HALF = 0.5
BINS = ("all points", "half or more", "less than half", "none", "not written")


@dataclass(frozen=True)
class Answer:
    """One student's answer to one exercise, and the ``check`` of it that is looked at, if any."""

    work: HandedInWork
    result: ExerciseResult
    check: CheckOutcome | None = None

    @property
    def share(self) -> float:
        """Of the points, from 0 to 1."""
        return self.result.score / self.result.max_score if self.result.max_score else 0.0


@dataclass
class CheckTally:
    """How often a check passed, failed, and could not tell, in answers of which it was asked."""

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
    answers: list[Answer] = field(default_factory=list)
    checks: dict[str, CheckTally] = field(default_factory=dict)
    lost: dict[Lost, float] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean share of the points."""
        return sum(each.share for each in self.answers) / len(self.answers) if self.answers else 0.0

    @cached_property
    def bins(self) -> tuple[int, ...]:
        """How many answers earned what: see BINS."""
        counts = Counter(_bin(each) for each in self.answers)
        return tuple(counts[name] for name in BINS)

    @property
    def seconds(self) -> list[float]:
        """What it took to check the answers that could be checked, where the time is known, in order of size."""
        asked = (each.result for each in self.answers if not is_unasked(each.result) and not is_unwritten(each.result))
        return sorted(each.seconds for each in asked if each.seconds)


def _bin(answer: Answer) -> str:
    if is_unwritten(answer.result):
        return BINS[4]
    if answer.share >= 1:
        return BINS[0]
    if answer.share >= HALF:
        return BINS[1]
    return BINS[2] if answer.share else BINS[3]
