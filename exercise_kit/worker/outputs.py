"""What a cell shows, gathered within limits: prints, values, figures, and its error in words.

A student's exception is described by its own lines alone, whatever its class is and however it misbehaves.
"""

from __future__ import annotations

import io
import linecache
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
import torch

from . import torch_internals
from .real_types import is_a, mro, read_class_name

_MOST_WORDS, _MOST_LINE, _MOST_FRAMES, _MOST_KINDS, _MOST_TENSORS = 500, 200, 12, 20, 3
_LONGEST_SCRIPT = 10_000
_SCRIPTED = re.compile(r"^The following operation failed in the TorchScript .*\nbuiltins\.(\w{1,80}): (.*)", re.DOTALL)
_CELL = re.compile(r"<cell [0-9]+>|<the example>")
_HERE = os.path.dirname(__file__) + os.sep
_PACKAGE_FOLDERS = {folder for folder in sys.path if folder.count(os.sep) > 1}
_FOLDERS = tuple(
    f"{folder}{os.sep}"
    for folder in (os.path.dirname(os.path.dirname(__file__)), *sorted(_PACKAGE_FOLDERS, key=len, reverse=True))
)
_traceback = BaseException.__dict__["__traceback__"].__get__


class _Packages:
    """The packages in which errors name places, without the folders that hold them, which are the grader's."""

    names: tuple[str, ...]
    folders: re.Pattern[str]


def set_shown_packages(names: Iterable[str]) -> None:
    """From here on errors name places in the packages of these names."""
    _Packages.names = tuple(names)
    names = "|".join(("worker", "site-packages", *_Packages.names))
    _Packages.folders = re.compile(rf"(?:/[^\s/\"':]{{1,80}}){{1,20}}/({names})/")


set_shown_packages(["exercise_kit"])


def make_cell_name(index: int) -> str:
    """The file name that the code of a cell goes by, counted from 1, as people count and the table of results does."""
    return f"<cell {index + 1}>"


def describe_error(error: BaseException) -> dict[str, Any]:
    """Its kinds (the class and all that it inherits from), words, innermost line in a cell, and functions."""
    frames = list(_iterate_traceback_frames(_traceback(error)))
    own = [(name, number) for name, number, _ in frames if _CELL.fullmatch(name)]
    line = _read_line(*own[-1]) if own else ""
    kinds, words = [read_class_name(kind) for kind in mro(type(error)) if kind is not object], read_error_message(error)
    if scripted := _find_torchscript_error(error, kinds):
        kinds, words = [scripted[1], *kinds], scripted[2][:_MOST_WORDS]
    return {
        "kinds": kinds[:_MOST_KINDS],
        "words": words,
        "line": line,
        "tensors": _list_tensors_on_line(line, _traceback(error)),
        "functions": [function[:80] for _, _, function in frames][-_MOST_FRAMES:],
    }


def _find_torchscript_error(error: BaseException, kinds: list[str]) -> re.Match[str] | None:
    """The kind and the words of a student's own error in TorchScript, which tells of it in an error of its own."""
    try:
        return _SCRIPTED.search(str.__str__(str(error))[:_LONGEST_SCRIPT]) if kinds[0] == "Error" else None
    except Exception:  # __str__ is the student's code too
        return None


def read_error_message(error: BaseException) -> str:
    """Return what the exception says, shortened; "" when it cannot say it."""
    try:
        words = str.__str__(str(error))[: 4 * _MOST_WORDS]
        for folder in _FOLDERS:
            words = words.replace(folder, "")
        return _Packages.folders.sub(r"\1/", words)[:_MOST_WORDS]
    except MemoryError:
        raise
    except BaseException:  # __str__ is the student's code too
        return ""


