"""One submission, graded in a process of its own: read, answered from the cache where it can be, judged, and kept.

A submission that brings this process down costs nobody else. The process has a limit on private writable memory
(RLIMIT_DATA, see getrlimit(2)): the last protection against a submission that would take the machine's memory. The
limit is relative to what the process holds when it is set, and soft, so that a process started from here can lift it
for itself.
"""

from __future__ import annotations

import atexit
import gc
import os
import resource
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exercise_kit.batch.locations import Place
from exercise_kit.batch.result_cache import Store, TamperedResult, exercise_keys, merged
from exercise_kit.engine.class_exercises import in_use, use_class
from exercise_kit.judge.result import Result, Status, with_waiting
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.package_view import provide_view
from exercise_kit.sandbox.warm_process import WarmProcess, WarmProcessLost
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.flags import NOT_SANDBOXED
from exercise_kit.submission.notebook_file import Unreachable, open_notebook, read_bytes
from exercise_kit.submission.released import Lessons, ReleasedError
from exercise_kit.submission.submission import NoSubmission, Submission

if TYPE_CHECKING:
    from exercise_kit.judge.judge import Judge


# while torch and the judge are still to be imported, and a submission is read
MEMORY_TO_START = 4 << 30
# beyond the judge; it reads 64 MB at a time, and its own tensors are tiny
MEMORY_TO_GRADE = 2 << 30


def limit_memory(room: int) -> None:
    """Let this process take ``room`` bytes more than it holds now; where the kernel does not tell, nothing changes."""
    held, (_, hard) = _held(), resource.getrlimit(resource.RLIMIT_DATA)
    if held:
        most = held + room
        resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def is_nearly_exhausted() -> bool:
    """Whether less than half of the room to grade is left, so that another process should take over."""
    soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
    return soft != resource.RLIM_INFINITY and _held() > soft - MEMORY_TO_GRADE // 2


def _held() -> int:
    """Bytes of private writable memory; 0 where that cannot be seen."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[5]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


@dataclass(frozen=True, kw_only=True)
class How:
    """How submissions are graded.

    Attributes:
        exercise: the only one to grade; None: the whole lesson.
        sandboxed: whether in the sandbox.
        fresh: whether to grade it again, whatever is kept.
        device: where the students' code computes, as :func:`~exercise_kit.sandbox.devices.checked` gives it.
    """

    exercise: str | None = None
    sandboxed: bool = True
    fresh: bool = False
    device: str = "cpu"

    def task(self, handed_in: FoundFile, place: Place) -> Task:
        """One file to grade like this."""
        return Task(handed_in, place, **{each.name: getattr(self, each.name) for each in fields(How)})


@dataclass(frozen=True)
class Task(How):
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
    keys: Mapping[str, str] = field(default_factory=dict)
    kept: Result | None = None
    changed: str | None = None


Run = Callable[..., Any]  # calls a function with the arguments that follow it, in some process of this machine
JudgeOf = Callable[[Task, Submission], Result]  # wherever it judges


def start_process() -> None:
    """Make this process a job's: it leaves Ctrl-C to the process that started it, and ends when that one does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    warnings.simplefilter("ignore", SyntaxWarning)  # of students' code, which is none of an instructor's business
    _judge_pool.is_bounded = True
    limit_memory(MEMORY_TO_START)
    atexit.register(_end)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end() -> None:
    """End the workers and this process, without Python's slow clean-up of torch."""
    _judge_pool.close()
    os._exit(0)


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)  # the warm process ends by itself when its line to this one closes


def process_id() -> int:
    """This process's number, for whoever may have to stop it."""
    return os.getpid()


def in_bounds(function: Callable[..., Any], *arguments: object) -> tuple[Any, bool]:
    """The function's result, and whether this process is now too short of memory to do more."""
    return function(*arguments), is_nearly_exhausted()


def grade_here(task: Task) -> Done:
    """Grade a submission in this process; whatever it does, a result comes of it."""
    use_class(task.place.class_dir)
    _judge_pool.warm_up(task)
    return grade(task, _call_here, judge_submission)


