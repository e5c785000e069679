"""The checks that grade: the exercises' own claims with their points, and the functions that a teacher adds to them."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import torch

from exercise_kit.conventions import find_marked_exercises
from exercise_kit.engine.class_exercises import EXERCISES, describe_error_with_line
from exercise_kit.engine.course import Measure, course
from exercise_kit.engine.evaluate_check import Outcome, evaluate_check, make_check_result
from exercise_kit.engine.exercise import Check, Given
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Undecided
from exercise_kit.hidden_checks import HiddenChecksError
from exercise_kit.hidden_checks.own_functions import read_added_checks
from exercise_kit.sandbox.limits import is_out_of_memory

WRONG_CHECK = "this check refuses the right answer, too; it does not count, and your instructor can read why"
REFUSES = "refuses the lesson's model answer"


class HiddenChecks:
    """The checks that grade.

    Args:
        folder: of a teacher's own functions, ``test_NAME.py``.
        measure: of results that are handed in as files; a made-up one by default.
        device: where checks that name ``device`` put what they draw.

    Attributes:
        measure: as above.
        problems: exercise → why it cannot be graded: file and line, ": ", and what is wrong.

    Raises:
        HiddenChecksError: with file and line, when a file cannot be used, and it is not known which exercises it is
            about; or the course has no graded checks here.
    """

    def __init__(self, folder: Path, measure: Measure | None = None, device: str = "cpu") -> None:
        self.measure, self._device = measure, torch.device(device)
        try:
            course().load_graded()
        except ImportError as error:
            words = f"the checks that grade are in a clone of the course, and in no wheel; grade there ({error})"
            raise HiddenChecksError(words) from None
        own = course().own
        self.problems = {name: each.problem for name, each in own.exercises.items() if each.problem} if own else {}
        self.problems |= own.problems_of_answers if own else {}
        added = self._read_added_checks(folder)
        known = {name: (*_list_graded_checks(name), *added.get(name, ())) for name in course().exercises}
        self._checks = {
            name: checks
            for name, checks in known.items()
            if name not in self.problems and any(each.worth for each in checks)
        }
        for name in own.exercises if own else ():
            if name not in self._checks:
                words = f"none of its checks has points; give a claim some: @{name}.check(points=1)"
                self.problems.setdefault(name, f"{EXERCISES}/{name}.py: {words}")
        self._refusals: dict[tuple[str, Check, bytes], str] = {}  # what the reference was asked

    def _read_added_checks(self, folder: Path) -> dict[str, list[Check]]:
        """The checks in a folder; a file that cannot be used stops the exercises that it is about."""
        if not folder.is_dir():
            raise HiddenChecksError(f"{folder}: there is no such folder")
        found: dict[str, list[Check]] = {}
        for file in sorted(folder.glob("test_*.py")):
            try:
                for exercise, check in read_added_checks(file):
                    known = (*_list_graded_checks(exercise), *found.get(exercise, ()))
                    if any(each.name == check.name for each in known):
                        place = check.place.removeprefix(f"{folder.name}/")
                        raise HiddenChecksError(f"{place}: {exercise} has another check of this name", file)
                    found.setdefault(exercise, []).append(check)
            except HiddenChecksError as error:
                if not (about := _find_exercises_of_file(file)):
                    raise
                self.problems = dict.fromkeys(about, f"{folder.name}/{error}") | self.problems
        return found

    def exercises(self) -> Mapping[str, tuple[Check, ...]]:
        """The checks of every exercise: ``worth`` is their points."""
        return self._checks

    def run(self, exercise: str, student: Callable[[], Student], key: bytes) -> Iterator[Outcome]:
        """Evaluate every check of ``exercise`` in turn, each on a fresh student, with draws from ``key``."""
        for check in self._checks[exercise]:
            yield self.evaluate(exercise, check, student(), key)

    def evaluate(self, exercise: str, check: Check, student: Student, key: bytes) -> Outcome:
        """Evaluate one check on ``student``, which no check has used before.

        Raises:
            MemoryError: the judge's memory has run out.
        """
        probe = Probe(derive_seed(key, exercise, check.name))
        with _capture_output() as printed:
            outcome = evaluate_check(check, student, probe, self._make_extra_arguments(exercise, student, probe))
        outcome = replace(outcome, log=printed.getvalue())
        error = outcome.failure.error if outcome.failure else None
        if is_out_of_memory(error):
            raise MemoryError from error
        broke = ""
        if outcome.failure and not outcome.result.unwritten:
            broke = self._find_reference_failure(exercise, check, key)
        if broke:
            outcome = replace(outcome, result=make_check_result(check, Undecided(WRONG_CHECK)), broke=broke)
        if raised := error or (outcome.failure.__cause__ if outcome.failure else None):
            outcome = replace(outcome, log=outcome.log + _format_traceback(check, raised))
        return outcome

    def _find_reference_failure(self, exercise: str, check: Check, key: bytes) -> str:
        """Say how a check fails the reference too, on the same draws, with its place; "" where it does not.

        So a check that is wrong itself, or that this machine cannot decide, costs nobody a point.
        """
        of = exercise, check, key
        if of not in self._refusals:
            student, probe = make_reference_student(exercise), Probe(derive_seed(key, exercise, check.name))
            with _capture_output():
                found = evaluate_check(check, student, probe, self._make_extra_arguments(exercise, student, probe))
            failure, folder = found.failure, check.file.parent
            if failure and failure.error:
                place = f"{folder.name}/{describe_error_with_line(failure.error, folder, check.file.name)}"
                self._refusals[of] = f"{place}; {check.name} breaks off with the lesson's own answer"
            else:
                self._refusals[of] = f"{check.place} {REFUSES}. {found.result.message}" if failure else ""
        return self._refusals[of]

    def _make_extra_arguments(self, exercise: str, student: Student, probe: Probe) -> Given:
        """Make what a check names beside student and probe."""

        def make_results_fixture() -> object:
            measured = course().results
            if measured is None:
                raise LookupError("the course asks for no files, and so measures none")
            return measured.fixture(student, probe, self.measure)

        return {
            "device": lambda: self._device,
            "reference": lambda: gather_right_objects(exercise),
            "results": make_results_fixture,
            "exercise": lambda: exercise,
        }


@contextlib.contextmanager
def _capture_output() -> Iterator[io.StringIO]:
    """Capture what is printed inside."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield printed


