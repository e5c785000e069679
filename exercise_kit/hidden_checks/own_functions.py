"""Plain test functions with which a teacher adds checks that only grading asks, in ``hidden/test_NAME.py``::

    @pytest.mark.exercise("one_hot", points=1)
    def test_each_label_is_a_row(student, probe):
        \"\"\"The sentence that the student reads.\"\"\"

A file is imported as any module is; pytest takes no part in it. So fixtures and parametrization are not read.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from exercise_kit.engine.class_exercises import describe_error_with_line, suppress_bytecode
from exercise_kit.engine.course import course
from exercise_kit.engine.exercise import Check
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure, Undecided
from exercise_kit.hidden_checks import HiddenChecksError

MARK = "exercise"
GIVEN = ("student", "probe", "device", "reference", "results", "exercise")
_FIXTURE = type(pytest.fixture(lambda: None))
_MARK_READS = 'a mark has to read @pytest.mark.exercise("name", points=number)'


def read_added_checks(file: Path) -> Iterator[tuple[str, Check]]:
    """The names of exercises with the checks that a file adds to them, in its order.

    Raises:
        HiddenChecksError: with file and line, when it cannot be used.
    """
    module = _import_file(file)
    of_all = getattr(module, "pytestmark", [])
    of_all = of_all if isinstance(of_all, list) else [of_all]
    for name, value in vars(module).items():
        is_fixture = isinstance(value, _FIXTURE)
        if not is_fixture and not (name.startswith("test_") and isinstance(value, FunctionType)):
            continue
        try:
            if is_fixture:
                raise ValueError("fixtures are not read; call a function")
            yield from _make_checks_of_function(name, value, of_all)
        except ValueError as problem:
            line = inspect.unwrap(value).__code__.co_firstlineno
            raise HiddenChecksError(f"{file.name}:{line}: {name}: {problem}", file) from None


def _import_file(file: Path) -> ModuleType:
    name = f"_hidden.{file.stem}"  # not what another file of this name is called
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with suppress_bytecode():
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise HiddenChecksError(describe_error_with_line(error, file.parent, file.name), file) from error
    finally:
        del sys.modules[name]
    return module


def _make_checks_of_function(
    name: str, function: Callable[..., Any], file_marks: list[Any]
) -> Iterator[tuple[str, Check]]:
    claim = " ".join((function.__doc__ or "").strip().partition("\n\n")[0].split())
    claim = claim or f"{name.removeprefix('test_').replace('_', ' ').capitalize()}."
    names = tuple(inspect.signature(function).parameters)
    if "student" not in names:
        raise ValueError("it has to take `student`")
    if foreign := [each for each in names if each not in GIVEN]:
        raise ValueError(f"there is nothing called {foreign[0]!r} to give it; there is {', '.join(GIVEN)}")
    asked = _wrap_test_function(function, names)
    for exercise, points in _read_points_from_marks([*file_marks, *getattr(function, "pytestmark", ())]).items():
        yield exercise, Check(name, claim, asked, worth=points, graded_only=True)


def _read_points_from_marks(marks: list[Any]) -> dict[str, float]:
    """Exercise → points, from the marks of a function and of its file."""
    found: dict[str, float] = {}
    for mark in marks:
        if mark.name != MARK:
            raise ValueError(f"the mark {mark.name!r} is not read; a check is one function that takes what it draws")
        if len(mark.args) != 1 or set(mark.kwargs) != {"points"}:
            raise ValueError(_MARK_READS)
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


def _wrap_test_function(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., None]:
    """A function that says no by ``assert`` or pytest's own means, as one that raises Failure or Undecided."""

    @wraps(function)
    def ask(student: Student, probe: object, **more: object) -> None:
        given = {"student": student, "probe": probe, **more}
        try:
            function(**{name: given[name] for name in names})
        except (pytest.skip.Exception, pytest.xfail.Exception) as doubt:
            raise Undecided(str(doubt)) from None
        except (AssertionError, pytest.fail.Exception) as error:
            said = error.args[0] if error.args and isinstance(error.args[0], str) else ""
            raise Failure(said or f"{student.name} does not do this") from error

    return ask
