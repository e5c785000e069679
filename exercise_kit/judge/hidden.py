"""The hidden checks: collected once by pytest, evaluated on one student after another; what became of each."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import pytest

from exercise_kit.conventions import marked_exercises
from exercise_kit.engine.class_exercises import line_in
from exercise_kit.engine.course import Measure, course
from exercise_kit.engine.exercise import PublicCheck
from exercise_kit.engine.probes import Probe, fresh_settings
from exercise_kit.engine.records import incomparable
from exercise_kit.engine.run import as_result
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Undecided, Verdict
from exercise_kit.judge.claims import is_a_claim
from exercise_kit.judge.fixtures import EvaluationContext, marks_of, reference_student, seed_of
from exercise_kit.judge.pytest_host import HiddenChecksError, OpenPytest, described_error, place_of_item
from exercise_kit.sandbox.limits import is_out_of_memory

_SKIPS = (pytest.skip.Exception, pytest.xfail.Exception)
_VERDICTS = (Failure, Undecided, *_SKIPS)
WRONG_CHECK = "this check refuses the right answer, too; it does not count, and your instructor can read why"
REFUSES = "refuses the lesson's model answer"


def result_of(name: str, claim: str, student: Student, error: BaseException | None, file: Path) -> CheckResult:
    """The line of a report for a check that passed, or that ended in ``error``.

    For a plain assertion the student reads the text that the instructor wrote beside it, if that is a literal text. The
    values, and what pytest makes of them, might give the answer away.
    """
    if error is None:
        return CheckResult(name, claim, Verdict.PASS)
    if isinstance(error, Failure | Undecided):
        return as_result(name, claim, error)
    if isinstance(error, _SKIPS):
        return as_result(name, claim, Undecided(str(error)))
    if is_plain(error):
        return as_result(name, claim, Failure(_written(error, file) or f"{student.name} does not do this"))
    return as_result(name, claim, incomparable(student.name, student.record, error))


def is_plain(error: BaseException) -> bool:
    """Whether a check said no with pytest's own means: ``assert``, ``pytest.raises``, ``pytest.fail``."""
    return isinstance(error, AssertionError | pytest.fail.Exception)


def broke_off(error: BaseException | None) -> bool:
    """Whether a check ended in an exception that is no verdict: its own, or one that an odd answer led it into."""
    return error is not None and not isinstance(error, _VERDICTS) and not is_plain(error)


def for_the_instructor(error: BaseException | None) -> str:
    """The traceback, from the check on, of an error that is not a verdict; "" where the student reads all of it."""
    if error is None or isinstance(error, _VERDICTS):
        return ""
    frames = error.__traceback__
    while frames and frames.tb_next and _is_of_pytest(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames))


def _is_of_pytest(file: str) -> bool:
    return not {"_pytest", "pluggy"}.isdisjoint(Path(file).parts)


def _written(error: BaseException, file: Path) -> str:
    """The literal text of the ``assert`` or ``pytest.fail`` at which a check in ``file`` ended."""
    place = line_in(error, file.parent)
    if place is None:
        return ""
    return _texts(place[0]).get(place[1], "")


@cache
def _texts(file: Path) -> dict[int, str]:
    """Line → the literal text of the assertion that stands on it."""
    found: dict[int, str] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Assert):
            text = node.msg
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.fail" and node.args:
            text = node.args[0]
        else:
            continue
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            found |= dict.fromkeys(range(node.lineno, (node.end_lineno or node.lineno) + 1), text.value)
    return found


@dataclass(frozen=True)
class HiddenCheck:
    """One check of one exercise.

    Attributes:
        name: the test's, with its parameters in brackets.
        claim: its docstring, which the student reads.
        points: its weight among the exercise's checks; 0 for what ``check`` asks too and grading only tells of.
        item: pytest's; None for a check of ``check`` that earns nothing.
        public: the check of ``check`` that claims the same, if there is one.
    """

    name: str
    claim: str
    points: float
    item: pytest.Function | None = field(repr=False)
    public: PublicCheck | None = field(default=None, repr=False)

    @property
    def needs(self) -> tuple[str, ...]:
        """The names of the checks that have to pass before a failure of this one says anything of its own."""
        return tuple(map(_test_name, self.public.needs)) if self.public else ()

    @property
    def is_decisive(self) -> bool:
        """Whether nobody passes it who does not do what the exercise asks for, as far as that is known."""
        return self.public is not None and not self.public.guard

    @property
    def file(self) -> Path:
        """The file in which it is written."""
        if self.item is not None:
            return self.item.path
        assert self.public is not None
        return Path(self.public.function.__code__.co_filename)

    @property
    def place(self) -> str:
        """hidden/test_one_hot.py:12: test_each_label_is_a_row."""
        return f"{self.file.parent.name}/{place_of_item(self.item) if self.item else self.name}"

    @property
    def line(self) -> int:
        """At which line of its file of hidden checks it stands; behind all of them what is in no such file."""
        return (self.item.location[1] or 0) if self.item is not None else sys.maxsize

    def ask(self, student: Student, key: bytes, exercise: str) -> BaseException | None:
        """What a check of ``check`` raises that has no item of pytest's; None where it passes."""
        assert self.public is not None
        with fresh_settings():
            try:
                self.public.function(student, Probe(seed_of(key, exercise, self.name)))
            except BaseException as error:
                return error
        return None


