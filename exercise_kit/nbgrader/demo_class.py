"""A class of invented students, handed in and graded by nbgrader's own commands: the main job, to look at."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook

from exercise_kit.conventions import BEGIN_SOLUTION, END_SOLUTION, RUBRIC, make_check_grade_id
from exercise_kit.files import write
from exercise_kit.judge.result import ExerciseResult
from exercise_kit.nbgrader.page_head import read_report


def read_model_answers(class_dir: Path, lesson: str) -> dict[str, str]:
    """The source of every exercise and question of a lesson, answered as in the class's `source/` folder.

    A question's rubric, which is for graders, is left out.
    """
    notebook = _read_notebook(class_dir / "source" / lesson / f"{lesson}.ipynb")
    return {name: _strip_solution_markers(cell.source) for name, cell in _find_answer_cells(notebook).items()}


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
        notebook = _read_notebook(released)
        cells = _find_answer_cells(notebook)
        for name, source in sources.items():
            if name not in cells:
                raise ValueError(f"{lesson} has no exercise or question {name!r}; it has {', '.join(cells)}")
            cells[name].source = source
        target = class_dir / "submitted" / student / lesson / f"{lesson}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        write(target, nbformat.writes(notebook).encode())
        written[student] = target
    return written


def _strip_solution_markers(source: str) -> str:
    answer = source.partition(RUBRIC)[0].rstrip()
    lines = (line for line in answer.split("\n") if line.strip() not in (BEGIN_SOLUTION, END_SOLUTION))
    return "\n".join(lines)


def _read_notebook(path: Path) -> NotebookNode:
    notebook: NotebookNode = nbformat.read(path, as_version=4)
    return notebook


def _find_answer_cells(notebook: NotebookNode) -> dict[str, NotebookNode]:
    roles = ((cell, cell.metadata.get("nbgrader", {})) for cell in notebook.cells)
    return {role["grade_id"]: cell for cell, role in roles if role.get("solution")}


LOG = "nbgrader.log"


class RehearsalError(Exception):
    """An nbgrader command failed; the message says which, and where its log is."""


@dataclass(frozen=True)
class Graded:
    """One student after grading.

    Attributes:
        student: the name.
        handed_in: a line about what they handed in.
        score: of ``max_score`` points that need no person.
        exercises: as (name, score, max_score).
        reports: the judge's.
        feedback: the page.
    """

    student: str
    handed_in: str
    score: float
    max_score: float
    exercises: tuple[tuple[str, float, float], ...]
    reports: tuple[ExerciseResult, ...]
    feedback: Path


# a line about what somebody hands in, and the source of each cell that they filled in, by its name
DemoSubmission = tuple[str, Mapping[str, str]]


def grade_demo_class(
    class_dir: Path,
    lesson: str,
    students: Callable[[Path], Mapping[str, DemoSubmission]],
    report: Callable[[str], None],
) -> list[Graded]:
    """Release a lesson, hand it in for invented students, and grade it.

    Args:
        class_dir: a fresh folder made by ``new_class``.
        lesson: the lesson's name.
        students: gives what each student hands in, for a class folder in which the lesson is released.
        report: receives the name of each step, in a few words.

    Raises:
        RehearsalError: an nbgrader command failed.
    """
    _run_nbgrader(class_dir, report, "generate_assignment", lesson)
    cast = students(class_dir)
    write_submissions(class_dir, lesson, {name: answers for name, (_, answers) in cast.items()})
    _run_nbgrader(class_dir, report, "autograde", lesson)
    _run_nbgrader(class_dir, report, "generate_feedback", lesson)
    _run_nbgrader(class_dir, report, "export")
    with Gradebook(f"sqlite:///{class_dir / 'gradebook.db'}") as gradebook:
        return [
            _read_graded_submission(class_dir, lesson, gradebook, name, handed_in)
            for name, (handed_in, _) in cast.items()
        ]


def _run_nbgrader(class_dir: Path, report: Callable[[str], None], *command: str) -> None:
    report("nbgrader " + " ".join(command))
    # nbgrader calls alembic by its bare name
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    log = class_dir / LOG
    with log.open("a", encoding="utf-8") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", *command],
            cwd=class_dir,
            env={**os.environ, "PATH": path},
            stdout=stream,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode:
        raise RehearsalError(f"'nbgrader {' '.join(command)}' failed with exit status {done.returncode}; see {log}")


def _read_graded_submission(class_dir: Path, lesson: str, gradebook: Gradebook, student: str, handed_in: str) -> Graded:
    notebook = gradebook.find_submission_notebook(lesson, lesson, student)
    grades = {grade.name: grade for grade in notebook.grades}
    notebook_file = class_dir / "autograded" / student / lesson / f"{lesson}.ipynb"
    reports = tuple(filter(None, map(read_report, _read_notebook(notebook_file).cells)))
    exercises = tuple(
        (report.name, float(grades[name].score), float(grades[name].max_score))
        for report in reports
        if (name := make_check_grade_id(report.name)) in grades
    )
    score, worth = (sum(column) for column in list(zip(*exercises, strict=True))[1:])
    feedback = class_dir / "feedback" / student / lesson / f"{lesson}.html"
    return Graded(student, handed_in, score, worth, exercises, reports, feedback)
