"""A class folder made by an earlier release: its configuration and its checks name modules that may have moved.

Kept of it are the release before the kit, and the kit's first; files of the latter end in ``_of_kit``.
"""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exercise_kit.engine.student import Student
from exercise_kit.nbgrader.class_folder import new_class
from exercise_kit.nbgrader.demo_class import model_answers, write_submissions
from tests.e2e.test_nbgrader import GradedClass, nbgrader

HERE, ROOT = Path(__file__).parent / "old_class", Path(__file__).parents[2]
LESSON = "01_patchify"
IMPORTS = [line for file in ("imports.txt", "imports_of_kit.txt") for line in (HERE / file).read_text().splitlines()]
CONFIGURATION = (HERE / "nbgrader_config_of_kit.py.txt").read_text()
CONFIGURED = [name for name in re.findall(r'"([\w.]+)"', CONFIGURATION) if name.startswith("exercise_kit.")]


@pytest.mark.parametrize("line", IMPORTS, ids=[line.split()[1] for line in IMPORTS])
def test_what_its_hidden_checks_import_is_there(line):
    module, names = line.removeprefix("from ").split(" import ")
    found = importlib.import_module(module)
    assert all(hasattr(found, name) for name in names.split(", "))


@pytest.mark.parametrize("name", [*CONFIGURED, "exercise_kit.nbgrader.autograde.install"])
def test_what_its_configuration_names_is_there(name):
    module, _, last = name.rpartition(".")
    assert hasattr(importlib.import_module(module), last)


def test_what_its_hidden_checks_call_is_there():
    assert Student.practise is Student.run_fixture


def test_a_name_that_a_release_never_had_is_not_found():
    with pytest.raises(ModuleNotFoundError, match=r"vit_course\.nowhere"):
        importlib.import_module("vit_course.nowhere")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("vit_course.checks.nowhere")


@pytest.mark.sampled("old class")
def test_it_is_graded_by_its_own_configuration_and_checks(tmp_path):
    folder = new_class(tmp_path / "a class", ROOT).path
    (folder / "nbgrader_config.py").write_text((HERE / "nbgrader_config.py.txt").read_text())
    for name in ("conftest.py", "test_patchify.py"):
        (folder / "hidden" / name).write_text((HERE / f"{name}.txt").read_text())
    nbgrader(folder, "generate_assignment", LESSON)
    right = model_answers(folder, LESSON)
    write_submissions(
        folder, LESSON, {"ada": right, "ben": {"patchify": "def patchify(images, patch_size):\n    return 1"}}
    )
    log = nbgrader(folder, "autograde", LESSON)
    assert "Traceback" not in log
    graded = GradedClass(folder)
    worth = graded.max_scores()
    earned = {name: score for name, score in graded.auto_scores("ada").items() if score is not None}
    assert earned == {name: worth[name] for name in earned}
    assert graded.auto_scores("ben")["check-patchify"] == 0


@pytest.mark.sampled("old class")
@pytest.mark.parametrize(("now", "then"), [("06_training", "06_cifar"), ("08_inside", "07_inside")])
def test_a_lesson_that_was_released_under_another_name_is_graded(tmp_path, now, then):
    folder = new_class(tmp_path / "a class", ROOT).path
    source = folder / "source" / then
    (folder / "source" / now).rename(source)
    (source / f"{now}.ipynb").rename(source / f"{then}.ipynb")
    nbgrader(folder, "generate_assignment", then)
    write_submissions(folder, then, {"ada": model_answers(folder, then)})
    command = [sys.executable, "-m", "vit_course", "grade", "submitted", "--json", "-"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (found,) = json.loads(done.stdout)["submissions"]
    assert (found["assignment"], found["status"]) == (then, "graded")
    assert found["score"] == found["max_score"] > 0
