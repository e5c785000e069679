"""What runs beside the student: public checks, verdicts in words, and the names of mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exercise_kit.engine.verdict import CheckResult, Report, Verdict

if TYPE_CHECKING:
    from exercise_kit.engine.run import check

__all__ = ["CheckResult", "Report", "Verdict", "check"]


def __getattr__(name: str) -> Any:
    if name != "check":
        raise AttributeError(f"module 'exercise_kit.engine' has no attribute {name!r}")
    from exercise_kit.engine.run import check  # with the catalog and torch, for those who check something

    return check