def _call_here(function: Callable[..., Any], *arguments: object) -> Any:
    return function(*arguments)


def grade(task: Task, run: Run, judge: JudgeOf) -> Done:
    """Grade a submission.

    Args:
        task: the submission, and how it is graded.
        run: where it is read and kept.
        judge: what grades the exercises of which no result is kept.
    """
    try:
        opened: Done | Opened = run(_open, task)
        done: Done = opened if isinstance(opened, Done) else run(_save, task, opened, judge(task, opened.left))
    except MemoryError:
        from exercise_kit.judge.judge import OUT_OF_MEMORY

        done = Done(ungraded_result(task.handed_in, "error", OUT_OF_MEMORY))
    if done.result is None:
        return done
    result = with_waiting(done.result)
    flags = result.flags if task.sandboxed else tuple(dict.fromkeys((*result.flags, NOT_SANDBOXED)))
    return replace(done, result=replace(result, flags=flags))


def _open(task: Task) -> Opened | Done:
    """A submission of which something is left to judge; what became of it where nothing is."""
    use_class(task.place.class_dir)
    read = _reader()
    try:
        submission = read(task.handed_in, Lessons(task.place.class_dir), task.exercise)
    except NoSubmission:
        return Done(None)
    except (ReleasedError, OSError, Unreachable) as error:
        return Done(ungraded_result(task.handed_in, "error", str(error)))
    if submission.rejected:
        return Done(_result(submission, "rejected", submission.reason))
    return _look_up(task, submission) if submission.exercises else Done(None)


def _reader() -> Callable[..., Submission]:
    """What reads a submission; torch comes with it, which only a job's own process needs.

    What is imported stays: to look for garbage meanwhile, and in it later, takes a tenth of the time.
    """
    is_first = "torch" not in sys.modules
    if is_first:
        gc.disable()
    try:
        from exercise_kit.submission.parse import read
    finally:
        if is_first:
            gc.freeze()
            gc.enable()
    return read


def _store(task: Task) -> Store:
    return Store(task.place.results, task.place.secret)


def _look_up(task: Task, submission: Submission) -> Opened | Done:
    keys = exercise_keys(submission, task.place, task.sandboxed, task.device)
    kept, changed = _load_kept(task, _store(task), submission, keys)
    left = set(keys) - {each.name for each in (kept.exercises if kept else ())}
    if not left:
        return Done(merged(submission, kept, None), from_cache=True, files=submission.files)
    return Opened(submission, replace(submission.only(left), reason=None, flags=(), notes=()), keys, kept, changed)


def _save(task: Task, opened: Opened, fresh: Result) -> Done:
    """What came of a submission whose remaining exercises were judged; it is kept."""
    submission, kept = opened.submission, opened.kept
    if fresh.status != "graded":
        reason = "; ".join(filter(None, (submission.reason, fresh.reason)))
        notes = (*submission.notes, *fresh.notes)
        failed = replace(fresh, reason=reason, flags=(*submission.flags, *fresh.flags), notes=notes)
        return Done(failed, files=submission.files)
    unkept = ""
    try:
        whole = merged(replace(submission, reason=None, flags=(), notes=()), kept, fresh)
        _store(task).save(submission, opened.keys, whole)
    except OSError as error:
        unkept = f"its result could not be kept: {error.strerror or error}"
    remarked = replace(submission, reason="; ".join(filter(None, (submission.reason, opened.changed))) or None)
    result = merged(remarked, kept, fresh)
    said = "; ".join(filter(None, (result.reason, unkept))) or None
    return Done(replace(result, reason=said), files=submission.files, unkept=unkept)


def _load_kept(
    task: Task, store: Store, submission: Submission, keys: Mapping[str, str]
) -> tuple[Result | None, str | None]:
    """What is kept and still holds, and what is wrong with what is kept."""
    if task.fresh:
        return None, None
    try:
        return store.load(submission, keys), None
    except TamperedResult as changed:
        return None, f"{changed}, and it was graded again"


