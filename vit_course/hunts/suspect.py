"""What ``hunt`` gives: a program with a bug in it, to be read, run, mended and checked.

It shows itself as text in a terminal and as HTML in a notebook: its code, in colors, on a card of its own. As in the
checks' reports there is no style sheet and no script, which an untrusted notebook would not run. The card is opaque,
so the colors read on light and dark themes.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from html import escape
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from pygments.style import Style
from pygments.token import Comment, Keyword, Name, Number, Operator, String, Token

from exercise_kit.engine.run import check
from exercise_kit.engine.verdict import Report

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_CARD = "background:#fbfaf7;color:#1b2733;border:1px solid #d5d9dd;border-radius:6px;padding:0.7em 1em;margin:0.3em 0"
# a click selects all of the code, to be copied
_CODE = (
    "background:transparent;color:#1b2733;border:0;margin:0.6em 0 0 0;padding:0;overflow-x:auto;line-height:1.45;"
    "font-family:monospace;font-size:0.95em;white-space:pre;user-select:all;-webkit-user-select:all"
)


class _Palette(Style):
    """The figures' colors, dark enough to be read on the card."""

    background_color = "#fbfaf7"
    styles = {  # noqa: RUF012  # pygments reads a plain dict
        Token: "#1b2733",
        Comment: "italic #5b6570",
        Keyword: "bold #0072B2",
        Operator.Word: "bold #0072B2",
        Name.Builtin.Pseudo: "#0072B2",
        Name.Function: "bold #1b2733",
        Name.Class: "bold #1b2733",
        Name.Decorator: "#8a3d6e",
        String: "#9c4400",
        Number: "#00694c",
    }


def as_text(suspect: Suspect) -> str:
    """A line that tells what it is, and the code, which can be copied with it."""
    return f"# hunt: {suspect.title}; {_describe_number_of_bugs(suspect.bugs)}\n{suspect.code}"


def as_html(suspect: Suspect) -> str:
    """A card with the same; one click on the code selects all of it."""
    heading = f"Hunt: {suspect.title}"
    code = highlight(suspect.code, PythonLexer(), HtmlFormatter(noclasses=True, nowrap=True, style=_Palette))
    content = f"{_describe_number_of_bugs(suspect.bugs)}. One click on the code selects all of it, to be copied."
    return (
        f'<section aria-label="{escape(heading, quote=True)}" style="{_CARD}">'
        f'<p style="margin:0;color:#1b2733"><strong>{escape(heading)}</strong> · {content}</p>'
        f'<pre style="{_CODE}">{code}</pre></section>'
    )


def _describe_number_of_bugs(bugs: int) -> str:
    count = _NUMBERS[bugs] if bugs < len(_NUMBERS) else str(bugs)
    return f"{count} bug{'' if bugs == 1 else 's'} in it"


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
        self.program: Callable[..., Any] = _run_program(code, f"<hunt: {title}>")[defines]

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Return what the program makes of these inputs, or an instance of it where it is a class."""
        return self.program(*inputs, **options)

    def check(self, mended: object = None) -> Report:
        """Check a mended program: the same as ``check("patchify", mended)``."""
        if mended is None:
            return Report(self.exercise, problem="Nothing is repaired yet. Copy the program, repair it, put it here.")
        return check(self.exercise, mended)

    def __repr__(self) -> str:

        return as_text(self)

    def _repr_html_(self) -> str:

        return as_html(self)


def _run_program(code: str, file: str) -> dict[str, Any]:
    """Return what a program defines. Errors in it will show its own lines."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    names: dict[str, Any] = {"__name__": "vit_course.hunts.suspect_program"}
    exec(compile(code, file, "exec", dont_inherit=True), names)
    return names
