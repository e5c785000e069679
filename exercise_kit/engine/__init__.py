"""What runs beside the student: public checks, verdicts in words, and the names of mistakes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exercise_kit.engine.verdict import CheckResult, Report, Verdict

if TYPE_CHECKING:
    from exercise_kit.engine.own_parts import keep, own
    from exercise_kit.engine.run import check

__all__ = ["CheckResult", "Report", "Verdict", "check", "keep", "own"]

_MODULE_OF = {"check": "run", "keep": "own_parts", "own": "own_parts"}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'exercise_kit.engine' has no attribute {name!r}")
    import_module("exercise_kit.engine.missing_names").install()
    # with the catalog and torch, for those who check something
    return getattr(import_module(f"exercise_kit.engine.{_MODULE_OF[name]}"), name)
