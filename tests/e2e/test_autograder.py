"""Gradescope's autograder and Classroom 50's: run on an upload, and run where a container allows no sandbox."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.e2e.submissions import make_code_cell
from tests.kit.exports.test_exports import RUNNER
from tests.machine import needs_sandbox
from tests.waiting import GIVE_UP
from vit_course.cli import app

pytestmark = pytest.mark.proof
ROOT = Path(__file__).parents[2]
LESSON = "00_start"
# what a container of an older Docker does: the calls that the sandbox is made of do not exist, or are not allowed
FORBID = """
import ctypes, os, platform, struct, sys

errno, numbers = int(sys.argv[1]), [int(each) for each in sys.argv[2].split(",")]
LOAD, EQUAL, ANSWER = 0x20, 0x15, 0x06
steps = [(LOAD, 0, 0, 0)]
for number in numbers:
    steps += [(EQUAL, 0, 1, number), (ANSWER, 0, 0, 0x00050000 | errno)]
steps.append((ANSWER, 0, 0, 0x7FFF0000))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[3], sys.argv[3:])
"""
LANDLOCK = (444, 445, 446)
ENOSYS, EPERM = 38, 1
# https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
WHOLE = {"score", "execution_time", "output", "output_format", "test_output_format", "test_name_format", "visibility"}
WHOLE |= {"stdout_visibility", "extra_data", "tests", "leaderboard"}
TEST = {"score", "max_score", "status", "name", "name_format", "number", "output", "output_format", "tags"}
TEST |= {"visibility", "extra_data"}


@pytest.fixture(scope="module")
def autograder_zip(tmp_path_factory):
    """The zip that an instructor uploads."""
    target = tmp_path_factory.mktemp("packed") / "autograder.zip"
    done = CliRunner().invoke(app, ["export", "--to", "gradescope", "--autograder", str(target)])
    assert done.exit_code == 0, done.output
    assert "answers and the hidden checks" in done.output
    return target


@pytest.fixture
def container(autograder_zip, tmp_path):
    """A folder that stands for /autograder, with an upload in it; setup.sh's Python is the one that runs this test."""
    source = tmp_path / "source"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", autograder_zip, source], check=True)
    for name in ("submission", "results", "venv/bin", "home"):
        (tmp_path / name).mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    write_submission(tmp_path / "submission", tmp_path / "ran")
    return tmp_path


def write_submission(folder, ran):
    """A right notebook, which writes a file where nothing guards the machine."""
    notebook = json.loads((ROOT / "solutions" / f"{LESSON}.ipynb").read_bytes())
    mark = f"open({str(ran)!r}, 'w').close()"
    notebook["cells"].insert(0, make_code_cell(mark) | {"id": "mark"})
    (folder / f"{LESSON}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


def run_autograder(container, *launcher):
    """As Gradescope does, in an empty environment but for the paths."""
    environment = {"AUTOGRADER_ROOT": str(container), "HOME": str(container / "home"), "PATH": os.environ["PATH"]}
    command = [*launcher, shutil.which("bash"), str(container / "source" / "run_autograder")]
    return subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, check=False, timeout=GIVE_UP
    )


def test_the_zip_holds_what_gradescope_runs_and_nothing_of_a_class(autograder_zip, tmp_path):
    with zipfile.ZipFile(autograder_zip) as archive:
        names = set(archive.namelist())
        for name in ("setup.sh", "run_autograder"):
            assert archive.getinfo(name).external_attr >> 16 & stat.S_IXUSR
            archive.extract(name, tmp_path)
            subprocess.run(["bash", "-n", tmp_path / name], check=True)
            assert "VISIBILITY" not in (tmp_path / name).read_text()
    assert {"course/pyproject.toml", "course/constraints.txt", "course/tests/hidden/conftest.py"} <= names
    assert {f"course/notebooks/{LESSON}.ipynb", f"course/solutions/{LESSON}.ipynb"} <= names
    assert not [name for name in names if ".git/" in name or "submitted" in name or name.endswith((".db", ".pyc"))]
    assert stat.S_IMODE(autograder_zip.stat().st_mode) == 0o600


