"""A public claim as a hidden check: the same question, asked with the class's secret probe and for hidden points."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import pytest

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure

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
            ask_first(first, student, probe)
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
    test.asks_a_claim = True  # type: ignore[attr-defined]
    for exercise, worth in points.items():
        test = pytest.mark.exercise(exercise, points=worth)(test)
    return test


def ask_first(claim: Claim, student: Student, probe: object) -> None:
    """Ask a claim before another one: where it fails, that is told where it is asked, and this check waits for it.

    Raises:
        Failure: it does not hold.
    """
    try:
        claim(student, probe)
    except Failure as failure:
        failure.is_anothers = True
        raise


def is_a_claim(function: Callable[..., object]) -> bool:
    """Whether a pytest function asks a claim: :func:`as_hidden` has made it."""
    return getattr(function, "asks_a_claim", False)
