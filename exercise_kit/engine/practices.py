"""The practices: surroundings in which a student's function is tried out, each a function of that function.

They stand in files that hold no answer and import nothing else of the course, so that the judge can lay them into
the sandbox as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

_HOMES = tuple(f"exercise_kit.engine.practice_{each}" for each in ("devices", "example", "calls"))
_PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {}


def add(homes: Iterable[str]) -> None:
    """Know the practices of these modules too, by their dotted names; those of a later lesson may not be there.

    A worker does this before a student's cells run: they may leave nothing that imports.
    """
    for home in homes:
        try:
            _PRACTICES.update(import_module(home).PRACTICES)
        except ModuleNotFoundError as missing:
            if missing.name is None or not home.startswith(missing.name):
                raise


add(_HOMES)


def practice_called(name: str) -> Callable[..., dict[str, Any]]:
    """The practice of that name: it gets the student's function and named inputs, and gives what was seen.

    Raises:
        KeyError: there is none, or it is of a later lesson than this sandbox's.
    """
    return _PRACTICES[name]
