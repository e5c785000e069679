"""Real lessons, to hand in what one likes."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from exercise_kit.engine import class_exercises
from exercise_kit.engine.course_named import VARIABLE
from exercise_kit.judge.judge import Judge
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.parse import read
from exercise_kit.submission.released import Lessons

# the same inputs each time, so that a run that passes here passes everywhere, however slow the machine is
settings.register_profile(
    "vit_course", deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True, database=None
)
settings.load_profile("vit_course")

# the first cell of a submission, which runs in a worker; the clone of a course with hidden checks of its own
collect_ignore = ["judge/fake_gpu.py", "numbers"]

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def lessons():
    return Lessons(None, ROOT)


@pytest.fixture(scope="session")
def open_judge():
    """A judge without a sandbox, whose process is warm for all tests: to start one takes seconds."""
    with Judge(ROOT / "tests" / "hidden", b"secret", sandboxed=False) as opened:
        yield opened


@pytest.fixture(scope="session")
def warm_sandbox(open_judge):
    """The judge's hold on its workers, which may read the view of any lesson; `limit_sandbox` gives it other limits."""
    return open_judge._sandbox


@contextmanager
def limit_sandbox(sandbox, limits):
    """Inside, the workers of a sandbox have these limits, whose scratch folder is as large as before."""
    before = sandbox.limits
    assert limits.scratch_bytes == before.scratch_bytes, "the warm process has it already"
    sandbox.limits = limits
    try:
        yield sandbox
    finally:
        sandbox.limits = before


def make_chain_of_folders(folder, name, depth):
    """Folders below each other, made without their path, which may be longer than a path can be."""
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


class Work:
    """A lesson as a student got it, to be changed and handed in."""

    def __init__(self, folder, lessons, lesson="01_patchify", solved=False):
        self.folder, self.lessons, self.lesson = folder, lessons, lesson
        home = "solutions" if solved else "notebooks"
        self.notebook = json.loads((ROOT / home / f"{lesson}.ipynb").read_bytes())

    @property
    def cells(self):
        return self.notebook["cells"]

    def cell(self, grade_id):
        return next(cell for cell in self.cells if cell["metadata"].get("nbgrader", {}).get("grade_id") == grade_id)

    def place(self, grade_id):
        return self.cells.index(self.cell(grade_id))

    def answer(self, **sources):
        for name, source in sources.items():
            self.cell(name)["source"] = source
        return self

    def add(self, source, at=None):
        cell = {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        self.cells.insert(len(self.cells) if at is None else at, cell)
        return self

    def write(self, name=None, below=""):
        path = self.folder / below / (name or f"{self.lesson}.ipynb")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.notebook), encoding="utf-8")
        return path

    def read(self, exercise=None, **handed_in):
        return read(FoundFile(self.write(), **handed_in), self.lessons, exercise)


@pytest.fixture
def numbers_course_answers(monkeypatch):
    """The kit's own course, of three exercises, in the place of the one that it is installed with."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "numbers")
    monkeypatch.setenv(VARIABLE, "numbers_course.course:COURSE")
    return import_module("numbers_course.answers")


@pytest.fixture
def reset_class_in_use(monkeypatch):
    """Whatever class a test uses, none is in use when it is over."""
    monkeypatch.setattr(class_exercises._InUse, "files", None)


@pytest.fixture
def work(tmp_path, lessons):
    return lambda *arguments, **options: Work(tmp_path, lessons, *arguments, **options)
