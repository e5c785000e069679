"""The library of misconceptions, to be read: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from vit_course.checks.catalogue import EXERCISES
from vit_course.checks.exercise import Exercise

if TYPE_CHECKING:
    from rich.table import Table


def as_json() -> str:
    """A list with an object for every misconception: exercise, lesson, name, explanation, question, section."""
    entries = [
        {
            "exercise": exercise.name,
            "lesson": exercise.lesson,
            "name": wrong.cause.name,
            "explanation": wrong.cause.explanation,
            "question": wrong.cause.question,
            "section": wrong.cause.section,
        }
        for exercise in _with_their_own()
        for wrong in exercise.misconceptions
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False)


def as_table() -> Table:
    """The same as a table for a terminal: a section for each exercise, a row for each of its misconceptions."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(max_width=34)
    table.add_column()
    for exercise in _with_their_own():
        table.add_row(Text(f"\n{exercise.name}", style="bold"), Text(f"\n{exercise.lesson}", style="dim"))
        for wrong in exercise.misconceptions:
            table.add_row(Text(f"  {wrong.name}"), Text(wrong.cause.explanation))
    return table


def _with_their_own() -> Iterator[Exercise]:
    """Exercises, without the bug hunts that share another one's misconceptions."""
    shown: list[object] = []
    for exercise in EXERCISES.values():
        if exercise.misconceptions and not any(exercise.misconceptions is library for library in shown):
            shown.append(exercise.misconceptions)
            yield exercise
