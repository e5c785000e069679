"""The cells in which students write a prediction: a lesson's source has the author's guess, the student's three dots.

A prediction is a line ``predict("name", guess)`` of a plain code cell, with ``choices=(...)`` where no number is asked
for; a later cell of the same lesson has its ``reveal("name", result)``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from exercise_kit.authoring.lesson import Cell, Lesson, Problem, Role

UNFILLED = "..."


class ClearPredictions(NbGraderPreprocessor):
    """A step of making the students' version: the author's guesses become three dots."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict[str, Any], _: int
    ) -> tuple[NotebookNode, dict[str, Any]]:
        """Take the guesses out of a cell, in place."""
        if cell.cell_type == "code" and "predict(" in cell.source:
            cell.source = remove_guesses(cell.source)
        return cell, resources


def remove_guesses(source: str) -> str:
    """A cell with three dots in the place of each guess; as it was where it is not Python.

    >>> remove_guesses('predict("rows", 0.5)  # a number')
    'predict("rows", ...)  # a number'
    """
    try:
        calls = list(_find_calls_of(ast.parse(source), "predict"))
    except SyntaxError:
        return source
    lines = [line.encode() for line in source.split("\n")]  # columns of a syntax tree count bytes
    for call in calls:
        if len(call.args) == 2 and (guess := call.args[1]).end_lineno == guess.lineno:
            line = lines[guess.lineno - 1]
            lines[guess.lineno - 1] = line[: guess.col_offset] + UNFILLED.encode() + line[guess.end_col_offset :]
    return b"\n".join(lines).decode()


def find_prediction_problems(lesson: Lesson) -> Iterator[Problem]:
    """Find what is wrong with a lesson's predictions: the author's guess, its name, and whether it is ever revealed."""
    guessed: dict[str, Cell] = {}
    revealed: set[str] = set()
    for cell in lesson.cells:
        if cell.is_markdown or not any(each in cell.source for each in ("predict(", "reveal(")):
            continue
        try:
            tree = ast.parse(cell.source)
        except SyntaxError:
            continue  # said elsewhere
        for call in _find_calls_of(tree, "predict"):
            name = _read_prediction_name(call)
            if problem := _describe_prediction_problem(call, cell, name in guessed):
                yield lesson.problem(f'{problem}; write predict("name", guess) in a plain cell', cell, call.lineno)
            guessed[name] = cell
        for call in _find_calls_of(tree, "reveal"):
            if _read_prediction_name(call) not in guessed:
                yield lesson.problem(
                    f"reveal of {_read_prediction_name(call)!r}, which no cell above predicts", cell, call.lineno
                )
            revealed.add(_read_prediction_name(call))
    for name, cell in guessed.items():
        if name not in revealed:
            yield lesson.problem(f'prediction {name!r} is never revealed; add reveal("{name}", result) below', cell)


def _describe_prediction_problem(call: ast.Call, cell: Cell, is_name_taken: bool) -> str | None:
    if is_name_taken:
        return "a second prediction of that name"
    if cell.role is not Role.CODE or len(call.args) != 2 or not _read_prediction_name(call):
        return "a prediction has a name and a guess, and no other role"
    guess = call.args[1]
    if not _is_literal(guess):
        return "the author's guess is a number or a text"
    if isinstance(guess, ast.Constant) and isinstance(guess.value, str) and guess.value not in _read_choices(call):
        return "a guess in words is one of its choices=(...), which are written out"
    return None


def _read_choices(call: ast.Call) -> tuple[str, ...]:
    """The choices that are written out in a call; none where a name stands for them."""
    written = next((each.value for each in call.keywords if each.arg == "choices"), None)
    try:
        return tuple(ast.literal_eval(written)) if written else ()
    except (ValueError, TypeError):
        return ()


def _is_literal(node: ast.expr) -> bool:
    try:
        return isinstance(ast.literal_eval(node), int | float | str) and node.end_lineno == node.lineno
    except ValueError:
        return False


def _find_calls_of(tree: ast.Module, function: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == function:
            yield node


def _read_prediction_name(call: ast.Call) -> str:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
