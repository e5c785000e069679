"""Write what a simulated student hands in: the released notebook, filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exercise_kit.conventions import check_grade_id
from exercise_kit.simulate.answers import Answer


@dataclass(frozen=True)
class Written:
    """The parts of a notebook that a student has filled in.

    Attributes: ``answers`` by exercise, ``comments`` by exercise (a line above the code), ``questions`` by their
    names (those that were answered), ``points`` of the exercises.
    """

    answers: Mapping[str, Answer]
    comments: Mapping[str, str]
    questions: Mapping[str, str]
    points: Mapping[str, float]


def filled_in(released: Mapping[str, Any], written: Written) -> bytes:
    """The bytes of a submitted notebook.

    Args:
        released: the notebook that students got.
        written: what this one wrote.
    """
    cells = [filled for cell in released["cells"] for filled in _filled(cell, written)]
    text = json.dumps({**released, "cells": cells}, ensure_ascii=False, indent=1, sort_keys=True)
    return (text + "\n").encode()


def _filled(cell: Mapping[str, Any], written: Written) -> Sequence[Mapping[str, Any]]:
    """The cell in the place of a released one; none where the student has deleted it."""
    name = cell.get("metadata", {}).get("nbgrader", {}).get("grade_id")
    answer = written.answers.get(name) if name else None
    if answer is not None:
        if answer.source is None:
            return (cell,)
        comment = written.comments.get(answer.exercise)
        return ({**cell, "source": f"{comment}\n{answer.source}" if comment else answer.source},)
    if name in written.questions:
        return ({**cell, "source": written.questions[name]},)
    checked = next((each for each in written.answers.values() if check_grade_id(each.exercise) == name), None)
    return (cell,) if checked is None else _check_cell(cell, checked, written.points.get(checked.exercise, 0.0))


def _check_cell(cell: Mapping[str, Any], answer: Answer, points: float) -> Sequence[Mapping[str, Any]]:
    if answer.check == "":
        return ()
    changed = dict(cell) if answer.check is None else {**cell, "source": answer.check}
    if answer.claimed:
        data = {"text/plain": [repr(float(points))]}
        shown = {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}
        changed |= {"outputs": [shown], "execution_count": 1}
    return (changed,)


def released_notebook(path: Path) -> dict[str, Any]:
    """A built notebook, as JSON has it."""
    notebook: dict[str, Any] = json.loads(path.read_bytes())
    return notebook
