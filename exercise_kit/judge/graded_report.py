"""The result of a graded exercise as a report, which every page, terminal and file shows in the form of ``check``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from exercise_kit.engine.course import course
from exercise_kit.engine.verdict import LOOKS_LIKE, CheckResult, Part, Report, Verdict
from exercise_kit.judge.result import CheckOutcome, ExerciseResult
from exercise_kit.points import in_digits
from exercise_kit.quoting import legible
from exercise_kit.reasons import Reason


@dataclass(frozen=True)
class _GradedCheck(CheckResult):
    """A line of a report that comes with its words, with the name of a mistake, and with the paths of pages."""

    words: Mapping[str, str] = field(default_factory=dict)
    mistake: str | None = None
    paths: Mapping[str, str] = field(default_factory=dict)

    @property
    def misconception(self) -> str | None:
        return self.mistake

    def parts(self) -> Mapping[str, str]:
        return self.words

    def pages(self) -> Mapping[str, str]:
        return self.paths


@dataclass(frozen=True)
class GradedReport(Report):
    """A report whose points are the judge's.

    Attributes:
        earned: of ``points``.
        waits: whether the exercise is not graded yet.
    """

    earned: float = 0.0
    waits: bool = False

    @property
    def passed(self) -> bool:
        """Whether it has all its points."""
        return not self.waits and self.earned == self.points

    @property
    def score(self) -> float | None:
        """The points earned."""
        return self.earned

    def summary(self) -> str:
        """One line: how many checks pass, and the points."""
        if self.waits:
            return f"{self.exercise}: not graded yet, – of {self.points:g} points"
        if not self.results:
            return f"{self.exercise}: {in_digits(self.earned)} of {self.points:g} points"
        return super().summary()


def graded_report(result: ExerciseResult, points: float | None = None) -> GradedReport:
    """The report on an exercise.

    Args:
        result: the judge's.
        points: what a gradebook's cell is worth, where that may be more or less than the judge knew.
    """
    worth = result.max_score if points is None else points
    earned = earned_of(result, worth)
    unwritten = result.reason == Reason.NOT_WRITTEN or not any(each.parts for each in result.checks)
    told = () if result.waits or (result.problem and not earned and unwritten) else result.checks
    problem = legible(result.problem) if result.problem else None
    if result.misconception and not result.checks:  # as a gradebook keeps it
        problem = f"{LOOKS_LIKE} *{result.misconception}*."
    site, waits = course().site, result.waits
    return GradedReport(
        result.name, tuple(map(_line, told)), worth, note=problem, site=site, earned=earned, waits=waits
    )


def earned_of(result: ExerciseResult, points: float) -> float:
    """The earned share of ``points``."""
    share = result.score / result.max_score if result.max_score else 0.0
    return min(round(points * share, 4), points)


def _line(check: CheckOutcome) -> CheckResult:
    words = check.parts or ({Part.SEEN: check.message} if check.message else {})
    claim = check.claim or check.name.removeprefix("test_").replace("_", " ")
    return _GradedCheck(
        *(check.name, legible(claim), Verdict(check.verdict)),
        reason=check.reason,
        guard=check.guard,
        waits_for=check.waits_for,
        leads=check.leads,
        same_as=check.same_as,
        words={part: legible(words[part]) for part in Part if part in words},  # a saved notebook sorts them
        mistake=check.misconception,
        paths=check.pages,
    )
