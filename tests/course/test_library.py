"""The misconceptions as a table and as JSON."""

from __future__ import annotations

import json
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from exercise_kit.engine import library
from exercise_kit.engine.exercise import Exercise
from vit_course.exercises.catalog import EXERCISES

FIELDS = {"exercise", "lesson", "name", "explanation", "question", "section", "in_training", "page"}
MEASURED = {"accuracy", "right"}


def test_json_holds_every_misconception_once() -> None:
    entries = json.loads(library.make_misconceptions_json())
    assert all(set(entry) in (FIELDS, FIELDS | MEASURED) and all(entry.values()) for entry in entries)
    named = [(entry["exercise"], entry["name"]) for entry in entries]
    assert len(set(named)) == len(named)
    known = {wrong.name for exercise in EXERCISES.values() for wrong in exercise.misconceptions}
    assert {name for _, name in named} == known


def test_a_bug_hunt_shares_the_misconceptions_of_its_exercise() -> None:
    exercises = {entry["exercise"] for entry in json.loads(library.make_misconceptions_json())}
    assert "patchify" in exercises
    assert "fix_patchify" not in exercises
    assert EXERCISES["fix_patchify"].misconceptions is EXERCISES["patchify"].misconceptions


@pytest.mark.parametrize("width", [60, 200])
def test_the_table_names_them_all(width: int) -> None:
    out = StringIO()
    Console(file=out, width=width, color_system=None).print(library.make_misconceptions_table())
    text = " ".join(out.getvalue().split())
    assert "column order" in text
    for name in {entry["exercise"] for entry in json.loads(library.make_misconceptions_json())} if width > 100 else ():
        assert name in text


def test_letters_of_every_language_stay_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    exercise = Exercise("größe", "00_start")

    @exercise.misconception("Wie groß?", "00_start, Größe")
    def verkehrt_herum() -> None:
        """Kleiner < größer & "andersherum"."""

    monkeypatch.setattr(library, "course", lambda: SimpleNamespace(exercises={"größe": exercise}, site=""))
    assert "Kleiner < größer" in library.make_misconceptions_json()
    assert json.loads(library.make_misconceptions_json())[0]["name"] == "verkehrt herum"


def test_an_exercise_without_misconceptions_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    exercises = {"first": Exercise("first", "00_start")}
    monkeypatch.setattr(library, "course", lambda: SimpleNamespace(exercises=exercises, site=""))
    assert json.loads(library.make_misconceptions_json()) == []
    assert library.make_misconceptions_table().row_count == 0
