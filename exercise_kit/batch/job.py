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
from dataclasses import dataclass, field, replace
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exercise_kit.batch import result_index
from exercise_kit.batch.locations import Place, lock_folder
from exercise_kit.batch.result_cache import Store, TamperedResult, exercise_keys, file_stats, merged
from exercise_kit.engine.class_exercises import in_use, use_class
from exercise_kit.judge.result import Result, Status, with_waiting
from exercise_kit.sandbox.limits import Limits
from exercise_kit.sandbox.package_view import view_of
from exercise_kit.sandbox.warm_process import WarmProcess, WarmProcessLost
from exercise_kit.submission.find import FoundFile
from exercise_kit.submission.flags import NOT_SANDBOXED
from exercise_kit.submission.notebook_file import Unreachable, open_notebook, read_bytes
from exercise_kit.submission.released import Lessons, ReleasedError
from exercise_kit.submission.submission import NoSubmission, Submission

if TYPE_CHECKING:
    from exercise_kit.judge.judge import Judge
    from exercise_kit.judge.scoring import RefusingChecks


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


@dataclass(frozen=True)
class Task:
    """A submission to grade: the file, the grader's places, and how.

    Attributes:
        handed_in: the file.
        place: of checks, secret and results.
        exercise: the only one to grade; None: the whole lesson.
        sandboxed: whether in the sandbox.
        fresh: whether to grade it again, whatever is kept.
        device: where the students' code computes.
    """

    handed_in: FoundFile
    place: Place
    exercise: str | None = None
    sandboxed: bool = True
    fresh: bool = False
    device: str = "cpu"


@dataclass(frozen=True)
class Done:
    """The outcome of a task.

    Attributes:
        result: None: the file is no submission.
        from_cache: whether no exercise had to be graded.
        files: the digests of the files beside the notebook that count.
        lasting: whether the same request gives the same result, as long as nothing changes.
    """

    result: Result | None
    from_cache: bool = False
    files: tuple[str, ...] = ()
    lasting: bool = False


@dataclass(frozen=True)
class Opened:
    """A submission that was read, with the ``grader``'s digest and the file stats of the ``released`` lessons then."""

    submission: Submission
    grader: str
    released: object


@dataclass(frozen=True)
class Remaining:
    """What is left to judge of a submission, beside what the cache kept.

    Attributes:
        left: to judge.
        keys: of all exercises.
        kept: results of the other exercises.
        changed: what is wrong with the kept results.
    """

    left: Submission
    keys: Mapping[str, str] = field(default_factory=dict)
    kept: Result | None = None
    changed: str | None = None


Run = Callable[..., Any]  # calls a function with the arguments that follow it, in some process of this machine
JudgeOf = Callable[[Task, Submission, "RefusingChecks"], Result]  # wherever it judges


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
    return grade(task, _call_here, judge_submission, _ready)


def _ready(task: Task) -> None:
    """Serve the task's class from now on, and let the judge start meanwhile."""
    use_class(task.place.class_dir)
    _judge_pool.warm_up(task)


def _call_here(function: Callable[..., Any], *arguments: object) -> Any:
    return function(*arguments)


def grade(task: Task, run: Run, judge: JudgeOf, first: Callable[[Task], None] = lambda task: None) -> Done:
    """Grade a submission.

    Args:
        task: the submission, and how it is graded.
        run: where it is read, looked up and kept.
        judge: what grades the exercises of which no result is kept.
        first: called before anything is read, in this process.
    """
    try:
        first(task)
        done = _grade(task, run, judge)
    except MemoryError:
        from exercise_kit.judge.judge import OUT_OF_MEMORY

        done = Done(ungraded_result(task.handed_in, "error", OUT_OF_MEMORY))
    if done.result is None:
        return done
    result = with_waiting(done.result)
    flags = result.flags if task.sandboxed else tuple(dict.fromkeys((*result.flags, NOT_SANDBOXED)))
    return replace(done, result=replace(result, flags=flags))


def _grade(task: Task, run: Run, judge: JudgeOf) -> Done:
    opened = run(_open, task)
    if isinstance(opened, Done):
        return opened
    submission = opened.submission
    which = (task.place, submission.lesson or "", task.sandboxed, task.device)
    with _one_asks:  # of threads that ask at once one has the model answers judged, and the others learn it
        refused, lasting = _refusing_checks(
            *which, (file_stats(task.place.checks), in_use()), opened.released, run, judge
        )
    done = replace(_look_up_or_judge(task, submission, refused, run, judge), files=submission.files)
    if lasting and done.lasting and done.result and not any(each.file for each in submission.exercises):
        kept = _store(task).path_of(submission)
        with suppress(OSError):  # then it is looked up in the store itself
            run(result_index.add, task, submission.digest, opened.grader, kept, done.result)
    return done


def _open(task: Task) -> Opened | Done:
    """The submission in a file; what became of it where there is nothing to judge."""
    use_class(task.place.class_dir)
    read = _reader()
    try:
        released = result_index.released_file_stats(task.place)
        grader = result_index.grader_digest(task.place)
        submission = read(task.handed_in, _lessons(task.place.class_dir, released), task.exercise)
    except NoSubmission:
        return Done(None)
    except (ReleasedError, OSError, Unreachable) as error:
        return Done(ungraded_result(task.handed_in, "error", str(error)))
    if submission.rejected:
        return Done(_result(submission, "rejected", submission.reason))
    return Opened(submission, grader, released) if submission.exercises else Done(None)


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


_one_asks = threading.Lock()