def describe_error_for_feedback(error: BaseException) -> tuple[str, str, list[str]]:
    """Class, words and traceback of a cell's error, the traceback in plain text with the cells' lines alone."""
    kind, words = read_class_name(type(error)), read_error_message(error)
    lines = [f"{kind}: {words}" if words else kind]
    if is_a(error, SyntaxError):
        lines = [
            f"  line {_read_integer_attribute(error, 'lineno')}: {_read_text_attribute(error, 'text')}",
            f"{kind}: {_read_text_attribute(error, 'msg')}",
        ]
    places = [place for frame in _iterate_traceback_frames(_traceback(error)) if (place := _format_frame(*frame))]
    return kind, words, [*_shorten_traceback(places), *lines]


def _shorten_traceback(places: list[str]) -> list[str]:
    """The places without repetitions of the place before; of many, the innermost."""
    distinct = [place for place, before in zip(places, [None, *places], strict=False) if place != before]
    return distinct if len(distinct) <= _MOST_FRAMES else ["  ...", *distinct[-_MOST_FRAMES:]]


def _format_frame(name: str, number: int, function: str) -> str:
    where = "" if function == "<module>" else f", in {function}"
    if _CELL.fullmatch(name):
        return f"  {name[1:-1]}, line {number}{where}:  {_read_line(name, number)}"
    for package in _Packages.names:
        if (folder := f"/{package}/") in name:
            return f"  {package}/{name.rpartition(folder)[2]}, line {number}{where}"
    return ""


def _iterate_traceback_frames(traceback: TracebackType | None) -> Iterator[tuple[str, int, str]]:
    """File, line and function of every frame, outermost first."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            yield code.co_filename, traceback.tb_lineno or 0, code.co_name
        traceback = traceback.tb_next


def _list_tensors_on_line(line: str, traceback: TracebackType | None) -> list[Any]:
    """Name and sizes of the tensors that the innermost cell's line names."""
    held: dict[str, Any] = {}
    while traceback is not None:
        if _CELL.fullmatch(traceback.tb_frame.f_code.co_filename):
            held = traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    named = dict.fromkeys(re.findall(r"(?<![\w.])[A-Za-z_]\w*", line))
    tensors = [(name, held[name]) for name in named if name in held and is_a(held[name], torch.Tensor)]
    return [[name[:40], list(torch_internals.shape(each))] for name, each in tensors[:_MOST_TENSORS]]


def _read_line(name: str, number: int) -> str:
    return linecache.getline(name, number).strip()[:_MOST_LINE]


def _read_text_attribute(error: BaseException, attribute: str) -> str:
    value = getattr(error, attribute, None)
    return value.strip()[:_MOST_LINE] if type(value) is str else ""


def _read_integer_attribute(error: BaseException, attribute: str) -> int:
    value = getattr(error, attribute, None)
    return value if type(value) is int else 0


_DOTS_PER_INCH = 72


def draw_png(figure: Any, output_buffer: CellOutputBuffer) -> bytes | None:
    """The figure as a PNG picture; None when no more are kept, so that it is not drawn for nothing."""
    if not output_buffer.has_room_for_picture():
        return b""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight")
    return stream.getvalue()


def show_open_figures(output_buffer: CellOutputBuffer) -> None:
    """Show and close what pyplot has open, as a notebook does at the end of a cell."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums():
        return
    try:
        for number in pyplot.get_fignums():
            _show_figure(pyplot.figure(number), output_buffer)
    finally:
        pyplot.close("all")


def redirect_pyplot_show(shell: Any) -> None:
    """Make ``plt.show()`` and ``figure.show()`` show in the cell's output."""
    try:
        import matplotlib.pyplot as pyplot
        from matplotlib.figure import Figure
    except ImportError:
        return

    def show(*_: object, **__: object) -> None:
        show_open_figures(shell.output_buffer)

    pyplot.show = show
    Figure.show = lambda figure, warn=True: _show_figure(figure, shell.output_buffer)  # type: ignore[method-assign,assignment]


def _show_figure(figure: Any, output_buffer: CellOutputBuffer) -> None:
    output_buffer.show({"text/plain": "<Figure>", "image/png": draw_png(figure, output_buffer)}, result=False)


_MOST_OUTPUTS = 200  # of one cell
CUT = "\n(the rest of the output is left out)\n"


