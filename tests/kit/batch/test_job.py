"""One submission: what is taken over, what is graded, what is kept. The judge itself is stood in for."""

import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from exercise_kit.batch import job
from exercise_kit.batch.job import Task, grade_task
from exercise_kit.judge.result import ExerciseResult, Result
from exercise_kit.sandbox.limits import Limits
from exercise_kit.submission.find import FoundFile
from tests.outline import POINTS

ROOT = Path(__file__).parents[3]


class Judge:
    """Gives every exercise half of its points, and remembers what it was asked."""

    def __init__(self):
        self.judged = []
        self.status = "graded"
        self.flags = ()
        self.reason = None

    def grade(self, submission, key=None):
        assert (submission.reason, submission.flags) == (None, ()), "what reading found is added afterward"
        self.judged.append([each.name for each in submission.exercises])
        exercises = tuple(
            ExerciseResult(each.name, each.max_score / 2, each.max_score) for each in submission.exercises
        )
        return Result("", None, None, self.status, self.reason, flags=self.flags, exercises=exercises)


@pytest.fixture
def stand_in_judge(monkeypatch):
    stand_in = Judge()
    monkeypatch.setattr(job._judge_pool, "get_or_start_judge", lambda task: stand_in)
    monkeypatch.setattr(job._judge_pool, "warm_up", lambda task: None)
    return stand_in


@pytest.fixture
def task(work, grading_place):
    return Task(FoundFile(work().write(), "ada", "01_patchify"), grading_place)


WORTH = sum(POINTS["01_patchify"].values())
ALL = ["patchify", "unpatchify", "PatchEmbedding", "conv_from_linear", "fix_patchify"]


def test_what_was_graded_is_taken_over(stand_in_judge, task):
    first, again = grade_task(task), grade_task(task)
    assert stand_in_judge.judged == [ALL]
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again.result == first.result
    assert (first.result.score, first.result.max_score, first.result.student) == (WORTH / 2, WORTH, "ada")


def test_fresh_grades_all_again(stand_in_judge, task):
    grade_task(task)
    assert not grade_task(replace(task, fresh=True)).from_cache
    assert stand_in_judge.judged == [ALL, ALL]


def test_after_a_changed_check_only_its_exercise_is_graded_again(stand_in_judge, task):
    grade_task(task)
    check = task.place.checks / "test_unpatchify.py"
    check.write_text(check.read_text() + "\n# mended\n")
    done = grade_task(task)
    assert stand_in_judge.judged == [ALL, ["unpatchify"]]
    assert [each.name for each in done.result.exercises] == ALL
    assert done.result.score == WORTH / 2
    assert grade_task(task).from_cache


def test_one_exercise_alone_leaves_the_others_kept(stand_in_judge, task):
    grade_task(task)
    assert grade_task(replace(task, exercise="patchify")).from_cache
    assert [each.name for each in grade_task(replace(task, exercise="patchify")).result.exercises] == ["patchify"]
    assert stand_in_judge.judged == [ALL]


def test_the_same_work_of_two_students_is_graded_once_and_reported_of_each(stand_in_judge, task, tmp_path):
    grade_task(task)
    twin = tmp_path / "twin" / "01_patchify.ipynb"
    twin.parent.mkdir()
    shutil.copy(task.handed_in.path, twin)
    done = grade_task(replace(task, handed_in=FoundFile(twin, "ben", "01_patchify")))
    assert done.from_cache
    assert (done.result.student, done.result.path) == ("ben", str(twin))


def test_reasons_and_flags_of_reading_and_of_running_are_reported_together(stand_in_judge, work, grading_place):
    stand_in_judge.flags, stand_in_judge.reason = ("timeout",), "the cell of patchify raised ValueError when it ran"
    mine = work().answer(unpatchify="")
    mine.cells.remove(mine.cell("check-patchify"))
    task = Task(FoundFile(mine.write()), grading_place)
    for done in (grade_task(task), grade_task(task)):
        assert done.result.reason == f"the cell of unpatchify is empty; {stand_in_judge.reason}"
        assert done.result.flags == ("test-cell-deleted", "timeout")


def test_the_files_beside_a_notebook_are_reported_whether_graded_or_taken_over(stand_in_judge, work, grading_place):
    path = work("07_experiments").write()
    task = Task(FoundFile(path), grading_place)
    assert grade_task(task).files == ()
    (path.parent / "vit_cifar.safetensors").write_bytes(b"weights")
    graded, kept = grade_task(task), grade_task(task)
    assert kept.from_cache
    assert graded.files == kept.files
    assert len(graded.files) == 1


def test_an_edited_result_is_graded_again_and_reported(stand_in_judge, task):
    first = grade_task(task).result
    (entry,) = task.place.results.iterdir()
    entry.write_text(entry.read_text().replace('"score": ', '"score": 120', 1))
    regraded = grade_task(task)
    assert not regraded.from_cache
    assert regraded.result.score == first.score
    assert regraded.result.reason == "its kept result had been changed by somebody else, and it was graded again"
    again = grade_task(task)
    assert again.from_cache
    assert again.result.reason is None


