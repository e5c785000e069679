"""What a student installs: the wheel alone, where neither nbgrader nor JupyterLab nor this clone is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.journeys.kernels import install_on_students_machine

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed_wheel(tmp_path_factory):
    """The folder that holds what the wheel installs; no lesson is run here: tests/journeys does that."""
    return install_on_students_machine(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_no_answer_and_no_test(installed_wheel):
    top = {path.name for path in installed_wheel.iterdir() if path.name != "sitecustomize.py"}
    assert {name.split("-")[0] for name in top} == {"vit_course", "exercise_kit"}
    assert not list(installed_wheel.rglob("*.ipynb"))
    assert not (installed_wheel / "vit_course" / "staff").exists()
    assert not [
        path
        for path in installed_wheel.rglob("*.py")
        if re.search(r"(^|_)tests?(_|\.)", path.name) or "hidden" in path.parts
    ]
    assert list(installed_wheel.glob("exercise_kit/templates/*"))
    assert len(list(installed_wheel.rglob("program.packed"))) == len(
        list(ROOT.glob("vit_course/exercises/*/*/program.py"))
    )
    assert not [*installed_wheel.glob("vit_course/**/program.py"), *installed_wheel.glob("vit_course/**/variants.py")]


def test_a_command_for_staff_names_the_extra_that_it_needs(installed_wheel, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "vit_course", "new-class", "my-class", "--root", str(ROOT)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed_wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "vit-course[grading]" in done.stderr
    assert "Traceback" not in done.stderr
