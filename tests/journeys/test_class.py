"""The plain road of an instructor with nbgrader: a class, lessons released, handed in, graded, sent back, exported.

Two students hand in all lessons: one the model answers, the other what was released.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.journeys import nbgrader_commands
from tests.journeys.roads import ROOT, fail_with_lines, run_python, write_data_folder, write_weights_file
from tests.outline import OUTLINE, POINTS
from vit_course.exercises.catalog import EXERCISES

SOLVED, UNTOUCHED = "solved", "untouched"
NOT_WRITTEN = ("is not written yet", "does not lie beside the notebook")


@dataclass(frozen=True)
class GradedClass:
    """The class's folder at the end of the road, and what the commands printed."""

    folder: Path
    log: str

    def read_points(self, student: str, lesson: str) -> dict[str, float | None]:
        """Exercise → its points in the gradebook; None: not graded."""
        with Gradebook(f"sqlite:///{self.folder}/gradebook.db") as gradebook:
            grades = {
                each.name: each.auto_score
                for each in gradebook.find_submission_notebook(lesson, lesson, student).grades
            }
        return {name: grades[make_check_grade_id(name)] for name in POINTS[lesson]}

    def read_notebook(self, student: str, lesson: str) -> nbformat.NotebookNode:
        """As it was graded."""
        return nbformat.read(self.folder / "autograded" / student / lesson / f"{lesson}.ipynb", as_version=4)

    def read_feedback(self, student: str, lesson: str) -> str:
        """The page that the student gets."""
        return (self.folder / "feedback" / student / lesson / f"{lesson}.html").read_text("utf-8")


@pytest.fixture(scope="module")
def graded_class(tmp_path_factory: pytest.TempPathFactory) -> GradedClass:
    home = tmp_path_factory.mktemp("class")
    folder, data = home / "a class", write_data_folder(home / "data")
    made = run_python(["-m", "vit_course", "new-class", folder, "--root", ROOT], home, data)
    assert made.returncode == 0, made.stderr
    _run_nbgrader(folder, data, *(["generate_assignment", lesson] for lesson in OUTLINE))
    for lesson in OUTLINE:
        write_submissions(folder, lesson, {SOLVED: read_model_answers(folder, lesson), UNTOUCHED: {}})
        if any(EXERCISES[name].file for name in POINTS[lesson]):
            write_weights_file(folder / "submitted" / SOLVED / lesson)
    steps = ([step, lesson] for step in ("autograde", "generate_feedback") for lesson in OUTLINE)
    return GradedClass(folder, _run_nbgrader(folder, data, *steps, ["export"]))


def _run_nbgrader(folder: Path, data: Path, *commands: list[str]) -> str:
    done = run_python([nbgrader_commands.__file__, json.dumps(commands)], folder, data)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_model_answers_earn_every_point_of_every_lesson(graded_class: GradedClass) -> None:
    fail_with_lines(
        f"nbgrader, a solution: {lesson}: {name}: {points} points, not {worth:g}"
        for lesson in OUTLINE
        for name, worth in POINTS[lesson].items()
        if (points := graded_class.read_points(SOLVED, lesson)[name]) != worth
    )


def test_what_was_released_earns_nothing_and_is_not_written_yet(graded_class: GradedClass) -> None:
    fail_with_lines(_find_faults_in_untouched(graded_class))


def _find_faults_in_untouched(graded: GradedClass) -> Iterator[str]:
    for lesson in OUTLINE:
        for name, points in graded.read_points(UNTOUCHED, lesson).items():
            if points != 0:
                yield f"nbgrader, as released: {lesson}: {name}: {points} points, not 0"
        for cell in graded.read_notebook(UNTOUCHED, lesson).cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name in map(make_check_grade_id, POINTS[lesson]) and not any(
                each in str(cell.outputs) for each in NOT_WRITTEN
            ):
                yield f"nbgrader, as released: {lesson}: {name}: nothing says that it is not written yet"


def test_no_cell_of_a_solution_fails_in_the_judge(graded_class: GradedClass) -> None:
    fail_with_lines(
        f"nbgrader, a solution: {lesson}: the cell {cell.source[:60]!r} raised {output.ename}: {output.evalue}"
        for lesson in OUTLINE
        for cell in graded_class.read_notebook(SOLVED, lesson).cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    )


def test_everybody_gets_a_page_for_every_lesson_and_none_waits(graded_class: GradedClass) -> None:
    fail_with_lines(
        f"nbgrader, feedback: {lesson}: {student}: the page names no exercise, or says that one is not graded yet"
        for lesson in OUTLINE
        for student in (SOLVED, UNTOUCHED)
        if "Not graded yet" in (page := graded_class.read_feedback(student, lesson))
        or next(iter(POINTS[lesson])) not in page
    )


def test_the_export_has_the_points_of_every_lesson(graded_class: GradedClass) -> None:
    with (graded_class.folder / "grades.csv").open(encoding="utf-8", newline="") as file:
        exported = {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}
    expected = {(SOLVED, lesson): sum(POINTS[lesson].values()) for lesson in OUTLINE}
    expected |= {(UNTOUCHED, lesson): 0.0 for lesson in OUTLINE}
    fail_with_lines(
        f"nbgrader, export: {lesson}: {student}: {exported.get((student, lesson))}, not {points:g}"
        for (student, lesson), points in expected.items()
        if exported.get((student, lesson)) != points
    )
