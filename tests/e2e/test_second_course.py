"""Another course than ours, of three exercises without a Vision Transformer: all commands, from lesson to report.

Nothing of vit_course can be imported while they run: the kit is all that they have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.proof
SOURCE = Path(__file__).parents[1] / "kit" / "numbers"
LESSON = "00_numbers"
# sitecustomize.py, which Python runs before anything else
WITHOUT_OURS = """
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "vit_course":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Finder())
"""
KIT = ("-m", "exercise_kit")
Run = Callable[..., str]


@pytest.fixture(scope="module")
def numbers_clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(SOURCE, tmp_path_factory.mktemp("numbers") / "clone"))


@pytest.fixture(scope="module")
def environment_without_vit_course(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of processes that cannot import vit_course."""
    folder = tmp_path_factory.mktemp("without ours")
    (folder / "sitecustomize.py").write_text(WITHOUT_OURS)
    paths = os.pathsep.join([str(folder), str(SOURCE.parents[2])])
    return os.environ | {"PYTHONPATH": paths, "XDG_CONFIG_HOME": str(folder / "config"), "COLUMNS": "200"}


@pytest.fixture(scope="module")
def run_numbers_course(numbers_clone: Path, environment_without_vit_course: dict[str, str]) -> Run:
    """Runs Python where the operator has named the other course, and gives what it prints."""
    environment = environment_without_vit_course | {
        "VIT_COURSE_COURSE": "numbers_course.course:COURSE",
        "PYTHONPATH": os.pathsep.join([environment_without_vit_course["PYTHONPATH"], str(numbers_clone)]),
    }

    def run_command(*arguments: object, folder: Path = numbers_clone) -> str:
        command = [sys.executable, *map(str, arguments)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run_command


@pytest.fixture(scope="module")
def class_dir(numbers_clone: Path, run_numbers_course: Run) -> Path:
    run_numbers_course(*KIT, "build", "--root", numbers_clone)
    run_numbers_course(*KIT, "new-class", numbers_clone / "class", "--root", numbers_clone)
    return numbers_clone / "class"


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
def grades(class_dir: Path, run_numbers_course: Run) -> dict[str, dict]:
    hand_in(class_dir, "ada")
    hand_in(
        class_dir,
        "bob",
        summed=("width, 1).mean(dim=2)", "width, 1).sum(dim=2)"),
        turned=("torch.eye(num_classes)[labels]", "torch.eye(num_classes)[labels].T"),
    )
    run_numbers_course(*KIT, "grade", "submitted", "--json", "graded.json", folder=class_dir)
    results = json.loads((class_dir / "graded.json").read_text())["submissions"]
    return {each["student"]: each for each in results}


def test_ours_is_not_there(run_numbers_course: Run) -> None:
    run_numbers_course("-c", "import pytest\nwith pytest.raises(ModuleNotFoundError): import vit_course.course")


def test_its_own_references_pass_its_hidden_checks(numbers_clone: Path, run_numbers_course: Run) -> None:
    assert "8 passed" in run_numbers_course("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/hidden")


def test_a_public_check_names_a_mistake_of_its_library(run_numbers_course: Run) -> None:
    code = "from numbers_course import check, exercises; print(check('moving_average', exercises.summed_up))"
    assert "*summed up*" in run_numbers_course("-c", code)


def test_right_answers_get_all_points_and_wrong_ones_their_names(grades: dict[str, dict]) -> None:
    assert (grades["ada"]["score"], grades["ada"]["max_score"], grades["ada"]["flags"]) == (8, 8, [])
    points = {each["name"]: each["score"] for each in grades["bob"]["exercises"]}
    assert points == {"moving_average": 1, "one_hot": 0, "Standardize": 3}
    printed = json.dumps(grades["bob"]["exercises"])
    assert "*summed up*" in printed
    assert "*classes first*" in printed


def test_the_readme_of_its_class_tells_of_nothing_that_it_does_not_have(class_dir: Path) -> None:
    text = (class_dir / "README.md").read_text()
    assert text.startswith("# A class of numbers_course\n")
    assert "## What earns points\n\nThe scores come from the claims" in text


def test_its_students_get_a_release(class_dir: Path, numbers_clone: Path, run_numbers_course: Run) -> None:
    released = numbers_clone / "for students"
    assert "no solutions" in run_numbers_course(*KIT, "release", released, "--root", numbers_clone)
    assert sorted(path.suffix for path in released.iterdir() if path.is_file()) == ["", ".md", ".md", ".whl"]
    assert "unfold" not in (released / "notebooks" / f"{LESSON}.ipynb").read_text()


def test_its_mistakes_have_pages_without_a_word_of_ours(run_numbers_course: Run) -> None:
    program = "from exercise_kit.authoring.mistake_pages import render_pages; print(*render_pages().values())"
    printed = run_numbers_course("-c", program)
    assert "summed up" in printed
    assert not re.search(r"\bViT\b|CIFAR|Vision Transformer", printed)


def test_nbgrader_grades_it_too(class_dir: Path, grades: dict[str, dict], run_numbers_course: Run) -> None:
    for command in ("generate_assignment", "autograde", "generate_feedback"):
        run_numbers_course("-m", "nbgrader", command, LESSON, folder=class_dir)
    page = (class_dir / "feedback" / "bob" / LESSON / f"{LESSON}.html").read_text()
    assert "summed up" in page


def test_the_report_tells_of_its_mistakes(class_dir: Path, grades: dict[str, dict], run_numbers_course: Run) -> None:
    run_numbers_course(*KIT, "report", ".", folder=class_dir)
    page = (class_dir / "report.html").read_text()
    assert "classes first" in page
    assert "</strong> was decided by reading" in page


def test_a_simulated_class_gets_the_grades_that_it_has_to(numbers_clone: Path, run_numbers_course: Run) -> None:
    simulate = (*KIT, "simulate", numbers_clone / "simulated", "--root", numbers_clone)
    run_numbers_course(*simulate, "--students", 4)
    printed = run_numbers_course(*simulate, "--check")
    assert "are what they have to be" in printed


@pytest.mark.parametrize("named", ["nowhere.course:COURSE", "vit_course.course:NONE", "vit_course"])
def test_a_course_that_is_not_there_is_a_sentence(named: str) -> None:
    said = run_without_course(os.environ | {"VIT_COURSE_COURSE": named})
    assert f"VIT_COURSE_COURSE is {named!r}" in said


def test_without_ours_and_without_another_the_kit_says_what_to_set(
    environment_without_vit_course: dict[str, str],
) -> None:
    assert "VIT_COURSE_COURSE is not set; it names a module and a Course in it" in run_without_course(
        environment_without_vit_course
    )


def run_without_course(environment: dict[str, str]) -> str:
    """Return what a command of the kit says where there is no course."""
    command = [sys.executable, *KIT, "misconceptions"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr
