"""The library's word on a misconception that a result names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Misconception
from exercise_kit.engine.in_training import InTraining

BETWEEN = ", and "  # in the name of two at once


@dataclass(frozen=True)
class Known:
    """A misconception as the page tells it; all but the name is empty where the library no longer has it."""

    name: str
    explanation: str = ""
    question: str = ""
    section: str = ""
    in_training: str = ""


def known(exercise: str, name: str) -> Iterator[Known]:
    """The misconception of that name, or the two of which it is made."""
    library = _library(exercise)
    parts = name.split(BETWEEN)
    if name not in library and len(parts) > 1 and all(part in library for part in parts):
        yield from (library[part] for part in parts)
    else:
        yield library.get(name, Known(name))


@cache
def _library(exercise: str) -> dict[str, Known]:
    found = course().exercises.get(exercise)
    return {each.name: _told(each) for each in found.misconceptions} if found else {}


def _told(wrong: Misconception) -> Known:
    cause = wrong.cause
    return Known(cause.name, cause.explanation, cause.question, cause.section, _in_training(wrong))


def _in_training(wrong: Misconception) -> str:
    if wrong.looks.kind is InTraining.UNMEASURED:
        return ""
    return wrong.looks.told or f"{wrong.looks.kind[:1].upper()}{wrong.looks.kind[1:]}."