@needs_sandbox
def test_an_upload_gets_results_json_as_gradescope_documents_it(container):
    done = run_autograder(container)
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads((container / "results" / "results.json").read_bytes())
    assert made.keys() <= WHOLE
    assert all(each.keys() <= TEST for each in made["tests"])
    assert {each["status"] for each in made["tests"]} == {"passed"}
    assert made["score"] == sum(each["score"] for each in made["tests"]) > 0
    assert made["visibility"] == "visible"
    assert not (container / "ran").exists()  # the sandbox let nothing be written


@pytest.mark.parametrize(
    ("errno", "calls", "words"),
    [
        (ENOSYS, LANDLOCK, "built without Landlock"),
        (EPERM, LANDLOCK, "something forbids it"),
        (EPERM, (317, 277), "the kernel refuses filters of system calls"),
    ],
    ids=["no-landlock", "landlock-forbidden", "seccomp-forbidden"],
)
def test_where_a_container_allows_no_sandbox_nothing_is_graded_and_it_says_what_to_switch_on(
    container, errno, calls, words
):
    numbers = ",".join(map(str, calls))
    done = run_autograder(container, sys.executable, "-c", FORBID, str(errno), numbers)
    assert done.returncode == 1
    output = " ".join((done.stdout + done.stderr).split())
    assert "nothing was graded. What is missing:" in output
    assert words in output
    assert "--security-opt seccomp=FILE" in output
    assert "Grading cannot run in the sandbox here" in output  # the doctor
    assert "Traceback" not in output
    assert list((container / "results").iterdir()) == []
    assert not (container / "ran").exists()
    assert not list((container / "home").rglob("results/*.json"))


@pytest.fixture
def autograder_program(container):
    """The program of docs/grades.md, with the course that it runs in."""
    course = container / "source" / "course"
    script = course / ".venv" / "bin" / "vit-course"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vit_course "$@"\n')
    script.chmod(0o755)
    page = (ROOT / "docs" / "grades.md").read_text("utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert '"/srv/course"' in program
    path = container / "autograder.py"
    path.write_text(program.replace('"/srv/course"', repr(str(course))))
    return path


def run_in_checkout(container, autograder, student, *launcher):
    """As Classroom 50's runner does: in the checkout of a student, who has left a result of their own there."""
    checkout = container / student
    checkout.mkdir()
    shutil.copy(container / "submission" / f"{LESSON}.ipynb", checkout)
    (checkout / "result.json").write_text('{"score": 1000}')
    environment = RUNNER | {"OWNER": student, "HOME": str(container / "home"), "PATH": os.environ["PATH"]}
    command = [*launcher, sys.executable, str(autograder)]
    done = subprocess.run(
        command, env=environment, cwd=checkout, capture_output=True, text=True, check=False, timeout=GIVE_UP
    )
    return done, checkout / "result.json"


@needs_sandbox
def test_classroom_50_gets_nothing_of_the_student_before_where_nothing_was_graded(container, autograder_program):
    done, result = run_in_checkout(container, autograder_program, "ada")
    assert done.returncode == 0, done.stdout + done.stderr
    made = json.loads(result.read_bytes())
    assert made["owner"] == "ada"
    assert made["score"] == made["max-score"] > 0
    numbers = ",".join(map(str, LANDLOCK))
    done, result = run_in_checkout(
        container, autograder_program, "ben", sys.executable, "-c", FORBID, str(EPERM), numbers
    )
    assert done.returncode == 1
    assert "Nothing was graded, so nothing is exported" in done.stderr
    assert "nothing was graded. What is missing:" in " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in done.stderr
    assert not os.path.lexists(result)
