"""The right variants that a clone of the course keeps for its tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from exercise_kit.simulate.modules import VARIANTS


def right_variants(root: Path) -> dict[str, tuple[tuple[Any, ...], ...]]:
    """Each exercise's right variants, as tuples of its objects; nothing where ``root`` has none.

    A module that needs a package which is not installed here is left out.
    """
    found: dict[str, tuple[tuple[Any, ...], ...]] = {}
    for path in sorted((root / "tests" / "course" / "variants").glob("[a-z]*.py")):
        module = _loaded(path)
        for exercise, variants in getattr(module, "RIGHT", {}).items():
            found[exercise] = tuple(each if isinstance(each, tuple) else (each,) for each in variants)
    return found


def _loaded(path: Path) -> ModuleType | None:
    name = f"{VARIANTS}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        return None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError:
        del sys.modules[name]
        return None
    return module
