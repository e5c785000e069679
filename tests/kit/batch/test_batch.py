"""Many submissions at a time: processes that die, order, and what is reported."""

import mmap
import os
import signal
import time
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from pathlib import Path

import pytest

from exercise_kit.batch import batch, executors, job
from exercise_kit.batch.batch import Grader
from exercise_kit.batch.executors import JobProcess
from exercise_kit.batch.job import MEMORY, grade_task
from exercise_kit.batch.locations import Place
from exercise_kit.submission.find import FoundFile

ROOT = Path(__file__).parents[3]


@pytest.fixture
def grading_place(tmp_path):
    return Place(None, ROOT / "tests" / "hidden", b"secret", tmp_path / "results")


@pytest.fixture
def rejected_files(tmp_path):
    """Files that are graded at once, for they are no notebooks; named so that order is not by chance."""
    folder = tmp_path / "handed in"
    folder.mkdir()
    paths = [folder / f"{name}.ipynb" for name in "dacb"]
    for path in paths:
        path.write_text("{")
    return paths


def test_results_come_in_the_order_of_the_paths(grading_place, rejected_files):
    with Grader(grading_place, jobs=2) as grader:
        results = list(grader.grade(rejected_files))
    assert [result.path for result in results] == [str(path) for path in rejected_files]
    assert {result.status for result in results} == {"rejected"}


class KilledProcess(JobProcess):
    """A job process that is killed before some of its jobs, as one is that took all memory."""

    deaths = 0

    def call(self, checks, class_dir, function, task):
        if task.handed_in.path.stem == "a" and KilledProcess.deaths:
            KilledProcess.deaths -= 1
            pid = self._get_process_with_current_checks(task.place.checks, task.place.class_dir) and self._pid
            os.kill(pid, signal.SIGKILL)
            with suppress(OSError):  # it is gone, and somebody has waited for it
                while " Z " not in Path(f"/proc/{pid}/stat").read_text():
                    time.sleep(0.01)
        return super().call(checks, class_dir, function, task)


@pytest.mark.parametrize(("deaths", "status"), [(1, "rejected"), (2, "error")])
@pytest.mark.proof
def test_a_killed_process_costs_its_submission_one_more_try(grading_place, rejected_files, monkeypatch, deaths, status):
    monkeypatch.setattr(batch, "JobProcess", KilledProcess)
    KilledProcess.deaths = deaths
    with Grader(grading_place) as grader:
        results = {Path(result.path).stem: result for result in grader.grade(rejected_files)}
    assert results["a"].status == status
    assert {results[name].status for name in "bcd"} == {"rejected"}
    if status == "error":
        assert "stopped twice" in results["a"].reason


def test_a_process_that_cannot_be_made_is_no_want_of_memory(grading_place, rejected_files, monkeypatch):
    """As where Python's library and its interpreter do not belong together."""

    def break_pool(*_: object, **__: object):
        raise AttributeError("'_thread.RLock' object has no attribute '_recursion_count'")

    monkeypatch.setattr("exercise_kit.batch.executors.ProcessPoolExecutor", break_pool)
    with Grader(grading_place) as grader:
        (result,) = grader.grade(rejected_files[:1])
    assert result.status == "error"
    assert "'_recursion_count'" in result.reason
    assert "memory" not in result.reason


def test_changed_checks_are_evaluated_by_a_new_process(rejected_files, tmp_path):
    checks = tmp_path / "hidden"
    checks.mkdir()
    with Grader(Place(None, checks, b"secret", tmp_path / "results")) as grader:
        started = []
        for text in ("a = 1", "a = 1", "a = 22"):
            if not started or text != "a = 1":
                (checks / "test_a.py").write_text(text)
            grader.submit(rejected_files[0]).result()
            started.append(grader._slots[0]._pid)
    assert started[0] == started[1] != started[2]


def test_wherever_a_submission_lies_it_is_graded_with_the_grader_s_own_place(
    grading_place, rejected_files, monkeypatch
):
    started = []
    monkeypatch.setattr(JobProcess, "call", lambda *given: started.append(given[-1]) or grade_task(given[-1]))
    own = rejected_files[0].parent
    (own / "hidden").mkdir()
    (own / "hidden" / "test_a.py").touch()
    (own / "nbgrader_config.py").touch()
    with Grader(grading_place) as grader:
        list(grader.grade([own, own.parent]))
        result = grader.submit(rejected_files[0]).result()
    assert len(started) > len(rejected_files)
    assert {task.place for task in started} == {grading_place}
    assert result.flags == ("check-files",)


def test_a_judge_that_hangs_is_stopped(grading_place, rejected_files, monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT_SECONDS", 0.0)
    with Grader(grading_place) as grader:
        results = list(grader.grade(rejected_files[:1]))
    assert "did not end" in results[0].reason


def test_a_judge_that_works_for_ever_is_stopped(grading_place, rejected_files, monkeypatch):
    monkeypatch.setattr(executors, "CPU_LIMIT", -1.0)
    with Grader(grading_place) as grader:
        results = list(grader.grade(rejected_files[:1]))
        monkeypatch.undo()
        assert {result.status for result in grader.grade(rejected_files[1:])} == {"rejected"}
    assert results[0].status == "error"
    assert results[0].reason.startswith("the judge ran out of time while grading this")


def grade_with_too_much_memory(task):
    """Grade a submission, which takes more memory than a job may have where it is called a; runs in a job's process."""
    right = job.open_submission_unless_graded
    job.open_submission_unless_graded = _exhaust_memory if task.handed_in.path.stem == "a" else right
    try:
        return grade_task(task)
    finally:
        job.open_submission_unless_graded = right


def _exhaust_memory(*_):
    try:
        mmap.mmap(-1, MEMORY + (1 << 30), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError from None


def test_a_job_without_memory_loses_one_submission(grading_place, rejected_files, monkeypatch):
    monkeypatch.setattr(batch, "grade_task", grade_with_too_much_memory)
    with Grader(grading_place) as grader:
        results = {Path(result.path).stem: result for result in grader.grade(rejected_files)}
    assert results["a"].status == "error"
    assert results["a"].reason.startswith("the judge ran out of memory while grading this")
    assert {results[name].status for name in "bcd"} == {"rejected"}


HELD = []


def hold_memory(size):
    """Take private memory for as long as the process lives, and tell which that is; runs in a job's process."""
    HELD.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return os.getpid()


def test_a_process_that_holds_too_much_does_no_other_job(grading_place):
    process = JobProcess()
    held_by = [process.call(grading_place.checks, None, hold_memory, size) for size in (MEMORY * 7 // 8, 1, 1)]
    process.close()
    assert held_by[0] != held_by[1] == held_by[2]


def test_a_job_whose_pool_was_stopped_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT_SECONDS", 0.1)
    future = Future()
    future.cancel()
    with pytest.raises(CancelledError):
        executors._wait_for_result(future, os.getpid())


def test_stopping_half_way_leaves_no_process(grading_place, rejected_files):
    grader = Grader(grading_place, jobs=2)
    results = grader.grade(rejected_files * 5)
    next(results)
    started = [slot._pid for slot in grader._slots if slot._pid]
    grader.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert started
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


def test_a_file_that_went_away_is_our_error(grading_place, rejected_files):
    rejected_files[0].unlink()
    with Grader(grading_place) as grader:
        gone, other = (done.result for done in grader.run([FoundFile(path) for path in rejected_files[:2]]))
    assert (gone.status, other.status) == ("error", "rejected")
    assert "cannot be reached (No such file or directory)" in gone.reason
