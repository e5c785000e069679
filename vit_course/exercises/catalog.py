"""All exercises by name, in the order of the course: found in the lessons' folders, not kept by hand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import vit_course.exercises
from exercise_kit.engine.exercise import Exercise


def _find_exercises() -> dict[str, Exercise]:
    """Those of each lesson in the order that its package gives; a folder that it leaves out comes last."""
    found: dict[str, Exercise] = {}
    for lesson in sorted(each.name for each in iter_modules(vit_course.exercises.__path__) if each.ispkg):
        package = import_module(f"vit_course.exercises.{lesson}")
        folders = sorted(each.parent.name for each in Path(package.__path__[0]).glob("*/claims.py"))
        for name in dict.fromkeys((*package.ORDER, *folders)):
            module = import_module(f"{package.__name__}.{name}.claims")
            found |= {
                each.name: each
                for each in vars(module).values()
                if isinstance(each, Exercise) and each.name not in found and each.lesson == package.LESSON
            }
    return found


EXERCISES = _find_exercises()


def load_graded() -> None:
    """Add what only grading asks to the exercises, from ``graded.py`` beside ``claims.py``: in the clone, in no wheel.

    Raises:
        ImportError: this is no clone.
    """
    import_module("vit_course.staff")
    for file in sorted(Path(vit_course.exercises.__path__[0]).glob("*/*/graded.py")):
        import_module(f"vit_course.exercises.{file.parents[1].name}.{file.parent.name}.graded")