def _test_name(check: str) -> str:
    """The name in grading of a check of ``check``."""
    return f"test_{check}"


@dataclass(frozen=True)
class Outcome:
    """What a check found.

    Attributes:
        check: the check.
        result: what the student reads.
        record: what the student's code gave, for the diagnosis.
        log: for the instructor alone: how the check itself broke, and what it printed.
        broke: where the check itself broke, file and line, ": ", and the exception; "" where it did not.
    """

    check: HiddenCheck
    result: CheckResult
    record: list[object] = field(repr=False)
    log: str = ""
    broke: str = ""


class HiddenChecks:
    """The checks in a folder of pytest files.

    Args:
        folder: the files, and a ``conftest.py`` that imports :mod:`exercise_kit.judge.fixtures`.
        devices: where the students' code can compute: "cpu", "cuda".
        passes: exceptions that say nothing about the student's answer, and are passed on to the caller.
        measure: of results that are handed in as files; a made-up one by default.

    Attributes:
        problems: exercise → why it cannot be graded: file and line, ": ", and what is wrong.

    Raises:
        HiddenChecksError: with file and line, when a file cannot be used, and it is not known which exercises it is
            about.
    """

    def __init__(
        self,
        folder: Path,
        devices: Sequence[str] = ("cpu",),
        passes: tuple[type[BaseException], ...] = (),
        measure: Measure | None = None,
    ) -> None:
        self._passes = passes
        self._refusals: dict[tuple[str, str, bytes], str] = {}  # what the reference was asked
        self._context = EvaluationContext(devices=tuple(devices), measure=measure)
        self.problems = _problems_of_own(folder)
        self._open(folder.resolve(), len(devices))

    def _open(self, folder: Path, devices: int) -> None:
        """Collect the checks, without the files that cannot be used: an error in one stops its exercises alone."""
        self._left_out = {folder / file_of(name) for name in self.problems}
        while True:
            try:
                self._checks = self._collected(folder, devices)
                break
            except HiddenChecksError as error:
                about = _exercises_of(error.file) if error.file and error.file not in self._left_out else ()
                if error.file is None or not about:
                    raise
                self._left_out.add(error.file)
                self.problems = dict.fromkeys(about, f"{folder.name}/{error}") | self.problems
        own = course().own
        for name in own.exercises if own else ():
            mark = f'@pytest.mark.exercise("{name}", points=1)'
            if name not in self._checks:
                self.problems.setdefault(name, f"{folder.name}/{file_of(name)}: no check in it has the mark {mark}")

    def _collected(self, folder: Path, devices: int) -> dict[str, tuple[HiddenCheck, ...]]:
        self._pytest = OpenPytest(folder, self._context, self._left_out)
        try:
            return _by_exercise(self._pytest.items, devices)
        except HiddenChecksError:
            self.close()
            raise

    def exercises(self) -> Mapping[str, tuple[HiddenCheck, ...]]:
        """The checks of every exercise, in the order of their files."""
        return self._checks

    @property
    def measure(self) -> Measure | None:
        """Of results that are handed in as files; None: a made-up one."""
        return self._context.measure

    def run(self, exercise: str, student: Callable[[], Student], key: bytes) -> Iterator[Outcome]:
        """Evaluate every check of ``exercise`` in turn, each on a fresh student, with draws from ``key``."""
        for check in self._checks[exercise]:
            yield self.evaluate(exercise, check, student(), key)

    def evaluate(self, exercise: str, check: HiddenCheck, student: Student, key: bytes) -> Outcome:
        """Evaluate one check on ``student``, which no check has used before; one of ``passes`` goes through.

        Raises:
            MemoryError: the judge's memory has run out.
        """
        error, printed = self._run(exercise, check, student, key)
        if error is not None and isinstance(error, self._passes):
            raise error
        if is_out_of_memory(error):
            raise MemoryError from error
        result, broke = result_of(check.name, check.claim, student, error, check.file), ""
        if result.verdict == Verdict.FAIL and not result.unwritten:
            broke = self._refuses_the_right_answer(exercise, check, key)
        if broke:
            result = CheckResult(check.name, check.claim, Verdict.UNDECIDED, seen=WRONG_CHECK)
        return Outcome(check, result, student.record, printed + for_the_instructor(error), broke)

    def close(self) -> None:
        """Undo what pytest has set up in this process."""
        self._pytest.close()

    def _refuses_the_right_answer(self, exercise: str, check: HiddenCheck, key: bytes) -> str:
        """How a check fails the reference too, on the same draws, with its place; "" where it does not.

        So a check that is wrong itself, or that this machine cannot decide, costs nobody a point.
        """
        asked = (exercise, check.name, key)
        if asked not in self._refusals:
            right = reference_student(exercise)
            error, _ = self._run(exercise, check, right, key)
            result, folder = result_of(check.name, check.claim, right, error, check.file), check.file.parent
            if error is not None and broke_off(error):
                place = f"{folder.name}/{described_error(error, folder, check.file)}"
                self._refusals[asked] = f"{place}; {check.name} breaks off with the lesson's own answer"
            else:
                fails = result.verdict == Verdict.FAIL
                self._refusals[asked] = f"{check.place} {REFUSES}. {result.message}" if fails else ""
        return self._refusals[asked]

    def _run(self, exercise: str, check: HiddenCheck, student: Student, key: bytes) -> tuple[BaseException | None, str]:
        self._context.exercise, self._context.student, self._context.key = exercise, student, key
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                error = self._pytest.run(check.item) if check.item else check.ask(student, key, exercise)
                return error, printed.getvalue()
        finally:
            self._context.student = None


