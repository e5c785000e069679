"""What a student installs: the wheel alone, where neither nbgrader nor JupyterLab nor this clone is."""

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from exercise_kit.authoring.release import build_wheel

ROOT = Path(__file__).parents[2]
# stands for a machine like Colab: what is installed here for authors and instructors cannot be imported
STUDENTS_MACHINE = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"nbgrader", "jupyterlab", "jupytext", "nbclient", "nbconvert", "sklearn", "timm",
                                  "transformers", "einops", "pytest", "playwright"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""
FIRST_HOUR = """
import vit_course
from vit_course import check
from vit_course.config import PRESETS
from vit_course.data import photo, shapes
from vit_course.hunts import hunt
from vit_course.patches import patchify
from vit_course.plots import show_patches
from vit_course.vit import VisionTransformer

print(vit_course.__file__)
report = check("patchify", patchify)
assert report.passed, report
wrong = check("patchify", lambda images, patch_size: patchify(images.transpose(2, 3), patch_size))
assert wrong.misconceptions == ("the whole image transposed",), wrong
show_patches(patchify(photo()[None].float() / 255, 8)[0], (75, 64))
suspect = hunt("patchify", seed=3)
assert not suspect.check(suspect.program).passed, suspect
VisionTransformer(PRESETS["lab_cifar10"])(shapes(4).images / 255)
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder that holds what the wheel installs."""
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(build_wheel(ROOT, folder)) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_no_answer_and_no_test(installed):
    top = {path.name for path in installed.iterdir()}
    assert {name.split("-")[0] for name in top} == {"vit_course", "exercise_kit"}
    assert not list(installed.rglob("*.ipynb"))
    assert not (installed / "vit_course" / "staff").exists()
    assert not [
        path for path in installed.rglob("*.py") if re.search(r"(^|_)tests?(_|\.)", path.name) or "hidden" in path.parts
    ]
    assert list(installed.glob("exercise_kit/templates/*"))
    assert len(list(installed.rglob("program.packed"))) == len(list(ROOT.glob("vit_course/exercises/*/*/program.py")))
    assert not [*installed.glob("vit_course/**/program.py"), *installed.glob("vit_course/**/variants.py")]


def test_a_student_needs_nothing_else(installed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(STUDENTS_MACHINE)
    path = os.pathsep.join([str(tmp_path), str(installed)])
    done = subprocess.run(
        [sys.executable, "-c", FIRST_HOUR],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.splitlines()[0]).is_relative_to(installed)


def test_a_command_for_staff_names_the_extra_that_it_needs(installed, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(STUDENTS_MACHINE)
    path = os.pathsep.join([str(tmp_path), str(installed)])
    done = subprocess.run(
        [sys.executable, "-m", "vit_course", "new-class", "my-class", "--root", str(ROOT)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "vit-course[grading]" in done.stderr
    assert "Traceback" not in done.stderr
