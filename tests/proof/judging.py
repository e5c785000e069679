"""Evaluate a mutant as a submission is evaluated, with a limit on its time and memory."""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from exercise_kit.engine.evaluate_check import Outcome
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Verdict
from tests.our_hidden_checks import hidden_checks
from tests.proof.mutants import Mutant, find_exercises_that_need, is_helper
from tests.proof.solutions import SolutionMutant
from vit_course.exercises.catalog import EXERCISES

KEY = b"mutants"
# of processor time, for one check that takes some milliseconds: reached by what would never end, on any machine
SECONDS = 6
BYTES = 4 << 30  # more than this process holds already


class OutOfTime(BaseException):
    """A mutant took too long."""


class MutantJudge:
    """Evaluates an exercise's hidden checks, first the one that caught the mutant before: it will catch this one too.

    Args:
        exercise: its name.
        key: from which the checks draw.
    """

    def __init__(self, exercise: str, key: bytes = KEY) -> None:
        self.exercise = exercise
        self._key = key
        self._order = list(hidden_checks().exercises()[exercise])

    def caught_by(self, mutant: Mutant | SolutionMutant) -> str | None:
        """The name of a check that fails a mutant, None when all pass it; "import" when it cannot be imported.

        Raises:
            Exception: a hidden check ended in anything but a verdict; with the mutant's name in a note.
        """
        try:
            return self._caught_by(mutant)
        except BaseException as error:
            error.add_note(f"The mutant of {self.exercise}: {mutant.name}")
            raise

    def _caught_by(self, mutant: Mutant | SolutionMutant) -> str | None:
        objects = make_objects(mutant, self.exercise)
        if objects is None:
            return "import"
        for check in self._order:
            if self.evaluate(check, objects).result.verdict == Verdict.FAIL:
                self._order.remove(check)
                self._order.insert(0, check)
                return check.name
        return None

    def evaluate(self, check: Check, objects: Sequence[Callable[..., Any]]) -> Outcome:
        """Return what one check finds about some objects."""
        student = Student(dict(zip(EXERCISES[self.exercise].objects, objects, strict=True)))
        with limit_time_and_memory():
            return hidden_checks().evaluate(self.exercise, check, student, self._key)


class MutantJudges:
    """Asks a mutant at the exercise that it belongs to and, a helper's, at the others that need the helper.

    Args:
        key: from which the checks draw.
    """

    def __init__(self, key: bytes = KEY) -> None:
        self._key = key
        self._known: dict[str, MutantJudge] = {}

    def of(self, exercise: str) -> MutantJudge:
        """The examiner of one exercise."""
        return self._known.setdefault(exercise, MutantJudge(exercise, self._key))

    def caught_by(self, mutant: Mutant, exercise: str) -> str | None:
        """The first check that fails a mutant, None when every check passes it; see :meth:`MutantJudge.caught_by`."""
        others = find_exercises_that_need(mutant.place) if is_helper(mutant.place) else ()
        found = (self.of(each).caught_by(mutant) for each in dict.fromkeys((exercise, *others)))
        return next(filter(None, found), None)


def make_objects(mutant: Mutant | SolutionMutant, exercise: str) -> tuple[Callable[..., Any], ...] | None:
    """A mutant's objects, None when its module cannot be imported any more."""
    try:
        with limit_time_and_memory():
            return mutant.objects(exercise)
    except (Exception, OutOfTime):
        return None


@contextlib.contextmanager
def limit_time_and_memory() -> Iterator[None]:
    """Stop what takes too long with :class:`OutOfTime`, and give no more memory than some; in a main thread alone."""

    def stop(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)  # and each second again, if somebody swallows it
    try:
        with _limit_memory():
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def _limit_memory() -> Iterator[None]:
    if sys.platform != "linux":
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
