"""What a student reads of the judge's verdict on nbgrader's feedback page: claims and words, no hidden check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from exercise_kit.engine.show import REPORT_MIME, entry, paragraph, rich, section
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.result import CheckOutcome, ExerciseResult


@dataclass(frozen=True)
class _Told(CheckResult):
    """A line of a report that comes with its words."""

    words: Mapping[str, str] = field(default_factory=dict)

    def parts(self) -> Mapping[str, str]:
        return self.words


def as_html(result: ExerciseResult, points: float) -> str:
    """One exercise as HTML without style sheet or script; everything of the student's in it is escaped."""
    passing = sum(check.verdict == Verdict.PASS for check in result.checks)
    earned = points_of(result, points)
    summary = f"{result.name}: {passing} of {len(result.checks)} checks pass, {round(earned, 2):g} of {points:g} points"
    verdict = Verdict.PASS if earned == points else Verdict.FAIL
    body = paragraph(f"<strong>{escape(summary)}</strong>")
    if result.problem:
        body += paragraph(rich(result.problem))
    if earned or not result.problem:
        items = "".join(entry(_line(check)) for check in result.checks)
        body += f'<ul style="list-style:none;margin:0.4em 0 0 0;padding:0">{items}</ul>'
    return section(summary, body, verdict)


def points_of(result: ExerciseResult, points: float) -> float:
    """The earned share of ``points``, which nbgrader's own cell may set higher or lower than the judge knew."""
    share = result.score / result.max_score if result.max_score else 0.0
    return min(round(points * share, 4), points)


def _line(check: CheckOutcome) -> CheckResult:
    words = check.parts or ({"Seen": check.message} if check.message else {})
    return _Told(check.name, check.claim or check.name, Verdict(check.verdict), words=words)


def as_output(result: ExerciseResult, points: float) -> dict[str, Any]:
    """The output of a check's cell: nbgrader reads the points from its plain form, a person the HTML."""
    data = {
        "text/plain": repr(float(points_of(result, points))),
        "text/html": as_html(result, points),
        REPORT_MIME: result.as_dict(),
    }
    return {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
