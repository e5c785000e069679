"""All exercises by name, in the order of the course: found in the lessons' folders, not kept by hand."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import vit_course.exercises
from exercise_kit.engine.exercise import Exercise


def _exercises() -> dict[str, Exercise]:
    """Those of each lesson in the order that its package gives; a folder or module that it leaves out comes last."""
    found: dict[str, Exercise] = {}
    for lesson in sorted(each.name for each in iter_modules(vit_course.exercises.__path__) if each.ispkg):
        package = import_module(f"vit_course.exercises.{lesson}")
        folders = {
            each.parent.name: f"{each.parent.name}.claims" for each in Path(package.__path__[0]).glob("*/claims.py")
        }
        modules = folders | {each.name: each.name for each in iter_modules(package.__path__)}
        for name in dict.fromkeys((*package.ORDER, *sorted(modules))):
            module = import_module(f"{package.__name__}.{modules[name]}")
            found |= {
                each.name: each
                for each in vars(module).values()
                if isinstance(each, Exercise) and each.name not in found and each.lesson == package.LESSON
            }
    return found


EXERCISES = _exercises()
