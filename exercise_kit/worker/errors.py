"""A student's exception in words: by its own lines alone, whatever class it has and however it misbehaves."""

from __future__ import annotations

import linecache
import os
import re
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

_MOST_WORDS, _MOST_LINE, _MOST_FRAMES, _MOST_KINDS = 500, 200, 12, 20
_LONGEST_SCRIPT = 10_000
_SCRIPTED = re.compile(r"^The following operation failed in the TorchScript .*\nbuiltins\.(\w{1,80}): (.*)", re.DOTALL)
_CELL = re.compile(r"<cell [0-9]+>|<the example>")
_HERE = os.path.dirname(__file__) + os.sep
_PATH = re.compile(
    r"(?:/[^\s/\"':]{1,80}){1,20}/(worker|site-packages|vit_course|exercise_kit)/"
)  # no folder of the grader's
_PACKAGE_HOMES = {folder for folder in sys.path if folder.count(os.sep) > 1}
_HOMES = tuple(
    f"{home}{os.sep}"
    for home in (os.path.dirname(os.path.dirname(__file__)), *sorted(_PACKAGE_HOMES, key=len, reverse=True))
)
_OUR_PACKAGES = ("/vit_course/", "/exercise_kit/")
_mro = type.__dict__["__mro__"].__get__
_name = type.__dict__["__name__"].__get__


def name_of_cell(index: int) -> str:
    """The file name that the code of a cell goes by."""
    return f"<cell {index}>"


def described(error: BaseException) -> dict[str, Any]:
    """Its kinds (the class and all that it inherits from), words, innermost line in a cell, and functions."""
    frames = list(_frames(error.__traceback__))
    own = [(name, number) for name, number, _ in frames if _CELL.fullmatch(name)]
    kinds, words = [_name(kind)[:80] for kind in _mro(type(error)) if kind is not object], words_of(error)
    if scripted := _scripted(error, kinds):
        kinds, words = [scripted[1], *kinds], scripted[2][:_MOST_WORDS]
    return {
        "kinds": kinds[:_MOST_KINDS],
        "words": words,
        "line": _line(*own[-1]) if own else "",
        "functions": [function[:80] for _, _, function in frames][-_MOST_FRAMES:],
    }


def _scripted(error: BaseException, kinds: list[str]) -> re.Match[str] | None:
    """The kind and the words of a student's own error in TorchScript, which tells of it in an error of its own."""
    try:
        return _SCRIPTED.search(str.__str__(str(error))[:_LONGEST_SCRIPT]) if kinds[0] == "Error" else None
    except Exception:  # __str__ is the student's code too
        return None


def words_of(error: BaseException) -> str:
    """What the exception says, shortened; "" when it cannot say it."""
    try:
        words = str.__str__(str(error))[: 4 * _MOST_WORDS]
        for home in _HOMES:
            words = words.replace(home, "")
        return _PATH.sub(r"\1/", words)[:_MOST_WORDS]
    except MemoryError:
        raise
    except BaseException:  # __str__ is the student's code too
        return ""


def for_feedback(error: BaseException) -> tuple[str, str, list[str]]:
    """Class, words and traceback of a cell's error, the traceback in plain text with the cells' lines alone."""
    kind, words = _name(type(error))[:80], words_of(error)
    lines = [f"{kind}: {words}" if words else kind]
    if issubclass(_mro(type(error))[0], SyntaxError):
        lines = [f"  line {_whole(error, 'lineno')}: {_text(error, 'text')}", f"{kind}: {_text(error, 'msg')}"]
    places = [place for frame in _frames(error.__traceback__) if (place := _place(*frame))]
    return kind, words, [*_shortened(places), *lines]


def _shortened(places: list[str]) -> list[str]:
    """The places without those that repeat what stands before them, and the innermost of them where they are many."""
    told = [place for place, before in zip(places, [None, *places], strict=False) if place != before]
    return told if len(told) <= _MOST_FRAMES else ["  ...", *told[-_MOST_FRAMES:]]


def _place(name: str, number: int, function: str) -> str:
    where = "" if function == "<module>" else f", in {function}"
    if _CELL.fullmatch(name):
        return f"  {name[1:-1]}, line {number}{where}:  {_line(name, number)}"
    for package in _OUR_PACKAGES:
        if package in name:
            return f"  {package[1:]}{name.rpartition(package)[2]}, line {number}{where}"
    return ""


def _frames(traceback: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    """File, line and function of every frame, outermost first."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            yield code.co_filename, traceback.tb_lineno or 0, code.co_name
        traceback = traceback.tb_next


def _line(name: str, number: int) -> str:
    return linecache.getline(name, number).strip()[:_MOST_LINE]


def _text(error: BaseException, attribute: str) -> str:
    value = getattr(error, attribute, None)
    return value.strip()[:_MOST_LINE] if type(value) is str else ""


def _whole(error: BaseException, attribute: str) -> int:
    value = getattr(error, attribute, None)
    return value if type(value) is int else 0
