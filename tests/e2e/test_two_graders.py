"""Several graders on one class at the same time: nothing is lost, nothing is graded by halves, and it is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exercise_kit.batch.locations import lock_folder
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.commands import ROOT, run_nbgrader, run_vit_course, start_nbgrader
from tests.journeys.graded_class import GradedClass
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP, wait_until

pytestmark = pytest.mark.proof

LESSON = "00_start"
CHECK = "check-normalize_images"
STUDENTS = ("ada", "ben", "cleo", "dan")
TURNS = "somebody else is grading this class: the two take turns, one submission at a time"


@pytest.fixture
def class_folder(tmp_path: Path) -> Path:
    made = new_class(tmp_path / "class", ROOT).path
    run_nbgrader(made, "generate_assignment", LESSON)
    right = read_model_answers(made, LESSON)
    for student, path in write_submissions(
        made, LESSON, {name: right if name < "c" else {} for name in STUDENTS}
    ).items():
        notebook = json.loads(path.read_bytes())
        notebook["metadata"]["of"] = student  # else the four are two
        path.write_text(json.dumps(notebook), encoding="utf-8")
    return made


@needs_sandbox
def test_two_who_autograde_take_turns_and_a_third_grades_beside_them(class_folder: Path, tmp_path: Path) -> None:
    logs = [tmp_path / f"{number}.log" for number in range(2)]
    with lock_folder(
        class_folder / ".vit_course" / "autograde"
    ):  # so that both meet somebody, whatever the machine does
        graders = [start_nbgrader(class_folder, log, "autograde", LESSON) for log in logs]
        wait_until(lambda: all(TURNS in log.read_text("utf-8") for log in logs))
        beside = run_vit_course("grade", "submitted", "--json", "-", cwd=class_folder)
    assert [grader.wait(GIVE_UP) for grader in graders] == [0, 0], [log.read_text() for log in logs]
    by_command = {entry["student"]: entry["score"] for entry in json.loads(beside.stdout)["submissions"]}
    in_gradebook = GradedClass(class_folder, LESSON)
    worth = in_gradebook.read_max_scores()[CHECK]
    for student in STUDENTS:
        assert in_gradebook.read_auto_scores(student)[CHECK] == by_command[student] == (worth if student < "c" else 0)
    for log in logs:
        said = log.read_text("utf-8")
        assert said.count(TURNS) == 1
        assert "4 graded, 0 not graded, 0 missing" in said
    graded = [log.read_text("utf-8").count("] Autograding ") for log in logs]
    assert sum(graded) == len(STUDENTS), "each submission by one of them"
