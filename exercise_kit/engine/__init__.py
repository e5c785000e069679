"""What runs beside the student: public checks, verdicts in words, and the names of mistakes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from exercise_kit.engine.verdict import CheckResult, Report, Verdict

if TYPE_CHECKING:
    from exercise_kit.engine.borrow_and_reset import borrow, reset
    from exercise_kit.engine.own_parts import keep, own
    from exercise_kit.engine.run import check
    from exercise_kit.progress.predictions import predict, reveal
    from exercise_kit.progress.summary import progress

__all__ = [
    "CheckResult",
    "Report",
    "Verdict",
    "borrow",
    "check",
    "keep",
    "own",
    "predict",
    "progress",
    "reset",
    "reveal",
]

_MODULE_OF = {"check": "engine.run", "keep": "engine.own_parts", "own": "engine.own_parts"}
_MODULE_OF |= {"borrow": "engine.borrow_and_reset", "reset": "engine.borrow_and_reset"}
_MODULE_OF |= {"predict": "progress.predictions", "reveal": "progress.predictions", "progress": "progress.summary"}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'exercise_kit.engine' has no attribute {name!r}")
    notebook = import_module("exercise_kit.engine.notebook_or_script")
    notebook.install_ipython_hooks()
    notebook.print_how_work_is_kept()
    here = import_module("exercise_kit.submission.released").find_current_class
    import_module("exercise_kit.engine.class_exercises").set_default_class(here)  # an author tries a lesson out
    # with the catalog and torch, for those who check something
    return getattr(import_module(f"exercise_kit.{_MODULE_OF[name]}"), name)
