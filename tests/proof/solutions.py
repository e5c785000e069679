"""Mutants of the lessons' model solutions: what a student is asked for and no more, with one slip."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from exercise_kit.authoring.lesson import Lesson, Role, read_lesson
from tests.proof.mutations import mutations
from vit_course.exercises.catalog import EXERCISES

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SolutionMutant:
    """A model solution with one slip: see :class:`tests.proof.mutants.Mutant`."""

    name: str
    definition: ast.stmt = field(repr=False)

    def objects(self, exercise: str) -> tuple[Callable[..., Any], ...]:
        """The exercise's objects, made anew in a lesson's surroundings."""
        lesson, number = _home(exercise)
        changed = {getattr(self.definition, "name", ""): self.definition}
        namespace = dict(_before(lesson, number))
        _run([changed.get(getattr(each, "name", ""), each) for each in _cell(lesson, number)], namespace)
        return tuple(namespace[name] for name in EXERCISES[exercise].objects)


def list_solved() -> tuple[str, ...]:
    """The exercises with a cell to write."""
    return tuple(exercise.name for exercise in EXERCISES.values() if not exercise.file)


def solution_mutants(exercise: str) -> Iterator[SolutionMutant]:
    """Every mutant of what stands in an exercise's cell, in the order of the source."""
    for statement in _cell(*_home(exercise)):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for name, definition in mutations(statement):
                yield SolutionMutant(name, definition)


@cache
def _lesson(name: str) -> Lesson:
    return read_lesson(ROOT, ROOT / "solutions" / f"{name}.py")


def _home(exercise: str) -> tuple[str, int]:
    """The lesson in which an exercise is written, and the place of its cell there."""
    lesson = EXERCISES[exercise].lesson
    return lesson, next(
        place
        for place, cell in enumerate(_lesson(lesson).cells)
        if cell.role is Role.EXERCISE and cell.name == exercise
    )


@cache
def _cell(lesson: str, place: int) -> list[ast.stmt]:
    return ast.parse(_lesson(lesson).cells[place].source).body


@cache
def _before(lesson: str, place: int) -> dict[str, Any]:
    """Return what a cell finds: the lesson's imports, the parts of earlier lessons, and the exercises above it."""
    namespace: dict[str, Any] = {"__name__": f"a solution of {lesson}"}
    for number, cell in enumerate(_lesson(lesson).cells[:place]):
        if cell.role is Role.EXERCISE:
            _run(_cell(lesson, number), namespace)
        elif cell.role is Role.CODE and "import" in cell.source:
            _run(list(filter(_gives_parts, ast.parse(cell.source).body)), namespace)
    return namespace


def _gives_parts(statement: ast.stmt) -> bool:
    """Say whether a statement of a lesson imports something, or takes parts of earlier lessons by ``own``."""
    value = getattr(statement, "value", None)
    takes = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "own"
    return takes or isinstance(statement, ast.Import | ast.ImportFrom)


def _run(statements: list[ast.stmt], namespace: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.fix_missing_locations(ast.Module(statements, []))
        exec(compile(tree, "<a model solution>", "exec"), namespace)
