"""Answers by name, as the library has them: right and wrong ones, as objects or as cells, and the cell students get."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from exercise_kit.engine.exercise import Misconception
from exercise_kit.simulate.cells import write_cell
from exercise_kit.simulate.modules import load_right_variants
from vit_course.exercises.catalog import EXERCISES

_STUBS = Path(__file__).parents[1] / "vit_course" / "exercises" / "stubs.json"


def find_known_mistake(exercise: str, name: str) -> Misconception:
    """A known mistake of an exercise; the wrong answer is its ``objects``."""
    return next(each for each in EXERCISES[exercise].misconceptions if each.name == name)


@cache
def write_answer_cell(exercise: str, mistake: str = "") -> str:
    """The source of a cell with a known mistake, or with a right answer in another style than the reference's."""
    objects = find_known_mistake(exercise, mistake).objects if mistake else load_right_variants()[exercise][-1]
    return write_cell(dict(zip(EXERCISES[exercise].objects, objects, strict=True)), exercise)


@cache
def read_empty_cell(exercise: str) -> str:
    """The source of an exercise's cell as students get it."""
    return str(json.loads(_STUBS.read_text(encoding="utf-8"))[exercise])
