"""The judge inside `nbgrader autograde` and the formgrader page: it takes the place of nbgrader's own execution."""

from __future__ import annotations

import atexit
import os
from functools import cache
from pathlib import Path
from typing import Any

from nbformat import NotebookNode, from_dict
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Bool, Integer

from vit_course.grading.batch import Grader
from vit_course.grading.cleaning import PLACE
from vit_course.grading.conventions import check_grade_id
from vit_course.grading.feedback import as_output
from vit_course.grading.result import Result


class JudgeError(Exception):
    """A submission that the judge could not grade; the message says why."""


class JudgeNotebook(NbGraderPreprocessor):
    """Grade a submission, or take its result from the store, and write the verdicts into the notebook.

    The check cells get the points as their value, from which nbgrader reads partial credit; the student's own cells
    get what they printed and drew.
    """

    jobs = Integer(0, help="How many submissions are judged at the same time; 0: as many as there are cores.").tag(
        config=True
    )
    sandbox = Bool(True, help="Whether the students' code runs in the sandbox.").tag(config=True)

    def preprocess(self, notebook: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Judge the submission that ``notebook`` was made of, and fill in the outputs in place.

        Raises:
            JudgeError: it cannot be graded; nbgrader names it, and goes on with the others.
        """
        where = resources["nbgrader"]
        course = CourseDirectory(parent=self)
        grader = grader_of(Path(course.root).resolve(), self.jobs or os.cpu_count() or 1, self.sandbox)
        submitted = _submitted(course, where["student"], where["assignment"], where["notebook"])
        if course.student_id == "*":
            others = course.format_path(course.submitted_directory, "*", where["assignment"])
            for path in sorted(Path("/").glob(f"{others.lstrip('/')}/{where['notebook']}.ipynb")):
                grader.submit(path)
        result = grader.submit(submitted).result()
        if result.status != "graded":
            raise JudgeError(result.reason or "the judge gave no reason")
        for line in (*result.log, *filter(None, [result.reason, ", ".join(result.flags)])):
            self.log.warning("%s: %s", where["student"], line)
        _fill(notebook, result)
        return notebook, resources


def _submitted(course: CourseDirectory, student: str, assignment: str, notebook: str) -> Path:
    return Path(course.format_path(course.submitted_directory, student, assignment), f"{notebook}.ipynb")


@cache
def grader_of(root: Path, jobs: int, confined: bool) -> Grader:
    """The one grader of a class in this process: it stays until the process ends."""
    grader = Grader.for_class(root, jobs=jobs, confined=confined)
    atexit.register(grader.close)
    return grader


def _fill(notebook: NotebookNode, result: Result) -> None:
    printed = {run.index: [dict(output) for output in run.outputs] for run in result.runs}
    judged = {check_grade_id(exercise.name): exercise for exercise in result.exercises}
    for cell in notebook.cells:
        place, mark = cell.metadata.pop(PLACE, None), cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code":
            continue
        outputs = printed.get(place, [])
        if mark.get("grade") and not mark.get("solution"):
            exercise = judged.get(mark["grade_id"])
            if exercise is None:
                raise JudgeError(f"the judge knows no exercise for the cell {mark['grade_id']}")
            outputs = [as_output(exercise, float(mark["points"]))]
        cell.outputs = [from_dict(output) for output in outputs]
