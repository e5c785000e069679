"""What late work costs: a share of its points for every day begun, after hours of grace."""

from __future__ import annotations

import math

from nbgrader.plugins import LateSubmissionPlugin as OfNbgrader
from traitlets import Enum, Float

SECONDS_OF_HOUR, SECONDS_OF_DAY = 3600, 86400


class LateSubmissionPlugin(OfNbgrader):
    """nbgrader's plugin with one method more; a class sets all of them under ``c.LateSubmissionPlugin``."""

    penalty_method = Enum(
        ("none", "zero", "by_day"),
        "none",
        help="What late work costs: 'none', 'zero' (all its points), or 'by_day' (penalty_per_day).",
    ).tag(config=True)
    penalty_per_day = Float(
        0.1, min=0.0, max=1.0, help="The share of the earned points that each day begun costs: 0.1 is a tenth."
    ).tag(config=True)
    grace_hours = Float(0.0, min=0.0, help="Hours after the due date that cost nothing; days count from there.").tag(
        config=True
    )

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points that are taken off, at most all of them; None where lateness costs nothing.

        Args:
            student_id: of whoever handed in.
            score: the points that the submission has earned.
            total_seconds_late: after the due date, which has the student's extension in it.
        """
        beyond = total_seconds_late - self.grace_hours * SECONDS_OF_HOUR
        if self.penalty_method == "none" or beyond <= 0:
            return None
        if self.penalty_method == "zero":
            return score
        days = math.ceil(beyond / SECONDS_OF_DAY)
        return round(score * min(1.0, days * self.penalty_per_day), 4)