@dataclass(frozen=True)
class OutputLimits:
    """How much is kept: characters of one cell and of all, pictures in all, bytes of one picture."""

    cell_chars: int
    all_chars: int
    pictures: int
    picture_bytes: int


@dataclass
class CellOutputBuffer:
    """The outputs of the cell that runs, as nbformat has them; a picture stands as a tensor of its bytes."""

    room: OutputLimits
    outputs: list[dict[str, Any]] = field(default_factory=list)
    _cell: int = 0
    _all: int = 0
    _pictures: int = 0

    def begin_cell(self) -> None:
        """A new cell begins."""
        self.outputs = []
        self._cell = 0

    def clear(self) -> None:
        """Forget what the cell has shown, as clear_output asks; what it took stays taken."""
        self.outputs = []

    def print(self, name: str, text: str) -> None:
        """Text on stdout or stderr."""
        last = self.outputs[-1] if self.outputs else {}
        if len(self.outputs) >= _MOST_OUTPUTS and last.get("name") != name:
            return
        kept = self._truncate_to_room(text)
        if not kept:
            return
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] = _apply_carriage_returns(last["text"], kept)
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": _apply_carriage_returns("", kept)})

    def show(self, data: dict[str, Any], *, result: bool) -> None:
        """A value: of its forms, plain text and a PNG picture are kept."""
        if len(self.outputs) >= _MOST_OUTPUTS:
            self._cell = max(self._cell, self.room.cell_chars)
            return
        shown: dict[str, Any] = {}
        if isinstance(text := data.get("text/plain"), str):
            shown["text/plain"] = self._truncate_to_room(text)
        if isinstance(picture := data.get("image/png"), bytes) and self._reserve_picture(picture):
            shown["image/png"] = torch.from_numpy(np.frombuffer(picture, np.uint8).copy())
        elif "image/png" in data:
            shown["text/plain"] = f"{shown.get('text/plain', '')} (the picture is left out)".strip()
        if shown.get("text/plain") or "image/png" in shown:
            self.outputs.append({"output_type": "execute_result" if result else "display_data", "data": shown})

    def add_error(self, kind: str, words: str, traceback: list[str]) -> None:
        """The error that ended the cell."""
        self.outputs.append({"output_type": "error", "ename": kind, "evalue": words, "traceback": traceback})

    def has_room_for_picture(self) -> bool:
        """Say whether another picture would be kept, so that it is worth drawing."""
        return self._pictures < self.room.pictures

    def _reserve_picture(self, picture: bytes) -> bool:
        fits = self.has_room_for_picture() and len(picture) <= self.room.picture_bytes
        self._pictures += fits
        return fits

    def _truncate_to_room(self, text: str) -> str:
        room = min(self.room.cell_chars - self._cell, self.room.all_chars - self._all)
        if room <= 0:
            return ""
        kept = text[:room]
        self._cell += len(kept)
        self._all += len(kept)
        return kept if len(text) < room else kept + CUT


def _apply_carriage_returns(shown_text: str, new_text: str) -> str:
    """``shown_text`` and ``new_text`` as a terminal shows them: a carriage return begins the line again."""
    if "\r" not in new_text:
        return shown_text + new_text
    whole = (shown_text + new_text).replace("\r\n", "\n")
    return "\n".join(line[line.rstrip("\r").rfind("\r") + 1 :] for line in whole.split("\n"))


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a student's code; what is printed outside a cell is forgotten."""

    def __init__(self, output_buffer: CellOutputBuffer, name: str) -> None:
        self._output_buffer = output_buffer
        self._name = name
        self.listening = False

    encoding = "utf-8"

    @property
    def name(self) -> str:
        """Its usual name in angle brackets."""
        return f"<{self._name}>"

    def writable(self) -> bool:
        """Yes."""
        return True

    def write(self, text: str) -> int:
        """Keep ``text`` while a cell runs."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.listening:
            self._output_buffer.print(self._name, str.__str__(text))
        return len(text)
