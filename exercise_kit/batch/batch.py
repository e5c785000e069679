"""Grade many submissions: several at a time, each job in a process of its own, results in the order of the paths."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self

from exercise_kit.batch.executors import CPU_LIMIT, TIMEOUT_SECONDS, JobProcess
from exercise_kit.batch.job import (
    Done,
    GradingSettings,
    Task,
    grade_task,
    judge_submission,
    make_ungraded_result,
    open_submission_unless_graded,
)
from exercise_kit.batch.locations import Place
from exercise_kit.cluster.executor import Cluster, ClusterError, merge_remote_and_local_results
from exercise_kit.files import remove_drafts
from exercise_kit.judge.result import Result
from exercise_kit.submission.find import FoundFile, find
from exercise_kit.submission.released import Lessons
from exercise_kit.submission.submission import Submission

ON_A_CLUSTER = 128  # submissions that are under way at a time: as many threads wait for workers
OUT_OF_TIME = (
    f"the judge ran out of time while grading this: its job did not end within {CPU_LIMIT:.0f} seconds of processor "
    f"time, or {TIMEOUT_SECONDS:.0f} by the clock"
)


class Grader:
    """Grades submissions with a place's hidden checks and secret, and keeps the results there.

    Args:
        place: where checks, secret and results are, wherever the submissions lie.
        settings: how they are graded.
        jobs: how many processes of this machine: each grades one submission at a time; where the workers of a cluster
            grade, it reads submissions.
        scheduler: the address of a dask scheduler whose workers grade in place of processes of this machine.
        report: gets a sentence on each of these workers that refuses or is lost, in any thread.

    Raises:
        ClusterError: dask is not installed, there is no scheduler at the address, or one of another version.
    """

    def __init__(
        self,
        place: Place,
        settings: GradingSettings | None = None,
        jobs: int = 1,
        scheduler: str | None = None,
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._place, self._settings = place, settings or GradingSettings()
        self._cluster = Cluster(scheduler, self._settings.task(FoundFile(Path()), place), report) if scheduler else None
        self._slots = tuple(JobProcess() for _ in range(jobs))
        self._idle: queue.LifoQueue[JobProcess] = queue.LifoQueue()  # a warm process first
        for slot in reversed(self._slots):
            self._idle.put(slot)
        self._threads = ThreadPoolExecutor(ON_A_CLUSTER if scheduler else jobs, thread_name_prefix="grader")
        remove_drafts(place.results)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close(at_once=kind is not None)

    def close(self, at_once: bool = False) -> None:
        """End all processes: when they have finished their jobs, or ``at_once``."""
        self._threads.shutdown(wait=False, cancel_futures=at_once)
        if at_once:
            if self._cluster:
                self._cluster.stop()
            for slot in self._slots:
                slot.stop()
        self._threads.shutdown()
        for slot in self._slots:
            slot.close()
        if self._cluster:
            self._cluster.close()

    def grade(self, paths: Sequence[Path]) -> Iterator[Result]:
        """Grade all that paths name, as :func:`find` does; the results come in the order of the paths."""
        for done in self.run(self._find_files(paths)):
            if done.result is not None:
                yield done.result

    def run(self, handed_in: Iterable[FoundFile], on_done: Callable[[Done], None] | None = None) -> Iterator[Done]:
        """Grade files that were found.

        Args:
            handed_in: the files.
            on_done: called with each as soon as it is done, in any order and in any thread.
        """
        futures = [self._threads.submit(self._grade_found_file, each, on_done) for each in handed_in]
        try:
            for future in futures:
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def submit(self, path: Path) -> Future[Result]:
        """Grade one file while the caller goes on."""
        return self._threads.submit(self._grade_file_at_path, path)

    def _grade_file_at_path(self, path: Path) -> Result:
        handed_in = next(iter(self._find_files([path])), None)
        result = self._grade_found_file(handed_in).result if handed_in else None
        return result or make_ungraded_result(handed_in or FoundFile(path), "rejected", "it holds nothing to grade")

    def _find_files(self, paths: Sequence[Path]) -> list[FoundFile]:
        return find(paths, Lessons(self._place.class_dir).names, self._place.class_dir)

    def _grade_found_file(self, handed_in: FoundFile, on_done: Callable[[Done], None] | None = None) -> Done:
        task = self._settings.task(handed_in, self._place)
        try:
            if self._cluster:
                done = grade_task(
                    task,
                    partial(self._call_in_idle_process, open_submission_unless_graded),
                    partial(self._judge_on_cluster, self._cluster),
                )
            else:
                done = self._call_in_idle_process(grade_task, task)
        except CancelledError:
            raise
        except Exception as error:
            done = Done(make_ungraded_result(handed_in, "error", _explain_lost_job(error)))
        if on_done:
            on_done(done)
        return done

    def _call_in_idle_process(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Call a function in a process of this machine that is idle; when it dies, once more in a new one."""
        slot = self._idle.get()
        call = partial(slot.call, self._place.checks, self._place.class_dir, function, *arguments)
        try:
            try:
                return call()
            except (TimeoutError, CancelledError):
                raise
            except Exception:  # a killed process: try once more, alone
                return call()
        finally:
            self._idle.put(slot)

    def _judge_on_cluster(self, cluster: Cluster, task: Task, submission: Submission) -> Result:
        """Let the cluster judge it; files, of which nothing runs, are measured here, where the images are."""
        files = {each.name for each in submission.exercises if each.file}
        code = {each.name for each in submission.exercises} - files
        there = cluster.judge(task, submission.keep_exercises(code)) if code else None
        here = self._call_in_idle_process(judge_submission, task, submission.keep_exercises(files)) if files else None
        return merge_remote_and_local_results(there, here)


def _explain_lost_job(error: Exception) -> str:
    """Say what ended a job twice: its process died or did not end, or there could be none; or the cluster."""
    if isinstance(error, TimeoutError):
        return OUT_OF_TIME
    if isinstance(error, ClusterError):
        return str(error)
    if isinstance(error, BrokenExecutor):
        return f"its job was stopped twice ({type(error).__name__}): was there too little memory?"
    what = f"{type(error).__name__}: {error}"
    return f"the grader could not start a process for it ({what}); 'vit-course doctor' says what this machine lacks"
