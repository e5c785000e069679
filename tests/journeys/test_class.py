"""The plain road of an instructor with nbgrader: a class, lessons released, handed in, graded, sent back, exported.

Two students hand in all lessons: one the model answers, the other what was released.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.journeys import nbgrader_commands
from tests.journeys.graded_class import GradedClass
from tests.journeys.roads import ROOT, fail_with_lines, run_python, write_data_folder, write_weights_file
from tests.outline import OUTLINE, POINTS
from vit_course.exercises.catalog import EXERCISES

SOLVED, UNTOUCHED = "solved", "untouched"
NOT_WRITTEN = ("is not written yet", "does not lie beside the notebook")
Graded = dict[str, GradedClass]


def read_points(graded: GradedClass, student: str) -> dict[str, float | None]:
    """Exercise → its points in the gradebook; None: not graded."""
    scores = graded.read_auto_scores(student)
    return {name: scores[make_check_grade_id(name)] for name in POINTS[graded.lesson]}


@pytest.fixture(scope="module")
def graded_lessons(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    """The class at the end of the road, by lesson."""
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
    _run_nbgrader(folder, data, *steps, ["export"])
    return {lesson: GradedClass(folder, lesson) for lesson in OUTLINE}


def _run_nbgrader(folder: Path, data: Path, *commands: list[str]) -> None:
    done = run_python([nbgrader_commands.__file__, json.dumps(commands)], folder, data)
    assert done.returncode == 0, done.stdout + done.stderr


def test_model_answers_earn_every_point_of_every_lesson(graded_lessons: Graded) -> None:
    fail_with_lines(
        f"nbgrader, a solution: {lesson}: {name}: {points} points, not {worth:g}"
        for lesson, graded in graded_lessons.items()
        for name, points in read_points(graded, SOLVED).items()
        if points != (worth := POINTS[lesson][name])
    )


def test_what_was_released_earns_nothing_and_is_not_written_yet(graded_lessons: Graded) -> None:
    fail_with_lines(_find_faults_in_untouched(graded_lessons))


def _find_faults_in_untouched(graded_lessons: Graded) -> Iterator[str]:
    for lesson, graded in graded_lessons.items():
        for name, points in read_points(graded, UNTOUCHED).items():
            if points != 0:
                yield f"nbgrader, as released: {lesson}: {name}: {points} points, not 0"
        for cell in graded.read_notebook(UNTOUCHED).cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if name in map(make_check_grade_id, POINTS[lesson]) and not any(
                each in str(cell.outputs) for each in NOT_WRITTEN
            ):
                yield f"nbgrader, as released: {lesson}: {name}: nothing says that it is not written yet"


def test_no_cell_of_a_solution_fails_in_the_judge(graded_lessons: Graded) -> None:
    fail_with_lines(
        f"nbgrader, a solution: {lesson}: the cell {cell.source[:60]!r} raised {output.ename}: {output.evalue}"
        for lesson, graded in graded_lessons.items()
        for cell in graded.read_notebook(SOLVED).cells
        for output in cell.get("outputs", ())
        if output.output_type == "error"
    )


def test_everybody_gets_a_page_for_every_lesson_and_none_waits(graded_lessons: Graded) -> None:
    fail_with_lines(
        f"nbgrader, feedback: {lesson}: {student}: the page names no exercise, or says that one is not graded yet"
        for lesson, graded in graded_lessons.items()
        for student in (SOLVED, UNTOUCHED)
        if "Not graded yet" in (page := graded.read_feedback(student)) or next(iter(POINTS[lesson])) not in page
    )


def test_the_export_has_the_points_of_every_lesson(graded_lessons: Graded) -> None:
    fail_with_lines(
        f"nbgrader, export: {lesson}: {student}: {exported}, not {points:g}"
        for lesson, graded in graded_lessons.items()
        for student, points in ((SOLVED, sum(POINTS[lesson].values())), (UNTOUCHED, 0.0))
        if (exported := float(graded.read_exported()[student]["score"])) != points
    )
