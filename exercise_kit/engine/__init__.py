"""What runs beside the student: public checks, verdicts in words, and the names of mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vit_course.checks.verdict import CheckResult, Report, Verdict

if TYPE_CHECKING:
    from vit_course.checks.run import check

__all__ = ["CheckResult", "Report", "Verdict", "check"]


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"module 'vit_course.checks' has no attribute {name!r}")
    from vit_course.checks.run import check  # with the catalogue and torch, for those who check something

    return check
