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
from tests.proof.mutations import iterate_mutations
from vit_course.exercises.catalog import EXERCISES

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SolutionMutant:
    """A model solution with one slip: see :class:`tests.proof.mutants.Mutant`."""

    name: str
    definition: ast.stmt = field(repr=False)

    def objects(self, exercise: str) -> tuple[Callable[..., Any], ...]:
        """The exercise's objects, made anew in a lesson's surroundings."""
        lesson, number = _find_exercise_cell(exercise)
        changed = {getattr(self.definition, "name", ""): self.definition}
        namespace = dict(_run_cells_before(lesson, number))
        _run_statements(
            [changed.get(getattr(each, "name", ""), each) for each in _parse_cell(lesson, number)], namespace
        )
        return tuple(namespace[name] for name in EXERCISES[exercise].objects)


def list_solved() -> tuple[str, ...]:
    """The exercises with a cell to write."""
    return tuple(exercise.name for exercise in EXERCISES.values() if not exercise.file)


def solution_mutants(exercise: str) -> Iterator[SolutionMutant]:
    """Every mutant of what stands in an exercise's cell, in the order of the source."""
    for statement in _parse_cell(*_find_exercise_cell(exercise)):
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            for name, definition in iterate_mutations(statement):
                yield SolutionMutant(name, definition)


@cache
def _read_lesson(name: str) -> Lesson:
    return read_lesson(ROOT, ROOT / "solutions" / f"{name}.py")


def _find_exercise_cell(exercise: str) -> tuple[str, int]:
    """The lesson in which an exercise is written, and the place of its cell there."""
    lesson = EXERCISES[exercise].lesson
    return lesson, next(
        place
        for place, cell in enumerate(_read_lesson(lesson).cells)
        if cell.role is Role.EXERCISE and cell.name == exercise
    )


@cache
def _parse_cell(lesson: str, place: int) -> list[ast.stmt]:
    return ast.parse(_read_lesson(lesson).cells[place].source).body


@cache
def _run_cells_before(lesson: str, place: int) -> dict[str, Any]:
    """Return what a cell finds: the lesson's imports, the parts of earlier lessons, and the exercises above it."""
    namespace: dict[str, Any] = {"__name__": f"a solution of {lesson}"}
    for number, cell in enumerate(_read_lesson(lesson).cells[:place]):
        if cell.role is Role.EXERCISE:
            _run_statements(_parse_cell(lesson, number), namespace)
        elif cell.role is Role.CODE and "import" in cell.source:
            _run_statements(list(filter(_is_import_or_own, ast.parse(cell.source).body)), namespace)
    return namespace


def _is_import_or_own(statement: ast.stmt) -> bool:
    """Say whether a statement of a lesson imports something, or takes parts of earlier lessons by ``own``."""
    value = getattr(statement, "value", None)
    takes = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "own"
    return takes or isinstance(statement, ast.Import | ast.ImportFrom)


def _run_statements(statements: list[ast.stmt], namespace: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = ast.fix_missing_locations(ast.Module(statements, []))
        exec(compile(tree, "<a model solution>", "exec"), namespace)
