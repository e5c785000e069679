"""Classroom 50: the ``result.json`` that an autograder leaves in a student's checkout.

Its points are whole numbers and ours are not, so they are given in hundredths of a point. The student's name and the
submission's are in variables that Classroom 50's runner sets; it checks them against the repository afterward.
https://github.com/foundation50/classroom50/wiki/Advanced-Autograding (classroom50/result/v1)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from exercise_kit.engine.rendering import render_text
from exercise_kit.exports.grades import ExportError, choose_single_result
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.result import ExerciseResult, Result

SCHEMA = "classroom50/result/v1"
PER_POINT = 100
# a field, and the runner's variables that it comes from: the first that is set
_FIELDS = {
    "classroom": ("CLASSROOM",),
    "assignment": ("ASSIGNMENT",),
    "assignment_type": ("ASSIGNMENT_TYPE",),
    "owner": ("USERNAME", "OWNER"),
    "submission": ("SUBMISSION_TAG",),
    "commit": ("COMMIT_URL",),
    "release": ("RELEASE_URL",),
    "review": ("REVIEW_URL", "COMMIT_URL"),
}


def write(results: Sequence[Result], environment: Mapping[str, str], now: datetime | None = None) -> str:
    """The JSON of the one submission.

    Args:
        results: of one checkout.
        environment: the variables that Classroom 50's runner sets.
        now: the time on it, which the runner replaces by the commit's; None: this moment.

    Raises:
        ExportError: a variable is missing, or there is no grade, which must read as an error and not as a zero.
    """
    values = {field: next(filter(None, map(environment.get, names)), "") for field, names in _FIELDS.items()}
    if missing := dict.fromkeys(_FIELDS[field][-1] for field, value in values.items() if not value):
        advice = "Classroom 50's runner sets them: run this in its autograder.py"
        raise ExportError(f"the environment has no {', '.join(missing)}. {advice}")
    result = choose_single_result(results, "Classroom 50")
    if result is None or result.status != "graded":
        raise ExportError(f"it could not be graded: {result.reason if result else 'no lesson was handed in'}")
    tests = [_make_test_entry(each) for each in result.exercises]
    time = (now or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")
    scores = {key: sum(each[key] for each in tests) for key in ("score", "max-score")}
    return json.dumps({"schema": SCHEMA, **values, "datetime": time, **scores, "tests": tests}, indent=1) + "\n"


def _make_test_entry(exercise: ExerciseResult) -> dict[str, Any]:
    return {
        "test-name": exercise.name,
        "passed": exercise.score >= exercise.max_score,
        "score": min(round(PER_POINT * exercise.score), round(PER_POINT * exercise.max_score)),
        "max-score": round(PER_POINT * exercise.max_score),
        "output": render_text(make_graded_report(exercise)),
    }
