"""One submission, graded in a process of its own: read, answered from the cache where it can be, judged, and kept.

A submission that brings this process down costs nobody else. The process has a limit on private writable memory
(RLIMIT_DATA, see getrlimit(2)): the last protection against a submission that would take the machine's memory. The
limit is soft, so that a process started from here can lift it for itself.
"""

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from exercise_kit.batch.locations import Place
from exercise_kit.batch.result_cache import (
    Store,
    TamperedResult,
    add_remarks_of_reader,
    make_exercise_keys,
    merge_results,
)
from exercise_kit.engine.class_exercises import set_class_in_use
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.judge.result import OUT_OF_MEMORY, Result, Status, add_wait_causes_to_reason, join_reason_clauses
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.package_view import get_or_build_view
from exercise_kit.sandbox.warm_process import WarmProcess, WarmProcessLost
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.flags import NOT_SANDBOXED
from exercise_kit.submission.notebook_file import Unreachable, parse_notebook_cells, read_bytes
from exercise_kit.submission.parse import read as parse
from exercise_kit.submission.released import Lessons, ReleasedError
from exercise_kit.submission.submission import NoSubmission, Submission

if TYPE_CHECKING:
    from exercise_kit.judge.judge import Judge


MEMORY = 4 << 30  # beyond an empty process: torch and the judge take 0.8 GB, and a submission is read 64 MB at a time


def limit_memory() -> None:
    """Let this process take no more than ``MEMORY``; where the kernel does not tell what it holds, nothing changes."""
    held, (_, hard) = read_private_memory_bytes(os.getpid()), resource.getrlimit(resource.RLIMIT_DATA)
    if held:
        most = held + MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def read_private_memory_bytes(process: int) -> int:
    """Bytes of private writable memory of a process; 0 where that cannot be seen."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


@dataclass(frozen=True, kw_only=True)
class GradingSettings:
    """How submissions are graded.

    Attributes:
        exercise: the only one to grade; None: the whole lesson.
        sandboxed: whether in the sandbox.
        fresh: whether to grade it again, whatever is kept.
        limits: what the students' code may use, and where it computes.
    """

    exercise: str | None = None
    sandboxed: bool = True
    fresh: bool = False
    limits: Limits = field(default_factory=Limits)

    def task(self, handed_in: FoundFile, place: Place) -> Task:
        """One file to grade like this."""
        return Task(handed_in, place, **{each.name: getattr(self, each.name) for each in fields(GradingSettings)})


@dataclass(frozen=True)
class Task(GradingSettings):
    """A submission to grade: ``handed_in``, the file; ``place``, of checks, secret and results; and how."""

    handed_in: FoundFile
    place: Place


@dataclass(frozen=True)
class Done:
    """The outcome of a task.

    Attributes:
        result: None: the file is no submission.
        from_cache: whether no exercise had to be graded.
        files: the digests of the files beside the notebook that count.
        unkept: why its result could not be kept, as a clause; "" where it was.
    """

    result: Result | None
    from_cache: bool = False
    files: tuple[str, ...] = ()
    unkept: str = ""


@dataclass(frozen=True)
class Opened:
    """A submission that was read, and what is left to judge of it.

    Attributes:
        submission: all of it.
        left: what is to be judged.
        keys: of all exercises.
        kept: results of the other exercises.
        changed: what is wrong with the kept results.
    """

    submission: Submission
    left: Submission
    keys: Mapping[str, str]
    kept: Result | None
    changed: str | None


def initialize_job_process() -> None:
    """Make this process a job's: it leaves Ctrl-C to the process that started it, and ends when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore", SyntaxWarning)  # of students' code, which is none of an instructor's business
    gc.set_threshold(100_000)  # torch's import makes no garbage, and to look for it takes a tenth of a job's time
    limit_memory()
    atexit.register(_exit_with_workers)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_exit_when_parent_ends, args=(parent,), daemon=True).start()


def _exit_with_workers() -> None:
    """End the workers and this process, without Python's slow clean-up of torch."""
    _judge_pool.close()
    os._exit(0)


def _exit_when_parent_ends(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)  # the warm process ends by itself when its line to this one closes


def grade_task(
    task: Task,
    read_submission: Callable[[Task], Opened | Done] | None = None,
    judge_answers: Callable[[Task, Submission], Result] | None = None,
) -> Done:
    """Read a submission, judge it, keep what comes of it; whatever it does, a result comes of it.

    Args:
        task: the submission, and how it is graded.
        read_submission: :func:`open_submission_unless_graded`, where it runs in another process than this.
        judge_answers: what grades the exercises of which no result is kept, where that is not this process's judge.
    """
    if judge_answers is None:
        set_class_in_use(task.place.class_dir)
        _judge_pool.warm_up(task)
    try:
        opened = (read_submission or open_submission_unless_graded)(task)
        if isinstance(opened, Done):
            done = opened
        else:
            done = _merge_and_save_result(task, opened, (judge_answers or judge_submission)(task, opened.left))
    except MemoryError:
        done = Done(make_ungraded_result(task.handed_in, "error", OUT_OF_MEMORY))
    if done.result is None:
        return done
    result = add_wait_causes_to_reason(done.result)
    flags = result.flags if task.sandboxed else tuple(dict.fromkeys((*result.flags, NOT_SANDBOXED)))
    return replace(done, result=replace(result, flags=flags))