def derive_seed(key: bytes, exercise: str, check: str) -> int:
    """The seed of a check's probe: nobody knows it who does not hold the key. 63 bits."""
    digest = hmac.new(key, f"{exercise}\0{check}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def gather_right_objects(exercise: str = "") -> SimpleNamespace:
    """The right implementations of the course, by name; of one name, that of ``exercise`` and then the course's own."""
    known = course().references()
    found = {each.__name__: each for objects in known.values() for each in objects}
    if exercise in known:
        found |= dict(zip(course().exercises[exercise].objects, known[exercise], strict=True))
    return SimpleNamespace(**found)


def make_reference_student(exercise: str) -> Student:
    """A student whose answer to ``exercise`` is right.

    Raises:
        KeyError: there is no exercise of that name.
    """
    return Student(dict(zip(course().exercises[exercise].objects, course().references()[exercise], strict=True)))


def _list_graded_checks(name: str) -> tuple[Check, ...]:
    exercise = course().exercises[name]
    return exercise.list_graded_checks(course().exercises.get(exercise.variant_of))


def _find_exercises_of_file(file: Path) -> Collection[str]:
    """The exercises that a file of checks is about: by its marks, and by its name."""
    content = b""
    with contextlib.suppress(OSError):  # that has been said
        content = file.read_bytes()
    return {*find_marked_exercises(content), file.stem.removeprefix("test_")} & course().exercises.keys()


def _format_traceback(check: Check, error: BaseException) -> str:
    """An error's traceback, from the check on."""
    frames = error.__traceback__
    while frames and frames.tb_next and Path(frames.tb_frame.f_code.co_filename) != check.file:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))
