"""What hidden checks are written with: the mark ``exercise`` and the fixtures ``student, reference, probe, device``,
for a result that was handed in as a file ``results``.

``tests/hidden/conftest.py`` imports the names below. Run by pytest itself, every check tests the reference, once for
each exercise that it is marked with, or with ``--submission FILE`` the answers there; run by the judge, it tests the
student that the judge has set.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import torch

from exercise_kit.engine.class_exercises import use_class_here
from exercise_kit.engine.course import Measure, course
from exercise_kit.engine.probes import Probe, fresh_settings
from exercise_kit.engine.student import Student
from exercise_kit.judge import submission_option
from exercise_kit.submission.released import current_class

if TYPE_CHECKING:
    from exercise_kit.judge.pytest_submission import EvaluatedSubmission


MARK = "exercise"


@dataclass
class EvaluationContext:
    """Which student is evaluated, and on which draws: what the judge sets before it runs a check.

    Attributes:
        exercise: its name.
        student: a Student, or an object that behaves like one.
        key: the submission's secret, from which every check's seed is drawn.
        devices: that the student's code can use.
        measure: of results that are handed in as files; None: a made-up one.
    """

    exercise: str = ""
    student: Student | None = None
    key: bytes = b""
    devices: tuple[str, ...] = ("cpu",)
    measure: Measure | None = None


EVALUATION_CONTEXT = pytest.StashKey[EvaluationContext]()
SUBMISSION: pytest.StashKey[EvaluatedSubmission] = pytest.StashKey()


def right_objects(exercise: str = "") -> SimpleNamespace:
    """The right implementations of the course, by name; of one name, that of ``exercise`` and then the course's own."""
    known = course().references()
    found = {each.__name__: each for objects in known.values() for each in objects}
    if exercise in known:
        found |= dict(zip(course().exercises[exercise].objects, known[exercise], strict=True))
    return SimpleNamespace(**found)


def reference_student(exercise: str) -> Student:
    """A student whose answer to ``exercise`` is right.

    Raises:
        KeyError: there is no exercise of that name.
    """
    return Student(dict(zip(course().exercises[exercise].objects, course().references()[exercise], strict=True)))


