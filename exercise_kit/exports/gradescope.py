"""Gradescope: the ``results.json`` that an autograder leaves for one submission.

A test for each exercise, with its points and what the student reads. Flags are for the instructor and not in it.
https://gradescope-autograders.readthedocs.io/en/latest/specs/
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from exercise_kit.engine.rendering import render_text
from exercise_kit.exports.grades import choose_single_result
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.result import Result
from exercise_kit.points import format_points, round_to_hundredths
from exercise_kit.quoting import make_legible

NOTHING = "There is no notebook and no .py file of a lesson in what was handed in."


class Visibility(StrEnum):
    """When students see the tests."""

    VISIBLE = "visible"
    AFTER_DUE_DATE = "after_due_date"
    AFTER_PUBLISHED = "after_published"
    HIDDEN = "hidden"


def write(results: Sequence[Result], visibility: Visibility = Visibility.VISIBLE) -> str:
    """The JSON of the one submission; of a file that cannot be graded, no points and the reason.

    Raises:
        ExportError: there are several, or the grader failed, which must not read as a zero.
    """
    result = choose_single_result(results, "Gradescope")
    if result and result.status == "graded":
        made = _make_result_entry(result)
    else:
        reason = f"It could not be graded: {result.reason}" if result else NOTHING
        made = {"score": 0, "output": make_legible(reason), "tests": []}
    made |= {"output_format": "text", "visibility": visibility.value, "stdout_visibility": "hidden"}
    return json.dumps(made, indent=1) + "\n"


def _make_result_entry(result: Result) -> dict[str, Any]:
    tests = [
        {
            "name": each.name,
            "score": round_to_hundredths(each.score),
            "max_score": round_to_hundredths(each.max_score),
            "status": "passed" if each.score >= each.max_score else "failed",
            "output": "\n".join(filter(None, (render_text(make_graded_report(each)), make_legible(each.comment)))),
            "output_format": "text",
        }
        for each in result.exercises
    ]
    made = {"score": round_to_hundredths(result.score), "execution_time": round(result.seconds, 2), "tests": tests}
    return made | ({"output": f"Late: -{format_points(result.penalty)} points."} if result.penalty else {})