def test_an_error_of_ours_is_not_kept(stand_in_judge, task):
    stand_in_judge.status = "error"
    assert grade_task(task).result.status == "error"
    stand_in_judge.status = "graded"
    assert grade_task(task).result.status == "graded"


def test_a_judge_that_cannot_be_made_costs_a_named_error(task, monkeypatch):
    def raise_runtime_error(*_):
        raise RuntimeError("no hidden checks")

    monkeypatch.setattr(job._judge_pool, "get_or_start_judge", raise_runtime_error)
    done = grade_task(task)
    assert (done.result.status, done.result.student) == ("error", "ada")
    assert done.result.reason == "the judge failed: RuntimeError: no hidden checks"


def test_broken_hidden_checks_are_named_with_their_line(task):
    (task.place.checks / "test_mine.py").write_text("def broken(:\n")
    done = grade_task(task)
    assert done.result.status == "error"
    assert "cannot be used until this is mended: test_mine.py:1: SyntaxError" in done.result.reason


def test_where_nothing_can_be_kept_grading_goes_on_and_it_is_reported(stand_in_judge, task):
    task.place.results.write_text("a file in the way")
    done = grade_task(task)
    assert done.result.status == "graded"
    assert done.result.score == WORTH / 2
    assert done.result.reason == "its result could not be kept: File exists"


def test_no_sandbox_is_reported_of_every_submission(stand_in_judge, task, tmp_path):
    bad = tmp_path / "bad.ipynb"
    bad.write_text("{")
    for path in (task.handed_in.path, bad):
        done = grade_task(replace(task, handed_in=FoundFile(path), sandboxed=False))
        assert "not-sandboxed" in done.result.flags
    assert not grade_task(task).from_cache, "a result without the sandbox does not stand for one with it"


def test_a_file_that_is_no_submission_is_left_out(stand_in_judge, task, tmp_path):
    helper = tmp_path / "helper.py"
    helper.write_text("x = 1")
    assert grade_task(replace(task, handed_in=FoundFile(helper))).result is None
    assert grade_task(replace(task, handed_in=FoundFile(helper, named=True))).result.status == "rejected"
    assert grade_task(replace(task, exercise="Mlp")).result is None, "another lesson's, found in a folder"


WARM = """
import pickle, sys
from exercise_kit.batch import job
task = pickle.loads(sys.stdin.buffer.read())
job._judge_pool.warm_up(task)
warm = job._judge_pool._warm
assert warm is not None and not {"torch", "numpy", "pytest", "IPython"} & sys.modules.keys()
assert any(view.name.startswith("01-") for view in warm.views)
done = job.grade_task(task)
assert done.result.status == "graded" and done.result.score == 0.0, done
assert job._judge_pool.judge._sandbox._warm is warm, "the judge makes its workers of it"
job._judge_pool.close()
assert warm._process.poll() is not None, "and ends it"
"""


@pytest.mark.proof
def test_the_warm_process_starts_before_torch_and_is_the_one_that_grades(task):
    one = replace(task, exercise="conv_from_linear", sandboxed=False)
    subprocess.run([sys.executable, "-c", WARM], input=pickle.dumps(one), check=True, cwd=ROOT)


UNUSED = """
import pickle, sys
from exercise_kit.batch import job
job._judge_pool.warm_up(pickle.loads(sys.stdin.buffer.read()))
print(job._judge_pool._warm._home.name, flush=True)
job._exit_with_workers()
"""


def test_a_warm_process_that_graded_nothing_leaves_no_folder(task):
    """As where every result is kept."""
    one = pickle.dumps(replace(task, sandboxed=False))
    done = subprocess.run([sys.executable, "-c", UNUSED], input=one, capture_output=True, check=True, cwd=ROOT)
    folder = Path(done.stdout.decode().strip())
    assert folder.name.startswith("vit-course-worker-")
    assert not folder.exists()


@pytest.mark.parametrize("content", ["", "{", '{"cells": []}'])
def test_no_process_is_started_for_what_cannot_be_opened(task, tmp_path, monkeypatch, content):
    monkeypatch.setattr(job, "_start_warm_process", lambda task: pytest.fail("it was started"))
    bad = tmp_path / "bad.ipynb"
    bad.write_text(content)
    harness = job._JudgePool()
    for path in (bad, tmp_path / "missing.ipynb"):
        harness.warm_up(replace(task, handed_in=FoundFile(path)))


def test_a_warm_process_for_other_protections_is_not_used(task, monkeypatch):
    """Neither one without them, nor for another device."""
    made = []

    class Fake:
        def __init__(self, *_, warm=None, **__):
            made.append(warm)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    monkeypatch.setattr("exercise_kit.judge.judge.Judge", Fake)
    monkeypatch.setattr(job, "_start_warm_process", lambda task: "warm")
    for other in ({"sandboxed": False}, {"limits": Limits().on("cuda:0")}, {}):
        harness = job._JudgePool()
        harness.warm_up(task)
        harness.get_or_start_judge(replace(task, **other))
        assert harness._warm is None
    assert made == [None, None, "warm"]