def ungraded_result(handed_in: FoundFile, status: Status, reason: str) -> Result:
    """The result of a file that the judge did not see."""
    return Result(str(handed_in.path), handed_in.student, handed_in.assignment, status, reason)


def _result(submission: Submission, status: Status, reason: str | None) -> Result:
    flags = submission.flags
    return Result(submission.path, submission.student, submission.assignment, status, reason, flags=flags)


class _JudgePool:
    """The judge of this process: made when it is first needed, made anew for other checks or after a failure."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.judge: Judge | None = None
        self.of: tuple[object, ...] | None = None
        self.is_bounded = False  # in a job's own process
        self._warm: WarmProcess | None = None
        self._warm_for: object = None

    def warm_up(self, task: Task) -> None:
        """Start the process of which the workers are made before this one imports torch, so that both do it at once."""
        with self.lock:
            if self.of is None and self._warm is None and _can_be_opened(task.handed_in):
                # what stands in the way is said when the judge needs it
                with suppress(OSError, WarmProcessLost, ReleasedError):
                    self._warm, self._warm_for = _warm_process(task), _how(task)

    def grade(self, task: Task, submission: Submission, key: bytes | None = None) -> Result:
        """The result of a submission's exercises; one of an error of ours, which costs this submission alone."""
        from exercise_kit.judge.own_functions import HiddenChecksError

        with self.lock:
            try:
                result = self.judge_for(task).grade(submission, key)
            except HiddenChecksError as error:
                reason = f"the hidden checks cannot be used until this is mended: {error}"
                result = _result(submission, "error", reason)
            except Exception as error:
                result = _result(submission, "error", f"the judge failed: {type(error).__name__}: {error}")
            except BaseException:
                self.close()
                raise
            if result.status == "error":
                self.close()  # the next submission gets a judge of its own
            return result

    def judge_for(self, task: Task) -> Judge:
        """The judge with a task's checks, secret and settings."""
        from exercise_kit.judge.judge import Judge

        of = (task.place.checks, task.place.secret, in_use(), *_how(task))
        if self.judge is None or self.of != of:
            warm, self._warm = (self._warm, None) if self._warm_for == _how(task) else (None, self._warm)
            self.close()
            judge = Judge(task.place.checks, task.place.secret, sandboxed=task.sandboxed, device=task.device, warm=warm)
            self.judge, self.of = judge.__enter__(), of
            if self.is_bounded:
                limit_memory(MEMORY_TO_GRADE)
        return self.judge

    def close(self) -> None:
        """End the judge, and a warm process that no judge has taken."""
        ending = (self.judge, self._warm)
        self.judge = self.of = self._warm = None
        for each in ending:
            if each is not None:
                with suppress(Exception):  # it failed, or it would not be closed here
                    each.close()


def _how(task: Task) -> tuple[bool, str]:
    return task.sandboxed, task.device


def _can_be_opened(handed_in: FoundFile) -> bool:
    """Whether a file has cells, so that it is likely to be graded; its reader says what is wrong with any other."""
    try:
        return handed_in.path.suffix.lower() == ".py" or bool(open_notebook(read_bytes(handed_in.path)).cells)
    except Exception:
        return False


def _warm_process(task: Task) -> WarmProcess:
    """A warm process for every lesson that there is; only what needs no torch is imported for it."""
    views = [provide_view(lesson) for lesson in Lessons(task.place.class_dir).names if lesson[:2].isdecimal()]
    return WarmProcess(Limits(), views, sandboxed=task.sandboxed, device=task.device)


_judge_pool = _JudgePool()


def judge_submission(task: Task, submission: Submission, key: bytes | None = None) -> Result:
    """The result of a submission's exercises, from this process's judge.

    Args:
        task: how it is judged.
        submission: of which the exercises are to be judged.
        key: from which its draws come, where the secret that it was made of is elsewhere.
    """
    return _judge_pool.grade(task, submission, key)
