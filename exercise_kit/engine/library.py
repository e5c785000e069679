"""The library of misconceptions, to be read: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Exercise, Misconception
from exercise_kit.engine.in_training import InTraining, TrainingEffect, read_training_setup
from exercise_kit.engine.verdict import map_names_to_addresses

if TYPE_CHECKING:
    from rich.table import Table


def make_misconceptions_json() -> str:
    """A list with an object for every misconception: exercise, lesson, name, explanation, question, section.

    And how it looks ``in_training``; where a model was trained with it, its ``accuracy`` and that of the ``right`` one;
    and where the course has a site, the address of its ``page``.
    """
    entries = [
        {
            "exercise": exercise.name,
            "lesson": exercise.lesson,
            "name": wrong.cause.name,
            "explanation": wrong.cause.explanation,
            "question": wrong.cause.question,
            "section": wrong.cause.section,
            **_make_training_fields(wrong.effect),
            **_make_page_field(wrong),
        }
        for exercise in iterate_exercises_with_own_mistakes()
        for wrong in exercise.misconceptions
    ]
    return json.dumps(entries, indent=2, ensure_ascii=False)


def _make_page_field(mistake: Misconception) -> dict[str, str]:
    found = map_names_to_addresses(mistake.cause.pages, course().site)
    return {"page": found[mistake.name]} if found else {}


def _make_training_fields(effect: TrainingEffect) -> dict[str, object]:
    entry: dict[str, object] = {"in_training": str(effect.kind)}
    return entry if effect.accuracy is None else entry | {"accuracy": effect.accuracy, "right": effect.right}


def make_misconceptions_table() -> Table:
    """The same as a table for a terminal: a section for each exercise, a row for each of its misconceptions.

    The last column is a word for how it looks in training, and the accuracy where it was measured; a line for each
    of these words ends the table.
    """
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(max_width=28)
    table.add_column()
    table.add_column(no_wrap=True)

    def add_heading(name: str, about: str) -> None:
        table.add_row(Text(f"\n{name}", style="bold"), Text(f"\n{about}", style="dim"))

    def add_misconception_row(name: str, text: str, word: str = "") -> None:
        table.add_row(Padding(Text(name), (0, 0, 0, 2)), Text(text), Text(word))

    for exercise in iterate_exercises_with_own_mistakes():
        add_heading(exercise.name, exercise.lesson)
        for wrong in exercise.misconceptions:
            add_misconception_row(wrong.name, wrong.cause.explanation, _write_training_label(wrong.effect))
    if table.row_count:
        add_heading("In training", f"what the last column says{_write_setup_and_right_accuracy()}")
        for kind in InTraining:
            add_misconception_row(kind.name.lower(), f"{kind}.".capitalize())
    return table


def _write_setup_and_right_accuracy() -> str:
    measured = (wrong.effect.right for exercise in course().exercises.values() for wrong in exercise.misconceptions)
    right, trained = next((each for each in measured if each is not None), None), read_training_setup()
    if right is None or trained is None:
        return ""
    return f"; {trained.model} on {trained.data}, where the right one reaches {right:.1%}"


def _write_training_label(effect: TrainingEffect) -> str:
    measured = "" if effect.accuracy is None else f" {effect.accuracy:.1%}"
    return f"{effect.kind.name.lower()}{measured}"


def iterate_exercises_with_own_mistakes() -> Iterator[Exercise]:
    """Exercises whose misconceptions are their own: without the bug hunts that share another one's."""
    shown: list[object] = []
    for exercise in course().exercises.values():
        if exercise.misconceptions and not any(exercise.misconceptions is library for library in shown):
            shown.append(exercise.misconceptions)
            yield exercise
