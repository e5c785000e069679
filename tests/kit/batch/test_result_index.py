"""A kept result is found without reading the submission, and not once anything that it depends on has changed."""

import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exercise_kit.batch import job, result_index
from exercise_kit.batch.job import Task, grade_here
from exercise_kit.batch.locations import Place
from exercise_kit.batch.result_index import look_up
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.submission.find import FoundFile
from tests.kit.batch.conftest import write_own_checks

ROOT = Path(__file__).parents[3]
SCRIPT = """
import pickle, sys
from exercise_kit.batch.batch import Grader
task = pickle.loads(sys.stdin.buffer.read())
with Grader(task.place) as grader:
    (done,) = grader.run([task.handed_in])
assert done.from_cache and done.result.score == 13.0, done
assert not {"torch", "numpy", "pytest", "IPython", "nbformat"} & sys.modules.keys()
assert not [slot for slot in grader._slots if slot._pid], "a process was started for it"
"""


@pytest.fixture
def task(work, tmp_path, monkeypatch):
    """A task of a class whose judge gives every exercise half of its points."""

    class Judge:
        def grade(self, submission, refused):
            exercises = (ExerciseResult(each.name, each.max_score / 2, each.max_score) for each in submission.exercises)
            return Result("", None, None, "graded", None, exercises=tuple(exercises))

    monkeypatch.setattr(job._judge_pool, "with_judge", lambda task, act: act(Judge()))
    monkeypatch.setattr(job._judge_pool, "warm_up", lambda task: None)
    folder = tmp_path / "class"
    write_own_checks(folder / "hidden")
    for step, home in (("release", "notebooks"), ("source", "solutions")):
        (folder / step / "01_patchify").mkdir(parents=True)
        shutil.copy(ROOT / home / "01_patchify.ipynb", folder / step / "01_patchify")
    place = Place(folder, folder / "hidden", b"secret", folder / ".vit_course" / "results")
    return Task(FoundFile(work().write(), "ada", "01_patchify"), place)


def test_what_was_graded_is_found_again_as_it_was(task):
    assert look_up(task) is None
    assert look_up(task) is None, "looking leaves nothing behind"
    graded = grade_here(task).result
    assert look_up(task) == graded
    assert graded.score == 13.0


def test_the_command_answers_without_torch_and_without_a_process(task):
    grade_here(task)
    subprocess.run([sys.executable, "-c", SCRIPT], input=pickle.dumps(task), check=True, cwd=ROOT)


def _append(path):
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    "change",
    [
        lambda task: _append(task.handed_in.path),
        lambda task: _append(task.place.checks / "test_patchify.py"),
        lambda task: _append(task.place.checks / "conftest.py"),
        lambda task: (task.place.checks / "helper.py").write_text("x = 1\n"),
        lambda task: (task.place.checks / "test_unpatchify.py").unlink(),
        lambda task: _append(task.place.class_dir / "release" / "01_patchify" / "01_patchify.ipynb"),
        lambda task: _append(task.place.class_dir / "source" / "01_patchify" / "01_patchify.ipynb"),
        lambda task: [path.unlink() for path in task.place.results.iterdir()],
        lambda task: [_append(path) for path in task.place.results.iterdir()],
        lambda task: [_append(path) for path in (task.place.results.parent / result_index.FOLDER).iterdir()],
        lambda task: [path.write_bytes(b"") for path in (task.place.results.parent / result_index.FOLDER).iterdir()],
    ],
)
def test_nothing_is_found_once_it_may_be_another(task, change):
    grade_here(task)
    assert look_up(task)
    change(task)
    assert look_up(task) is None


@pytest.mark.parametrize(
    "other",
    [{"exercise": "patchify"}, {"sandboxed": False}, {"device": "cuda:0"}, {"fresh": True}],
    ids=lambda other: next(iter(other)),
)
def test_another_request_is_another_result(task, other):
    grade_here(task)
    assert look_up(replace(task, **other)) is None


def test_another_secret_finds_nothing(task):
    grade_here(task)
    assert look_up(replace(task, place=replace(task.place, secret=b"another"))) is None


def test_other_code_finds_nothing(task, monkeypatch):
    """The kit's, the references', the mistakes': all of it is in that digest."""
    grade_here(task)
    monkeypatch.setattr(result_index, "code_digest", lambda: "another")
    assert look_up(task) is None


def test_a_result_of_a_file_that_lies_beside_it_is_not_entered(task, work):
    cifar = replace(task, handed_in=FoundFile(work("07_experiments").write(), "ada", "07_experiments"))
    assert grade_here(cifar).result.status == "graded"
    assert grade_here(cifar).from_cache
    assert look_up(cifar) is None


def test_a_remark_that_is_made_once_is_not_found_again(task):
    grade_here(task)
    (entry,) = (path for path in task.place.results.iterdir() if '"ada"' in path.read_text())
    entry.write_text(entry.read_text().replace('"score": 4.0', '"score": 1202.0'))
    assert look_up(task) is None
    assert "changed by somebody else" in grade_here(task).result.reason
    assert look_up(task).reason is None


def test_an_entry_moved_to_another_request_is_not_believed(task, tmp_path):
    grade_here(task)
    (entry,) = (path for path in (task.place.results.parent / result_index.FOLDER).iterdir())
    other = replace(task, handed_in=replace(task.handed_in, student="ben"))
    shutil.copy(
        entry, result_index._path(other, result_index.hashlib.sha256(other.handed_in.path.read_bytes()).hexdigest())
    )
    assert look_up(other) is None


def test_links_and_pipes_are_left_to_the_reader(task, tmp_path):
    grade_here(task)
    link, pipe = tmp_path / "link.ipynb", tmp_path / "pipe.ipynb"
    link.symlink_to(task.handed_in.path)
    os.mkfifo(pipe)
    for path in (link, pipe, tmp_path / "missing.ipynb"):
        assert look_up(replace(task, handed_in=FoundFile(path))) is None
