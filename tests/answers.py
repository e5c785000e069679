"""Answers by name, as the library has them: wrong ones, and the cell that students get."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from exercise_kit.engine.exercise import Misconception
from vit_course.exercises.catalog import EXERCISES

_STUBS = Path(__file__).parents[1] / "vit_course" / "exercises" / "stubs.json"


def known_mistake(exercise: str, name: str) -> Misconception:
    """A known mistake of an exercise; the wrong answer is its ``objects``."""
    return next(each for each in EXERCISES[exercise].misconceptions if each.name == name)


@cache
def empty_cell(exercise: str) -> str:
    """The source of an exercise's cell as students get it."""
    return str(json.loads(_STUBS.read_text(encoding="utf-8"))[exercise])
