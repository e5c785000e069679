"""A public claim as a hidden check: the same question, asked with the class's secret probe and for hidden points."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import pytest

from exercise_kit.engine.student import Student

Claim = Callable[..., None]


def as_hidden(claim: Claim, first: Claim | None = None, **points: float) -> Callable[..., None]:
    """The pytest function that asks a claim in grading::

        test_each_label_is_a_row = as_hidden(claims.each_label_is_a_row, one_hot=1.75, fix_one_hot=0.6)

    Args:
        claim: a public check's function, of (student, probe) or (student, probe, device).
        first: a claim that is asked before it. Code that does nothing leaves its input alone, and earns nothing for it.
        points: for each exercise that is graded by it, its hidden points.

    Returns:
        A function for pytest to collect, with the claim's sentence as its docstring.
    """

    def ask(student: Student, probe: object, *device: object) -> None:
        if first is not None:
            first(student, probe)
        claim(student, probe, *device)

    if "device" in inspect.signature(claim).parameters:

        def test(student: Student, probe: object, device: object) -> None:
            ask(student, probe, device)
    else:

        def test(student: Student, probe: object) -> None:  # type: ignore[misc]  # pytest reads its parameters
            ask(student, probe)

    asked_for = sys._getframe(1)  # pytest and every message name the line that gives the points, not this file
    test.__code__ = test.__code__.replace(
        co_filename=asked_for.f_code.co_filename, co_firstlineno=asked_for.f_lineno, co_name=f"test_{claim.__name__}"
    )
    test.__name__ = test.__qualname__ = f"test_{claim.__name__}"
    test.__doc__ = claim.__doc__
    for exercise, worth in points.items():
        test = pytest.mark.exercise(exercise, points=worth)(test)
    return test
