"""What ``hunt`` gives: a program with a bug in it, to be read, run, mended and checked."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from exercise_kit.engine.run import check
from exercise_kit.engine.verdict import Report


class Suspect:
    """A program with one bug or more, none of which it names.

    Args:
        exercise: the exercise that checks it.
        title: what it is called, as "patchify, seed 7".
        code: the program.
        defines: the name of the function or class that the hunt is about.
        bugs: how many there are.

    Attributes: ``exercise``, ``title``, ``code``, ``bugs``, and ``program``, the function or class itself, as it is.
    Shown as the value of a cell it is its code; called, it calls its program.
    """

    def __init__(self, exercise: str, title: str, code: str, defines: str, bugs: int) -> None:
        self.exercise, self.title, self.code, self.bugs = exercise, title, code, bugs
        self.program: Callable[..., Any] = _run(code, f"<hunt: {title}>")[defines]

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """What the program makes of these inputs, or an instance of it where it is a class."""
        return self.program(*inputs, **options)

    def check(self, mended: object = None) -> Report:
        """Check a mended program: the same as ``check("patchify", mended)``."""
        if mended is None:
            return Report(self.exercise, problem="Nothing is mended yet. Copy the program, mend it, and put it here.")
        return check(self.exercise, mended)

    def __repr__(self) -> str:
        from vit_course.hunts.show import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from vit_course.hunts.show import as_html

        return as_html(self)


def _run(code: str, file: str) -> dict[str, Any]:
    """What a program defines. Errors in it will show its own lines."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "vit_course.hunts.suspect_program"}
    exec(compile(code, file, "exec", dont_inherit=True), names)
    return names
