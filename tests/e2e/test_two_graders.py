"""Several graders on one class at the same time: nothing is lost, nothing is graded by halves, and it is said."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from exercise_kit.batch.locations import lock_folder
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import read_model_answers, write_submissions
from tests.e2e.test_nbgrader import ROOT, run_nbgrader
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP

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


def start_autograde(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    """`nbgrader autograde` by another process, with its log in a file."""
    program = "import os, sys; os.environ['PATH'] = sys.argv.pop(1) + os.pathsep + os.environ['PATH'];"
    program += "from nbgrader.apps.nbgraderapp import main; sys.exit(main())"
    command = [sys.executable, "-c", program, str(Path(sys.executable).parent), "autograde", LESSON]
    with log.open("wb") as stream:
        return subprocess.Popen(command, cwd=folder, stdout=stream, stderr=stream)


def wait_for_words(log: Path, words: str) -> None:
    end = time.monotonic() + GIVE_UP
    while words not in log.read_text("utf-8"):
        assert time.monotonic() < end, log.read_text("utf-8")
        time.sleep(0.1)


@needs_sandbox
def test_two_who_autograde_take_turns_and_a_third_grades_beside_them(class_folder: Path, tmp_path: Path) -> None:
    logs = [tmp_path / f"{number}.log" for number in range(2)]
    with lock_folder(
        class_folder / ".vit_course" / "autograde"
    ):  # so that both meet somebody, whatever the machine does
        graders = [start_autograde(class_folder, log) for log in logs]
        for log in logs:
            wait_for_words(log, TURNS)
        grade = [sys.executable, "-m", "vit_course", "grade", "submitted", "--json", "-"]
        beside = subprocess.run(grade, cwd=class_folder, capture_output=True, text=True, check=True)
    assert [grader.wait(GIVE_UP) for grader in graders] == [0, 0], [log.read_text() for log in logs]
    by_command = {entry["student"]: entry["score"] for entry in json.loads(beside.stdout)["submissions"]}
    with Gradebook(f"sqlite:///{class_folder}/gradebook.db") as gradebook:
        for student in STUDENTS:
            (grade,) = [
                each
                for each in gradebook.find_submission_notebook(LESSON, LESSON, student).grades
                if each.name == CHECK
            ]
            assert grade.auto_score == by_command[student] == (grade.max_score if student < "c" else 0)
    for log in logs:
        said = log.read_text("utf-8")
        assert said.count(TURNS) == 1
        assert "4 graded, 0 not graded, 0 missing" in said
    graded = [log.read_text("utf-8").count("] Autograding ") for log in logs]
    assert sum(graded) == len(STUDENTS), "each submission by one of them"
