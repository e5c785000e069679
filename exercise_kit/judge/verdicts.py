"""What became of a hidden check, in words for the student and, apart, for the instructor."""

from __future__ import annotations

import ast
import traceback
from functools import cache
from pathlib import Path

import pytest

from exercise_kit.engine.answers import incomparable
from exercise_kit.engine.run import as_result
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import CheckResult, Failure, Undecided, Verdict
from exercise_kit.judge.collecting import line_in


def result_of(name: str, claim: str, student: Student, error: BaseException | None, file: Path) -> CheckResult:
    """The line of a report for a check that passed, or that ended in ``error``.

    Of a plain assertion the student reads the text that the instructor wrote beside it, when it is a text and not
    an expression: that one, and what pytest makes of the values, might tell the answer.
    """
    if error is None:
        return CheckResult(name, claim, Verdict.PASS)
    if isinstance(error, Failure | Undecided):
        return as_result(name, claim, error)
    if isinstance(error, pytest.skip.Exception | pytest.xfail.Exception):
        return as_result(name, claim, Undecided(str(error)))
    if is_plain(error):
        return as_result(name, claim, Failure(_written(error, file) or f"{student.name} does not do this"))
    return as_result(name, claim, incomparable(student.name, student.record, error))


def is_plain(error: BaseException) -> bool:
    """Whether a check said no with pytest's own means: ``assert``, ``pytest.raises``, ``pytest.fail``."""
    return isinstance(error, AssertionError | pytest.fail.Exception)


def is_of_the_check(error: BaseException | None) -> bool:
    """Whether a check broke off with an exception that is no verdict."""
    verdicts = (Failure, Undecided, pytest.skip.Exception, pytest.xfail.Exception)
    return error is not None and not isinstance(error, verdicts) and not is_plain(error)


def for_the_instructor(error: BaseException | None) -> str:
    """The traceback of what is no verdict in words, from the check on; "" for what the student reads in full."""
    if error is None or isinstance(error, Failure | Undecided | pytest.skip.Exception):
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
