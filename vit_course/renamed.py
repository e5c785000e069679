"""The module names of the releases before the kit had a package of its own.

A class folder made then names them, in its ``nbgrader_config.py`` and in its hidden checks, and goes on grading.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

# old name, of a module or of a package with all that it holds → the new one; the longest that fits counts
NAMES = {
    "vit_course.checks": "exercise_kit.engine",
    **{f"vit_course.checks.{name}": f"vit_course.exercises.{name}" for name in (
        "catalogue", "misconceptions", "pairs", "practice", "practice_pieces", "weights_file", "weights_model",
    )},
    "vit_course.checks.lessons": "vit_course.exercises.checks",
    "vit_course.grading": "exercise_kit",
    "vit_course.grading.submissions": "exercise_kit.submission",
    "vit_course.grading.judging": "exercise_kit.judge",
    **{f"vit_course.grading.judging.{name}": f"vit_course.exercises.judging.{name}" for name in (
        "attends", "exam", "practice_exam", "reference", "results", "wrong_attends",
    )},
    "vit_course.grading.classroom": "exercise_kit.nbgrader",
    "vit_course.grading.simulating": "exercise_kit.simulate",
    "vit_course.authoring": "exercise_kit.authoring",
    **{f"vit_course.{name}": f"exercise_kit.{name}" for name in ("files", "reasons", "refusals", "supported")},
}  # fmt: skip
# module → what could once be imported from it, and the module where that is now
MOVED = {
    "vit_course.config": {"PRESETS": "vit_course.recipes.presets"},
    "vit_course.patches": {"conv_from_linear": "vit_course.pretrained"},
    "vit_course.positions": {"resize_positions": "vit_course.pretrained"},
    "vit_course.vit": {"initialise": "vit_course.initialisation"},
}


class Renamed(MetaPathFinder, Loader):
    """Finds a module under its old name: the one module that there is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of an old name, or of a module that something has moved out of; None for any other."""
        if fullname in MOVED:
            return _with_moved(PathFinder.find_spec(fullname, path, target), MOVED[fullname])
        return ModuleSpec(fullname, self, is_package=True) if new_name(fullname) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module by its new name."""
        module = import_module(new_name(spec.name) or "")
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """It has run already, and stays what it is."""
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


def _with_moved(spec: ModuleSpec | None, moved: Mapping[str, str]) -> ModuleSpec | None:
    """The spec of a module that also finds what has moved out of it, when somebody asks for it there."""
    if spec is None or spec.loader is None:
        return spec
    execute = spec.loader.exec_module

    def exec_module(module: ModuleType) -> None:
        def find(name: str) -> Any:
            if name not in moved:
                raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
            return getattr(import_module(moved[name]), name)

        execute(module)
        vars(module)["__getattr__"] = find

    vars(spec.loader)["exec_module"] = exec_module
    return spec


def new_name(name: str) -> str | None:
    """What a module is called that once had this name; None where it never had one."""
    parts = name.split(".")
    for length in range(len(parts), 1, -1):
        if new := NAMES.get(".".join(parts[:length])):
            return ".".join((new, *parts[length:]))
    return None


def install() -> None:
    """From here on old names lead to the modules."""
    if not any(isinstance(each, Renamed) for each in sys.meta_path):
        sys.meta_path.insert(0, Renamed())  # else Python's own finder would load a package's modules a second time
