"""What runs beside the student: public checks, verdicts in words, and the names of mistakes."""

from vit_course.checks.run import check
from vit_course.checks.verdict import CheckResult, Report, Verdict

__all__ = ["CheckResult", "Report", "Verdict", "check"]
