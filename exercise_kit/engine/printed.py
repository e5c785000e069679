"""What an answer prints while it is checked: the first call's lines, and how many more calls printed as much.

A check calls an answer twenty times and more, and a ``print`` that was left in it would push the report off the page.
While a debugger looks on, everything is shown: its own prompt is printed too.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO


class _FirstCallAlone:
    """A stream that hands on what is printed outside of calls, and in the first call that prints."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._depth = 0
        self._is_new = True
        self._ends = True  # whether what was shown last ends a line
        self.lines: list[int] = []  # that each call printed

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Around a call of the answer; one within another is part of that."""
        self._is_new = self._is_new if self._depth else True
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    def write(self, text: str) -> int:
        """Hand text on, or count its lines."""
        if not self._depth or sys.gettrace() is not None:
            return self._out.write(text)
        if self._is_new:
            self.lines.append(0)
            self._is_new = False
        self.lines[-1] += text.count("\n")
        if len(self.lines) > 1:
            return len(text)
        self._ends = text.endswith("\n") if text else self._ends
        return self._out.write(text)

    def finish(self) -> None:
        """Say how much was left out."""
        first, others = self.lines[:1], self.lines[1:]
        if others:
            much = "as much" if set(others) == set(first) else "something, too"
            count = "1 more call" if len(others) == 1 else f"{len(others)} more calls"
            self._out.write(f"{'' if self._ends else chr(10)}({count} printed {much}.)\n")


_current: _FirstCallAlone | None = None


@contextlib.contextmanager
def print_first_call_alone() -> Iterator[None]:
    """Inside, of what calls of an answer print only the first one's is shown; at the end how many others printed."""
    global _current
    outer, _current = _current, _FirstCallAlone(sys.stdout)
    try:
        with contextlib.redirect_stdout(_current):
            yield
    finally:
        _current.finish()
        _current = outer


def watch_printing() -> contextlib.AbstractContextManager[None]:
    """Around a call of an answer: what it prints is shown or counted, where a check runs."""
    return _current.call() if _current else contextlib.nullcontext()
