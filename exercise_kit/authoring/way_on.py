"""What the builder adds below the hints of an exercise: how to go on without an answer, and how to begin again."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from exercise_kit.authoring.lesson import Cell, Lesson, Role
from exercise_kit.engine.course import course
from exercise_kit.engine.course_named import read_package_name

_LAST_HINT = "<summary>Hint 3"
_FOLDED = "\n<details><summary>Still stuck, or want to start over?</summary>\n\n{}\n\n</details>"
_BORROW = '`borrow("{0}")` in a new cell gives you the course\'s version, so that you can go on. It earns no points. '
_RESET = '`reset("{0}")` gives you the empty cell again.'


def add_borrowing_hints(lesson: Lesson, lent: Collection[str]) -> Lesson:
    """The lesson with a folded line below each exercise's last hint.

    Args:
        lesson: as it is written.
        lent: the names of what can be borrowed.
    """
    cells: list[Cell] = []
    exercise = ""
    for cell in lesson.cells:
        if cell.role is Role.EXERCISE:
            exercise = cell.name
        elif exercise and cell.is_markdown and _LAST_HINT in cell.source:
            words = (_BORROW if exercise in lent else "") + _RESET
            cell = replace(cell, source=cell.source + _FOLDED.format(words.format(exercise)))
            exercise = ""
        cells.append(cell)
    return replace(lesson, cells=tuple(cells))


def list_borrowable_names(root: Path) -> set[str]:
    """Return what the course's modules of right parts define, by their text; nothing of them is imported.

    Args:
        root: a clone of the course.
    """
    modules = course().modules
    paths = (root / read_package_name() / f"{each}.py" for each in (*modules.answers, *modules.tools))
    trees = [ast.parse(path.read_text("utf-8")) for path in paths if path.is_file()]
    return {each.name for tree in trees for each in tree.body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
