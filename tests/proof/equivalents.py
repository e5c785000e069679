"""The mutants that no hidden check can fail, one by one, each under the reason: in ``equivalents.txt`` those of the
reference, in ``equivalent_solutions.txt`` those of the model solutions.

Such a file has a line ``== exercise`` or ``== exercise, exercise`` for those that follow, a line ``-- reason`` for the
mutants that follow, and one line for each mutant: its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


def equivalents() -> Mapping[str, Mapping[str, str]]:
    """Exercise → the name of a mutant of the reference → why no check has to fail it.

    Raises:
        ValueError: a line stands in the wrong place, or twice; with its number.
    """
    return _read_list(HERE / "equivalents.txt")


def equivalent_solutions() -> Mapping[str, Mapping[str, str]]:
    """The same for the mutants of the model solutions."""
    return _read_list(HERE / "equivalent_solutions.txt")


@cache
def _read_list(file: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    exercises: list[str] = []
    reason = ""
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if line.startswith("== "):
            exercises, reason = line.removeprefix("== ").split(", "), ""
        elif line.startswith("-- "):
            reason = line.removeprefix("-- ")
        elif line:
            if not exercises or not reason:
                raise ValueError(f"line {number}: a mutant needs an exercise and a reason above it")
            for exercise in exercises:
                if line in found.setdefault(exercise, {}):
                    raise ValueError(f"line {number}: {exercise} lists this mutant twice")
                found[exercise][line] = reason
    return found