def open_submission_unless_graded(task: Task) -> Opened | Done:
    """A submission of which something is left to judge; what became of it where nothing is."""
    set_class_in_use(task.place.class_dir)
    try:
        submission = parse(task.handed_in, Lessons(task.place.class_dir), task.exercise)
    except NoSubmission:
        return Done(None)
    except (ReleasedError, OSError, Unreachable) as error:
        return Done(make_ungraded_result(task.handed_in, "error", str(error)))
    if submission.rejected:
        return Done(make_ungraded_result(submission, "rejected", submission.reason, submission.flags))
    if not submission.exercises:
        return Done(None)
    keys = make_exercise_keys(submission, task.place, task.sandboxed, task.limits)
    kept, changed = None, None
    try:
        kept = None if task.fresh else Store(task.place.results, task.place.secret).load(submission, keys)
    except TamperedResult as error:
        changed = f"{error}, and it was graded again"
    left = set(keys) - {each.name for each in (kept.exercises if kept else ())}
    if not left:
        return Done(merge_results(submission, kept, None), from_cache=True, files=submission.files)
    return Opened(submission, _remove_reader_remarks(submission.keep_exercises(left)), keys, kept, changed)


def _merge_and_save_result(task: Task, opened: Opened, fresh_result: Result) -> Done:
    """Keep what came of a submission whose remaining exercises were judged, and return it."""
    submission, unkept = opened.submission, ""
    if fresh_result.status == "graded":
        fresh_result = merge_results(_remove_reader_remarks(submission), opened.kept, fresh_result)
        try:
            Store(task.place.results, task.place.secret).save(submission, opened.keys, fresh_result)
        except OSError as error:
            unkept = f"its result could not be kept: {error.strerror or error}"
        fresh_result = replace(fresh_result, reason=join_reason_clauses(opened.changed, fresh_result.reason, unkept))
    return Done(add_remarks_of_reader(submission, fresh_result), files=submission.files, unkept=unkept)


def _remove_reader_remarks(submission: Submission) -> Submission:
    """Without what its reader said: that is added to the result, where it is not said twice."""
    return replace(submission, reason=None, flags=(), notes=())


def make_ungraded_result(
    handed_in: FoundFile | Submission, status: Status, reason: str | None, flags: tuple[str, ...] = ()
) -> Result:
    """The result of a file that was not judged."""
    return Result(str(handed_in.path), handed_in.student, handed_in.assignment, status, reason, flags=flags)


class _JudgePool:
    """The judge of this process: made when it is first needed, made anew for other workers or after a failure.

    Whose checks and secret it has cannot change: for others there is another process.
    """

    def __init__(self) -> None:
        self.judge: Judge | None = None
        self._warm: WarmProcess | None = None
        self._for: object = None

    def warm_up(self, task: Task) -> None:
        """Start the process of which the workers are made before this one imports torch, so that both do it at once."""
        if self.judge is None and self._warm is None and _has_readable_cells(task.handed_in):
            # what stands in the way is said when the judge needs it
            with suppress(OSError, WarmProcessLost, ReleasedError):
                self._warm, self._for = _start_warm_process(task), (task.sandboxed, task.limits)

    def get_or_start_judge(self, task: Task) -> Judge:
        """The judge with a task's checks, secret and settings."""
        from exercise_kit.judge.judge import Judge

        if self._for != (task.sandboxed, task.limits):
            self.close()
        if self.judge is None:
            warm, self._warm, self._for = self._warm, None, (task.sandboxed, task.limits)
            place = task.place
            self.judge = Judge(place.checks, place.secret, task.limits, task.sandboxed, warm=warm)
        return self.judge

    def close(self) -> None:
        """End the judge, and a warm process that no judge has taken."""
        ending = (self.judge, self._warm)
        self.judge = self._warm = None
        for each in ending:
            if each is not None:
                with suppress(Exception):  # it failed, or it would not be closed here
                    each.close()


def _has_readable_cells(handed_in: FoundFile) -> bool:
    """Say whether a file has cells, so that it is likely to be graded; its reader says what is wrong with any other."""
    try:
        return handed_in.path.suffix.lower() == ".py" or bool(parse_notebook_cells(read_bytes(handed_in.path)).cells)
    except Exception:
        return False


def _start_warm_process(task: Task) -> WarmProcess:
    """A warm process for every lesson that there is; only what needs no torch is imported for it."""
    views = [get_or_build_view(lesson) for lesson in Lessons(task.place.class_dir).names if lesson[:2].isdecimal()]
    return WarmProcess(task.limits, views, sandboxed=task.sandboxed)


_judge_pool = _JudgePool()


def judge_submission(task: Task, submission: Submission, key: bytes | None = None) -> Result:
    """The result of a submission's exercises, from this process's judge; an error of ours costs this submission alone.

    Args:
        task: how it is judged.
        submission: of which the exercises are to be judged.
        key: from which its draws come, where the secret that it was made of is elsewhere.
    """
    try:
        result = _judge_pool.get_or_start_judge(task).grade(submission, key)
    except Exception as error:
        unusable = isinstance(error, HiddenChecksError)
        what = "the hidden checks cannot be used until this is mended" if unusable else "the judge failed"
        words = str(error) if unusable else f"{type(error).__name__}: {error}"
        result = make_ungraded_result(submission, "error", f"{what}: {words}", submission.flags)
    if result.status == "error":
        _judge_pool.close()  # the next submission gets a judge of its own
    return result
