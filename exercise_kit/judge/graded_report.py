"""The result of a graded exercise as a report, which every page, terminal and file shows in the form of ``check``."""

from __future__ import annotations

from dataclasses import replace

from exercise_kit.engine.course import course
from exercise_kit.engine.verdict import LOOKS_LIKE, Report
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.quoting import make_legible
from exercise_kit.reasons import Reason


def make_graded_report(result: ExerciseResult, points: float | None = None) -> Report:
    """The report on an exercise.

    Args:
        result: the judge's.
        points: what a gradebook's cell is worth, where that may be more or less than the judge knew.
    """
    worth = result.max_score if points is None else points
    earned = compute_earned_points(result, worth)
    unwritten = result.reason == Reason.NOT_WRITTEN or not any(each.parts() for each in result.checks)
    told = () if result.waits or (result.problem and not earned and unwritten) else result.checks
    problem = make_legible(result.problem) if result.problem else None
    if result.misconception and not result.checks:  # as a gradebook keeps it
        problem = f"{LOOKS_LIKE} *{result.misconception}*."
    results = tuple(replace(each, claim=make_legible(each.claim)) for each in told)
    return Report(*(result.name, results, worth), note=problem, site=course().site, earned=earned, waits=result.waits)


def compute_earned_points(result: ExerciseResult, points: float) -> float:
    """The earned share of ``points``."""
    share = result.score / result.max_score if result.max_score else 0.0
    return min(round(points * share, 4), points)