def seed_of(key: bytes, exercise: str, check: str) -> int:
    """The seed of a check's probe: nobody knows it who does not hold the key. 63 bits."""
    digest = hmac.new(key, f"{exercise}\0{check}".encode(), hashlib.sha256).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def pytest_addoption(parser: pytest.Parser) -> None:
    """``pytest tests/hidden --submission FILE --device cuda --probe-seed 7``: of whom, where, on which numbers."""
    parser.addoption("--probe-seed", default="0", help="what the hidden checks' sizes and numbers are drawn from")
    parser.addoption("--device", help="where the answers compute: cpu, cuda or cuda:1")
    with suppress(ValueError):  # the package's entry point has brought it, unless pytest runs without plugins
        submission_option.pytest_addoption(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    words = "the exercise that a hidden check belongs to, and what the check is worth"
    config.addinivalue_line("markers", f"{MARK}(name, points): {words}")
    handed_in = config.getoption("submission", None)
    use_class_here(lambda: current_class([Path(handed_in)] if handed_in else ()))
    course()
    if config.getoption("submission", None):
        _evaluate_submission(config)


def _evaluate_submission(config: pytest.Config) -> None:
    from exercise_kit.judge.pytest_submission import EvaluatedSubmission

    try:
        submission = EvaluatedSubmission(Path(config.getoption("submission")), config.getoption("device") or "cpu")
    except (ValueError, OSError) as error:
        raise pytest.UsageError(f"--submission: {error}") from None
    config.stash[SUBMISSION] = submission
    config.add_cleanup(submission.close)


def marks_of(definition: pytest.Item) -> dict[str, float]:
    """Exercise → points, from the marks of a hidden check.

    Raises:
        ValueError: with what is wrong about the marks.
    """
    found: dict[str, float] = {}
    for mark in definition.iter_markers(MARK):
        if len(mark.args) != 1 or set(mark.kwargs) != {"points"}:
            raise ValueError('a mark has to read @pytest.mark.exercise("name", points=number)')
        name, points = mark.args[0], mark.kwargs["points"]
        if name not in course().exercises:
            raise ValueError(f"there is no exercise called {name!r}")
        if name in found:
            raise ValueError(f"it is marked twice with the exercise {name}")
        if isinstance(points, bool) or not isinstance(points, int | float) or not 0 < points < float("inf"):
            raise ValueError(f"points of {name} have to be a number above 0, not {points!r}")
        found[name] = float(points)
    if not found:
        raise ValueError('it lacks a mark: @pytest.mark.exercise("name", points=number)')
    return found


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a check on every device and, from the command line, for every exercise that it is marked with."""
    context = metafunc.config.stash.get(EVALUATION_CONTEXT, None)
    marks = _checked(metafunc)
    if "device" in metafunc.fixturenames:
        devices = context.devices if context else _devices(metafunc.config)
        cases = [
            pytest.param(torch.device(each), id=pytest.HIDDEN_PARAM if each == "cpu" else each) for each in devices
        ]
        metafunc.parametrize("device", cases)
    if context is None:
        metafunc.parametrize("exercise", list(marks))


def _checked(metafunc: pytest.Metafunc) -> dict[str, float]:
    """The marks of a hidden check that can be run; pytest's own failure, with file and line, of any other."""
    path, line, name = metafunc.definition.location
    place = f"{path}:{(line or 0) + 1}: {name}"
    if "student" not in metafunc.fixturenames:
        pytest.fail(f"{place}: it has to take the fixture `student`", pytrace=False)
    try:
        return marks_of(metafunc.definition)
    except ValueError as error:
        problem = error
    pytest.fail(f"{place}: {problem}", pytrace=False)


def _devices(config: pytest.Config) -> tuple[str, ...]:
    """Where checks put their inputs; a worker moves what it gets to the device by itself."""
    if config.getoption("submission", None):
        return ("cpu",)
    if named := config.getoption("device", None):
        return (named,)
    return ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)


@pytest.fixture(autouse=True)
def _fresh_settings() -> Iterator[None]:
    with fresh_settings():
        yield


@pytest.fixture
def exercise(request: pytest.FixtureRequest) -> str:
    """The name of the exercise that is being graded."""
    return request.config.stash[EVALUATION_CONTEXT].exercise


@pytest.fixture
def student(request: pytest.FixtureRequest, exercise: str) -> Student:
    """The code to evaluate: ``student(*inputs)``, ``student.build(*arguments)`` and the like."""
    context = request.config.stash.get(EVALUATION_CONTEXT, None)
    if context and context.student:
        return context.student
    submission = request.config.stash.get(SUBMISSION, None)
    return submission.student(exercise) if submission else reference_student(exercise)


@pytest.fixture
def reference(exercise: str) -> SimpleNamespace:
    """Right implementations by name: ``reference.one_hot``, ``reference.Standardize``."""
    return right_objects(exercise)


@pytest.fixture
def probe(request: pytest.FixtureRequest, exercise: str) -> Probe:
    """Where a check draws everything from, its sizes too: other draws for every submission and check."""
    context = request.config.stash.get(EVALUATION_CONTEXT, None)
    key = context.key if context else request.config.getoption("probe_seed", "0").encode()
    return Probe(seed_of(key, exercise, request.function.__name__))


@pytest.fixture
def device() -> torch.device:
    """Where a check puts its inputs: the CPU and, when pytest asks the reference, CUDA where there is one."""
    return torch.device("cpu")


@pytest.fixture
def results(request: pytest.FixtureRequest, student: Student, probe: Probe) -> object:
    """What the course measures of a file: ``results.measured()``, ``results.expect_at_least(60)`` percent."""
    context = request.config.stash.get(EVALUATION_CONTEXT, None)
    measured = course().results
    if measured is None:
        pytest.fail("the course asks for no files, and so measures none", pytrace=False)
    return measured.fixture(student, probe, context.measure if context else None)