def file_of(exercise: str) -> str:
    """The name of the file that holds the hidden checks of an exercise of the class's own."""
    return f"test_{exercise}.py"


def _problems_of_own(folder: Path) -> dict[str, str]:
    """The exercises of the class's own that cannot be graded, before a file of checks is looked into."""
    own = course().own
    if own is None:
        return {}
    found = {name: each.problem for name, each in own.exercises.items() if each.problem}
    found |= own.problems_of_answers
    missing = (name for name in own.exercises if not (folder / file_of(name)).is_file())
    return {
        name: f"{folder.name}/{file_of(name)}: there is no such file, which holds its hidden checks" for name in missing
    } | found


def _exercises_of(file: Path) -> Collection[str]:
    """The exercises that a file of checks is about: by its marks, and by its name."""
    content = b""
    with contextlib.suppress(OSError):  # pytest has said so
        content = file.read_bytes()
    return {*marked_exercises(content), file.stem.removeprefix("test_")} & course().exercises.keys()


def _by_exercise(items: Sequence[pytest.Function], devices: int) -> dict[str, tuple[HiddenCheck, ...]]:
    found: dict[str, dict[str, HiddenCheck]] = {}
    for item in items:
        # evaluated on several devices, a check is still worth its points once
        shares = devices if "device" in item.fixturenames else 1
        for exercise, points in marks_of(item).items():
            checks = found.setdefault(exercise, {})
            if item.name in checks:
                words = f"{place_of_item(item)}: {exercise} has another check of this name"
                raise HiddenChecksError(words, item.path)
            checks[item.name] = HiddenCheck(item.name, _claim(item), points / shares, item)
    return {exercise: _with_public(exercise, checks) for exercise, checks in found.items()}


def _with_public(name: str, checks: Mapping[str, HiddenCheck]) -> tuple[HiddenCheck, ...]:
    """The hidden checks of an exercise in the order in which ``check`` asks, and what else ``check`` asks among them.

    Plain functions alone, which ask no claim of the exercise, stay as they are.
    """
    exercise, left = course().exercises[name], dict(checks)
    if not any(each.item and is_a_claim(each.item.function) for each in checks.values()):
        return tuple(left.values())
    found = []
    for each in exercise.checks:
        known = left.pop(_test_name(each.name), None) or HiddenCheck(_test_name(each.name), each.claim, 0.0, None)
        found.append(replace(known, public=each))
    return (*found, *left.values())


def _claim(item: pytest.Function) -> str:
    """The first paragraph of a check's docstring; without one, its name in words."""
    docstring = (item.function.__doc__ or "").strip().partition("\n\n")[0]
    return (
        " ".join(docstring.split()) or f"{item.function.__name__.removeprefix('test_').replace('_', ' ').capitalize()}."
    )
