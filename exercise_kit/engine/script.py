"""A report in a plain script, where nobody shows the value of a line: it is printed."""

from __future__ import annotations

import dis
import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec

from exercise_kit.engine.verdict import Report

_Arguments = ParamSpec("_Arguments")


def printed_in_a_script(check: Callable[_Arguments, Report]) -> Callable[_Arguments, Report]:
    """Decorate a check that returns a report: the report is printed where a script calls it and drops the result."""

    @functools.wraps(check)
    def printing(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> Report:
        report = check(*arguments, **options)
        caller = sys._getframe(1)
        if _is_of_a_script(caller) and _is_dropped(caller):
            print(report)
        return report

    return printing


def _is_of_a_script(caller: FrameType) -> bool:
    """Whether Python runs a file, and this is a line of it; a notebook's module has no file."""
    return caller.f_globals.get("__name__") == "__main__" and "__file__" in caller.f_globals


def _is_dropped(caller: FrameType) -> bool:
    """Whether the caller does nothing with what the call that it is at gives."""
    following = (each.opname for each in dis.get_instructions(caller.f_code) if each.offset > caller.f_lasti)
    return next(following, "") == "POP_TOP"
