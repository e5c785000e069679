"""Another course than ours, of three exercises without a Vision Transformer: all commands, from lesson to report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "second_course"
LESSON = "00_numbers"
Run = Callable[..., str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(SOURCE, tmp_path_factory.mktemp("numbers") / "clone"))


@pytest.fixture(scope="module")
def run(home: Path) -> Run:
    """Runs Python where the operator has named the other course, and gives what it prints."""
    environment = os.environ | {
        "VIT_COURSE_COURSE": "numbers_course.course:COURSE",
        "PYTHONPATH": os.pathsep.join([str(home), str(SOURCE.parents[1])]),
        "XDG_CONFIG_HOME": str(home / "config"),
        "COLUMNS": "200",
    }

    def called(*arguments: object, folder: Path = home) -> str:
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return called


@pytest.fixture(scope="module")
def class_dir(home: Path, run: Run) -> Path:
    run("-m", "vit_course", "build", "--root", home)
    run("-m", "vit_course", "new-class", home / "class", "--root", home)
    return home / "class"


def hand_in(class_dir: Path, student: str, **changes: str) -> None:
    """A model solution in which texts are replaced, in a student's name."""
    text = (class_dir / "source" / LESSON / f"{LESSON}.ipynb").read_text()
    for old, new in changes.values():
        assert old in text
        text = text.replace(old, new)
    folder = class_dir / "submitted" / student / LESSON
    folder.mkdir(parents=True)
    (folder / f"{LESSON}.ipynb").write_text(text)


@pytest.fixture(scope="module")
def graded(class_dir: Path, run: Run) -> dict[str, dict]:
    hand_in(class_dir, "ada")
    hand_in(
        class_dir,
        "bob",
        summed=("width, 1).mean(dim=2)", "width, 1).sum(dim=2)"),
        turned=("torch.eye(num_classes)[labels]", "torch.eye(num_classes)[labels].T"),
    )
    run("-m", "vit_course", "grade", "submitted", "--json", "graded.json", folder=class_dir)
    results = json.loads((class_dir / "graded.json").read_text())["submissions"]
    return {each["student"]: each for each in results}


def test_its_own_references_pass_its_hidden_checks(home: Path, run: Run) -> None:
    assert "4 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/hidden")


def test_a_public_check_names_a_mistake_of_its_library(run: Run) -> None:
    code = "from numbers_course import check, exercises; print(check('moving_average', exercises.summed_up))"
    assert "*summed up*" in run("-c", code)


def test_right_answers_get_all_points_and_wrong_ones_their_names(graded: dict[str, dict]) -> None:
    assert (graded["ada"]["score"], graded["ada"]["max_score"], graded["ada"]["flags"]) == (8, 8, [])
    points = {each["name"]: each["score"] for each in graded["bob"]["exercises"]}
    assert points == {"moving_average": 1, "one_hot": 0, "Standardize": 3}
    told = json.dumps(graded["bob"]["exercises"])
    assert "*summed up*" in told
    assert "*classes first*" in told


def test_nbgrader_grades_it_too(class_dir: Path, graded: dict[str, dict], run: Run) -> None:
    run("-m", "nbgrader", "generate_assignment", LESSON, folder=class_dir)
    run("-m", "nbgrader", "autograde", LESSON, folder=class_dir)
    run("-m", "nbgrader", "generate_feedback", LESSON, folder=class_dir)
    page = (class_dir / "feedback" / "bob" / LESSON / f"{LESSON}.html").read_text()
    assert "summed up" in page


def test_the_report_tells_of_its_mistakes(class_dir: Path, graded: dict[str, dict], run: Run) -> None:
    run("-m", "vit_course", "report", ".", folder=class_dir)
    assert "classes first" in (class_dir / "report.html").read_text()


def test_a_simulated_class_gets_the_grades_that_it_has_to(home: Path, run: Run) -> None:
    run("-m", "vit_course", "simulate", home / "simulated", "--root", home, "--students", 4)
    told = run("-m", "vit_course", "simulate", home / "simulated", "--root", home, "--check")
    assert "are what they have to be" in told


@pytest.mark.parametrize("named", ["nowhere.course:COURSE", "vit_course.course:NONE", "vit_course"])
def test_a_course_that_is_not_there_is_a_sentence(named: str) -> None:
    command = [sys.executable, "-m", "vit_course", "misconceptions"]
    environment = os.environ | {"VIT_COURSE_COURSE": named}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"VIT_COURSE_COURSE is {named!r}" in done.stderr
    assert "Traceback" not in done.stderr
