"""Turn a lesson into notebooks: the one with answers, which is nbgrader's source, and the student's."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearMarkScheme,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

from exercise_kit.authoring.figures import inline_figures
from exercise_kit.authoring.lesson import Cell, Lesson, Role
from exercise_kit.authoring.opening import badge_source, setup_source
from exercise_kit.conventions import CODE_STUB, NBGRADER_SCHEMA, SETUP_GRADE_ID, TEXT_STUB, check_grade_id

# no versions: they would differ from machine to machine
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "mimetype": "text/x-python"}
LONGEST_CELL_ID = 64
NBFORMAT, NBFORMAT_MINOR = 4, 5


def solution_notebook(lesson: Lesson, root: Path, repository: str) -> NotebookNode:
    """The notebook with answers, solution markers kept: what nbgrader calls the source version.

    Args:
        lesson: a lesson without problems.
        root: the repository's root, where the figures are.
        repository: the repository's address.
    """
    locked = {"nbgrader": _nbgrader(SETUP_GRADE_ID, locked=True)}
    opening = [
        _node("markdown", _cell_id(lesson, "badge"), badge_source(repository, lesson.name), {}),
        _node("code", _cell_id(lesson, "setup"), setup_source(repository), locked),
    ]
    title, *others = (_notebook_cell(lesson, cell, root) for cell in lesson.cells)
    notebook: NotebookNode = nbformat.from_dict(
        {
            "cells": [title, *opening, *others],
            "metadata": {"kernelspec": KERNEL, "language_info": LANGUAGE},
            "nbformat": NBFORMAT,
            "nbformat_minor": NBFORMAT_MINOR,
        }
    )
    return notebook


def student_notebook(solution: NotebookNode) -> NotebookNode:
    """What `nbgrader generate_assignment` makes of the notebook with answers, without its gradebook."""
    steps = [
        LockCells(),
        ClearSolutions(code_stub={"python": CODE_STUB}, text_stub=TEXT_STUB),
        ClearOutput(),
        CheckCellMetadata(),
        ClearHiddenTests(),
        ClearMarkScheme(),
        ComputeChecksums(),
        CheckCellMetadata(),
    ]
    notebook = copy.deepcopy(solution)
    resources: dict[str, Any] = {}
    for step in steps:
        notebook, resources = step(notebook, resources)
    return notebook


def notebook_bytes(notebook: NotebookNode) -> bytes:
    """The notebook as a file: the same bytes for the same notebook, valid against nbformat's schema."""
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook)
    return (text.rstrip("\n") + "\n").encode("utf-8")


def _notebook_cell(lesson: Lesson, cell: Cell, root: Path) -> dict[str, Any]:
    metadata: dict[str, Any] = {"tags": list(cell.tags)} if cell.tags else {}
    source, points = cell.source, cell.points
    match cell.role:
        case Role.EXERCISE:
            metadata["nbgrader"] = _nbgrader(cell.name, solution=True)
        case Role.CHECK:
            grade_id = check_grade_id(cell.name)
            metadata["nbgrader"] = _nbgrader(grade_id, grade=True, locked=True, points=points)
            source = f"{source.removesuffix(')')}, points={points:g})"
        case Role.QUESTION:
            metadata["nbgrader"] = _nbgrader(cell.name, grade=True, solution=True, points=points)
    if cell.is_markdown:
        source = inline_figures(source, root / lesson.path.parent)
    label = cell.name or f"{cell.number:02d}"
    kind = "markdown" if cell.is_markdown else "code"
    return _node(kind, _cell_id(lesson, f"{cell.role.value}-{label}"), source, metadata)


def _node(kind: str, cell_id: str, source: str, metadata: dict[str, Any]) -> dict[str, Any]:
    run: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": cell_id, "source": source, "metadata": metadata, **run}


def _nbgrader(
    grade_id: str,
    *,
    grade: bool = False,
    solution: bool = False,
    locked: bool = False,
    points: float | None = None,
) -> dict[str, Any]:
    worth = {} if points is None else {"points": points}
    flags = {"grade": grade, "solution": solution, "locked": locked, "task": False}
    return {"schema_version": NBGRADER_SCHEMA, "grade_id": grade_id, **flags, **worth}


def _cell_id(lesson: Lesson, label: str) -> str:
    full = f"{lesson.name}-{label}"
    if len(full) <= LONGEST_CELL_ID:
        return full
    digest = hashlib.sha256(full.encode("utf-8")).hexdigest()[:8]
    return f"{full[: LONGEST_CELL_ID - len(digest) - 1]}-{digest}"
