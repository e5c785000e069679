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
def place(tmp_path):
    return Place(None, ROOT / "tests" / "hidden", b"secret", tmp_path / "results")


@pytest.fixture
def rejected(tmp_path):
    """Files that are graded at once, for they are no notebooks; named so that order is not by chance."""
    folder = tmp_path / "handed in"
    folder.mkdir()
    paths = [folder / f"{name}.ipynb" for name in "dacb"]
    for path in paths:
        path.write_text("{")
    return paths


def test_results_come_in_the_order_of_the_paths(place, rejected):
    with Grader(place, jobs=2) as grader:
        results = list(grader.grade(rejected))
    assert [result.path for result in results] == [str(path) for path in rejected]
    assert {result.status for result in results} == {"rejected"}


def test_one_file_is_graded_while_the_caller_goes_on(place, rejected):
    with Grader(place) as grader:
        futures = [grader.submit(rejected[0]) for _ in range(3)]
        assert {future.result().status for future in futures} == {"rejected"}


class KilledProcess(JobProcess):
    """A job process that is killed before some of its jobs, as one is that took all memory."""

    deaths = 0

    def call(self, checks, class_dir, function, task):
        if task.handed_in.path.stem == "a" and KilledProcess.deaths:
            KilledProcess.deaths -= 1
            pid = self._ensure_running(task.place.checks, task.place.class_dir) and self._pid
            os.kill(pid, signal.SIGKILL)
            with suppress(OSError):  # it is gone, and somebody has waited for it
                while " Z " not in Path(f"/proc/{pid}/stat").read_text():
                    time.sleep(0.01)
        return super().call(checks, class_dir, function, task)


@pytest.mark.parametrize(("deaths", "status"), [(1, "rejected"), (2, "error")])
@pytest.mark.proof
def test_a_killed_process_costs_its_submission_one_more_try(place, rejected, monkeypatch, deaths, status):
    monkeypatch.setattr(batch, "JobProcess", KilledProcess)
    KilledProcess.deaths = deaths
    with Grader(place) as grader:
        results = {Path(result.path).stem: result for result in grader.grade(rejected)}
    assert results["a"].status == status
    assert {results[name].status for name in "bcd"} == {"rejected"}
    if status == "error":
        assert "stopped twice" in results["a"].reason


def test_a_process_that_cannot_be_made_is_no_want_of_memory(place, rejected, monkeypatch):
    """As where Python's library and its interpreter do not belong together."""

    def break_pool(*_: object, **__: object):
        raise AttributeError("'_thread.RLock' object has no attribute '_recursion_count'")

    monkeypatch.setattr("exercise_kit.batch.executors.ProcessPoolExecutor", break_pool)
    with Grader(place) as grader:
        (result,) = grader.grade(rejected[:1])
    assert result.status == "error"
    assert "'_recursion_count'" in result.reason
    assert "memory" not in result.reason


def test_changed_checks_are_evaluated_by_a_new_process(rejected, tmp_path):
    checks = tmp_path / "hidden"
    checks.mkdir()
    with Grader(Place(None, checks, b"secret", tmp_path / "results")) as grader:
        started = []
        for text in ("a = 1", "a = 1", "a = 22"):
            if not started or text != "a = 1":
                (checks / "test_a.py").write_text(text)
            grader.submit(rejected[0]).result()
            started.append(grader._slots[0]._pid)
    assert started[0] == started[1] != started[2]


def test_wherever_a_submission_lies_it_is_graded_with_the_grader_s_own_place(place, rejected, monkeypatch):
    started = []
    monkeypatch.setattr(JobProcess, "call", lambda *given: started.append(given[-1]) or grade_task(given[-1]))
    own = rejected[0].parent
    (own / "hidden").mkdir()
    (own / "hidden" / "test_a.py").touch()
    (own / "nbgrader_config.py").touch()
    with Grader(place) as grader:
        list(grader.grade([own, own.parent]))
        result = grader.submit(rejected[0]).result()
    assert len(started) > len(rejected)
    assert {task.place for task in started} == {place}
    assert result.flags == ("check-files",)


def test_a_judge_that_hangs_is_stopped(place, rejected, monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT_SECONDS", 0.0)
    with Grader(place) as grader:
        results = list(grader.grade(rejected[:1]))
    assert "did not end" in results[0].reason


def test_a_judge_that_works_for_ever_is_stopped(place, rejected, monkeypatch):
    monkeypatch.setattr(executors, "CPU_LIMIT", -1.0)
    with Grader(place) as grader:
        results = list(grader.grade(rejected[:1]))
        monkeypatch.undo()
        assert {result.status for result in grader.grade(rejected[1:])} == {"rejected"}
    assert results[0].status == "error"
    assert results[0].reason.startswith("the judge ran out of time while grading this")


def memory_hungry(task):
    """Grade a submission, which takes more memory than a job may have where it is called a; runs in a job's process."""
    right = job.open_submission
    job.open_submission = _takes_it_all if task.handed_in.path.stem == "a" else right
    try:
        return grade_task(task)
    finally:
        job.open_submission = right


def _takes_it_all(*_):
    try:
        mmap.mmap(-1, MEMORY + (1 << 30), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError:
        raise MemoryError from None


def test_a_job_without_memory_loses_one_submission(place, rejected, monkeypatch):
    monkeypatch.setattr(batch, "grade_task", memory_hungry)
    with Grader(place) as grader:
        results = {Path(result.path).stem: result for result in grader.grade(rejected)}
    assert results["a"].status == "error"
    assert results["a"].reason.startswith("the judge ran out of memory while grading this")
    assert {results[name].status for name in "bcd"} == {"rejected"}


HELD = []


def hold(size):
    """Take private memory for as long as the process lives, and tell which that is; runs in a job's process."""
    HELD.append(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
    return os.getpid()


def test_a_process_that_holds_too_much_does_no_other_job(place):
    process = JobProcess()
    held_by = [process.call(place.checks, None, hold, size) for size in (MEMORY * 7 // 8, 1, 1)]
    process.close()
    assert held_by[0] != held_by[1] == held_by[2]


def test_a_job_whose_pool_was_stopped_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(executors, "TIMEOUT_SECONDS", 0.1)
    future = Future()
    future.cancel()
    with pytest.raises(CancelledError):
        executors._wait_for(future, os.getpid())


def test_stopping_half_way_leaves_no_process(place, rejected):
    grader = Grader(place, jobs=2)
    results = grader.grade(rejected * 5)
    next(results)
    started = [slot._pid for slot in grader._slots if slot._pid]
    grader.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert started
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]


def test_a_file_that_went_away_is_our_error(place, rejected):
    rejected[0].unlink()
    with Grader(place) as grader:
        gone, other = (done.result for done in grader.run([FoundFile(path) for path in rejected[:2]]))
    assert (gone.status, other.status) == ("error", "rejected")
    assert "cannot be reached (No such file or directory)" in gone.reason