@lru_cache(maxsize=32)
def _refusing_checks(
    place: Place,
    lesson: str,
    sandboxed: bool,
    device: str,
    state_of_checks: object,
    released: object,
    run: Run,
    judge: JudgeOf,
) -> tuple[RefusingChecks, bool]:
    """The hidden checks that refuse the lesson's own model answers, and whether that will hold when it is asked again.

    They are graded as a submission is, and their result is stored as one. Of graders that start at once one does it,
    and the others read what it has stored. Another ``state_of_checks``, or ``released``, asks anew.
    """
    path = _lessons(place.class_dir, released).model_notebook(lesson)
    if path is None:
        return {}, True
    task = Task(FoundFile(path, assignment=lesson), place, sandboxed=sandboxed, device=device)
    with suppress(OSError), lock_folder(place.results):
        opened = run(_open, task)
        if isinstance(opened, Done):
            return {}, opened.result is None or opened.result.status == "rejected"
        done = _look_up_or_judge(task, opened.submission, {}, run, judge)
        return (run(_refusing_checks_of, done.result) if done.result else {}), done.lasting
    return {}, False


def _refusing_checks_of(result: Result) -> RefusingChecks:
    from exercise_kit.judge.scoring import refusing_checks

    return refusing_checks(result)


def _look_up_or_judge(task: Task, submission: Submission, refused: RefusingChecks, run: Run, judge: JudgeOf) -> Done:
    found: Done | Remaining = run(_look_up, task, submission, refused)
    if isinstance(found, Done):
        return found
    done: Done = run(_save, task, submission, found, judge(task, found.left, refused))
    return done


def _look_up(task: Task, submission: Submission, refused: RefusingChecks) -> Done | Remaining:
    use_class(task.place.class_dir)
    keys = exercise_keys(submission, task.place, task.sandboxed, refused, task.device)
    kept, changed = _load_kept(task, _store(task), submission, keys)
    left = set(keys) - {each.name for each in (kept.exercises if kept else ())}
    if not left:
        return Done(merged(submission, kept, None), from_cache=True, lasting=True)
    return Remaining(replace(submission.only(left), reason=None, flags=(), notes=()), keys, kept, changed)


def _save(task: Task, submission: Submission, found: Remaining, fresh: Result) -> Done:
    """What came of a submission whose remaining exercises were judged; it is kept."""
    if fresh.status != "graded":
        reason = "; ".join(filter(None, (submission.reason, fresh.reason)))
        notes = (*submission.notes, *fresh.notes)
        return Done(replace(fresh, reason=reason, flags=(*submission.flags, *fresh.flags), notes=notes))
    kept, changed = found.kept, found.changed
    remarked = replace(submission, reason="; ".join(filter(None, (submission.reason, changed))) or None)
    try:
        whole = merged(replace(submission, reason=None, flags=(), notes=()), kept, fresh)
        _store(task).save(submission, found.keys, whole)
    except OSError as error:
        problem = f"its result could not be kept: {error.strerror or error}"
        whole = merged(remarked, kept, fresh)
        return Done(replace(whole, reason="; ".join(filter(None, (whole.reason, problem)))))
    return Done(merged(remarked, kept, fresh), lasting=not changed and not fresh.waiting)


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


@lru_cache(maxsize=1)
def _lessons(class_dir: Path | None, released: object) -> Lessons:
    """The lessons of a class; ``released``, the state of their files, only tells the cache when to read them anew."""
    return Lessons(class_dir)


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

    def with_judge(self, task: Task, act: Callable[[Judge], Result]) -> Result:
        from exercise_kit.judge.judge import Judge

        of = (task.place.checks, task.place.secret, in_use(), *_how(task))
        with self.lock:
            if self.of != of:
                warm, self._warm = (self._warm, None) if self._warm_for == _how(task) else (None, self._warm)
                self.close()
                judge = Judge(
                    task.place.checks, task.place.secret, sandboxed=task.sandboxed, device=task.device, warm=warm
                )
                self.judge, self.of = judge.__enter__(), of
                if self.is_bounded:
                    limit_memory(MEMORY_TO_GRADE)
            assert self.judge is not None, "it was made above"
            try:
                return act(self.judge)
            except BaseException:
                self.close()
                raise

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
    views = [view_of(lesson) for lesson in Lessons(task.place.class_dir).names if lesson[:2].isdecimal()]
    return WarmProcess(Limits(), views, sandboxed=task.sandboxed, device=task.device)


_judge_pool = _JudgePool()


def judge_submission(task: Task, submission: Submission, refused: RefusingChecks) -> Result:
    """The result of a submission's exercises, from this process's judge."""
    return _judge(task, submission, lambda judge: judge.grade(submission, refused))


def judge_with_key(key: bytes, task: Task, submission: Submission, refused: RefusingChecks) -> Result:
    """The same with the ``key`` from which its draws come, where the secret that it was made of is elsewhere."""
    return _judge(task, submission, lambda judge: judge.grade(submission, refused, key))


def _judge(task: Task, submission: Submission, act: Callable[[Judge], Result]) -> Result:
    from exercise_kit.judge.own_functions import HiddenChecksError

    try:
        result = _judge_pool.with_judge(task, act)
        if result.status == "error":
            _judge_pool.close()  # the next submission gets a judge of its own
        return result
    except HiddenChecksError as error:
        return _result(submission, "error", f"the hidden checks cannot be used until this is mended: {error}")
    except Exception as error:  # whatever fails on our side costs this submission alone
        return _result(submission, "error", f"the judge failed: {type(error).__name__}: {error}")
