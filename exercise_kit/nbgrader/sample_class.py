"""Submissions of invented students, to try a class folder out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, RUBRIC
from exercise_kit.files import write


def model_answers(class_dir: Path, lesson: str) -> dict[str, str]:
    """The source of every exercise and question of a lesson, answered as in the class's `source/` folder.

    A question's rubric, which is for graders, is left out.
    """
    notebook = _read(class_dir / "source" / lesson / f"{lesson}.ipynb")
    return {name: _as_student(cell.source) for name, cell in _answer_cells(notebook).items()}


def write_submissions(class_dir: Path, lesson: str, answers: Mapping[str, Mapping[str, str]]) -> dict[str, Path]:
    """Hand in a lesson for some students.

    Args:
        class_dir: a folder made by `new_class`, where the lesson has been released by `generate_assignment`.
        lesson: the lesson's name.
        answers: for each student, the whole source of each cell that they filled in, by the name of its
            exercise or question; what is not named stays as released.

    Returns:
        For each student, the notebook written below `submitted/`.

    Raises:
        ValueError: the lesson has no exercise or question of a name that is given.
        FileNotFoundError: the lesson has not been released.
    """
    released = class_dir / "release" / lesson / f"{lesson}.ipynb"
    written = {}
    for student, sources in answers.items():
        notebook = _read(released)
        cells = _answer_cells(notebook)
        for name, source in sources.items():
            if name not in cells:
                raise ValueError(f"{lesson} has no exercise or question {name!r}; it has {', '.join(cells)}")
            cells[name].source = source
        target = class_dir / "submitted" / student / lesson / f"{lesson}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, nbformat.writes(notebook).encode())
        written[student] = target
    return written


def _as_student(source: str) -> str:
    answer = source.partition(RUBRIC)[0].rstrip()
    lines = (line for line in answer.split("\n") if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))
    return "\n".join(lines)


def _read(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def _answer_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    roles = ((cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells)
    return {role["grade_id"]: cell for cell, role in roles if role.get("solution")}
