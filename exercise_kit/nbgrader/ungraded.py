"""A submission that cannot be graded: no points in the gradebook, and a page that says why."""

from __future__ import annotations

from html import escape
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader.preprocessors import SaveAutoGrades
from nbgrader.utils import is_grade, is_solution

from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.cleaning import PLACE, tamed

UNGRADED = "vit_course_ungraded"  # in the resources that nbgrader's steps hand on
SAVER = "SaveGrades"


class SaveGrades(SaveAutoGrades):
    """nbgrader's step that keeps the points; of a submission that was not graded it keeps that a person must look."""

    def _add_score(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        if UNGRADED not in resources["nbgrader"]:
            super()._add_score(cell, resources)
            return
        name = cell.metadata["nbgrader"]["grade_id"]
        grade = self.gradebook.find_grade(name, self.notebook_id, self.assignment_id, self.student_id)
        grade.auto_score, grade.needs_manual_grade = None, True
        self.gradebook.db.commit()

    def _add_comment(self, cell: NotebookNode, resources: dict[str, Any]) -> None:
        if UNGRADED not in resources["nbgrader"]:  # else nbgrader would say that there is no answer
            super()._add_comment(cell, resources)


def say_ungraded(notebook: NotebookNode, result: Result) -> None:
    """Say on top of a notebook why it was not graded; its checks end in an error, for which nobody gives points."""
    if result.status == "rejected":
        words = f"This notebook could not be graded: {result.reason}."
    else:
        words = "This notebook is not graded yet: the grader stopped, and your instructor has its reason."
    notebook.cells.insert(0, new_markdown_cell(tamed(escape(words))))
    told = new_output("error", ename="NotGraded", evalue="", traceback=["Not graded: see the top of this page."])
    for cell in notebook.cells:
        cell.metadata.pop(PLACE, None)
        if cell.cell_type == "code" and is_grade(cell) and not is_solution(cell):
            cell.outputs = [told]
