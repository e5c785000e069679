"""The hidden checks: collected once by pytest itself, then asked of one student after another in this process."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from exercise_kit.engine.course import Measure
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Verdict
from exercise_kit.judge.collecting import HiddenChecksError, OpenPytest, place_of_item
from exercise_kit.judge.hidden_fixtures import Asked, marks_of, reference_student
from exercise_kit.judge.verdicts import for_the_instructor, is_of_the_check, result_of
from exercise_kit.sandbox.endings import is_out_of_memory

__all__ = ["HiddenCheck", "HiddenChecks", "HiddenChecksError", "Outcome"]


@dataclass(frozen=True)
class HiddenCheck:
    """One check of one exercise.

    Attributes: ``name`` (the test's, with its parameters in brackets), ``claim`` (its docstring, which the
    student reads), ``points`` (its weight among the exercise's checks), ``item`` (pytest's).
    """

    name: str
    claim: str
    points: float
    item: pytest.Function = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes: ``check``, ``result`` (what the student reads), ``record`` (what the student's code gave, for the
    diagnosis), ``log`` (for the instructor alone: how the check itself broke, and what it printed).
    """

    check: HiddenCheck
    result: CheckResult
    record: list[object] = field(repr=False)
    log: str = ""


class HiddenChecks:
    """The checks in a folder of pytest files.

    Args:
        folder: the files, and a ``conftest.py`` that imports the fixtures of ``hidden_fixtures``.
        devices: where the students' code can compute: "cpu", "cuda".
        passes: exceptions that say nothing of the student's answer, and go on to whoever asks.
        measure: of results that are handed in as files; a made-up one unless told.

    Raises:
        HiddenChecksError: with file and line, when a file cannot be imported or a check cannot be run.
    """

    def __init__(
        self,
        folder: Path,
        devices: Sequence[str] = ("cpu",),
        passes: tuple[type[BaseException], ...] = (),
        measure: Measure | None = None,
    ) -> None:
        self._passes = passes
        self._asked = Asked(devices=tuple(devices), measure=measure)
        self._pytest = OpenPytest(folder.resolve(), self._asked)
        try:
            self._counted = self._checks = _by_exercise(self._pytest.items, len(devices))
        except HiddenChecksError:
            self.close()
            raise

    def exercises(self) -> Mapping[str, tuple[HiddenCheck, ...]]:
        """The checks of every exercise that count, in the order of their files."""
        return self._counted

    def set_aside(self, refused: Mapping[str, Collection[str]]) -> None:
        """Leave checks out from now on, by exercise and name; where none would be left, all stay."""
        self._counted = {
            exercise: tuple(each for each in checks if each.name not in refused.get(exercise, ())) or checks
            for exercise, checks in self._checks.items()
        }

    def all_of(self, exercise: str) -> tuple[HiddenCheck, ...]:
        """The checks of an exercise, those that were set aside among them."""
        return self._checks.get(exercise, ())

    @property
    def measure(self) -> Measure | None:
        """Of results that are handed in as files; None: a made-up one."""
        return self._asked.measure

    def run(self, exercise: str, student: Callable[[], Student], key: bytes) -> Iterator[Outcome]:
        """Ask every check of ``exercise`` in turn, each of a fresh student, with draws from ``key``."""
        for check in self._checks[exercise]:
            yield self.ask(exercise, check, student(), key)

    def ask(self, exercise: str, check: HiddenCheck, student: Student, key: bytes) -> Outcome:
        """Ask one check of ``student``, who has not been asked before; one of ``passes`` goes through.

        Raises:
            MemoryError: the judge's memory has run out.
        """
        error, printed = self._run(exercise, check, student, key)
        if error is not None and isinstance(error, self._passes):
            raise error
        if is_out_of_memory(error):
            raise MemoryError from error
        result = result_of(check.name, check.claim, student, error, check.item.path)
        if is_of_the_check(error) and self._breaks_itself(exercise, check, key):
            reason = "the check itself broke; it does not count, and your instructor can read why"
            result = CheckResult(check.name, check.claim, Verdict.UNDECIDED, seen=reason)
        return Outcome(check, result, student.record, printed + for_the_instructor(error))

    def close(self) -> None:
        """Undo what pytest has set up in this process."""
        self._pytest.close()

    def _breaks_itself(self, exercise: str, check: HiddenCheck, key: bytes) -> bool:
        """Whether a check breaks off with a right answer too, so that it was not the student's that broke it."""
        error, _ = self._run(exercise, check, reference_student(exercise), key)
        return is_of_the_check(error)

    def _run(self, exercise: str, check: HiddenCheck, student: Student, key: bytes) -> tuple[BaseException | None, str]:
        self._asked.exercise, self._asked.student, self._asked.key = exercise, student, key
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._pytest.run(check.item), printed.getvalue()
        finally:
            self._asked.student = None


def _by_exercise(items: Sequence[pytest.Function], devices: int) -> dict[str, tuple[HiddenCheck, ...]]:
    found: dict[str, dict[str, HiddenCheck]] = {}
    for item in items:
        # asked on several devices, a check is still worth its points once
        shares = devices if "device" in item.fixturenames else 1
        for exercise, points in marks_of(item).items():
            checks = found.setdefault(exercise, {})
            if item.name in checks:
                raise HiddenChecksError(f"{place_of_item(item)}: {exercise} has another check of this name")
            checks[item.name] = HiddenCheck(item.name, _claim(item), points / shares, item)
    return {exercise: tuple(checks.values()) for exercise, checks in found.items()}


def _claim(item: pytest.Function) -> str:
    """The first paragraph of a check's docstring; without one, its name in words."""
    told = (item.function.__doc__ or "").strip().partition("\n\n")[0]
    return " ".join(told.split()) or f"{item.function.__name__.removeprefix('test_').replace('_', ' ').capitalize()}."
