"""What a cell shows, gathered within limits: prints, values, figures, and its error."""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

_MOST_OUTPUTS = 200  # of one cell
CUT = "\n(the rest of the output is left out)\n"


@dataclass(frozen=True)
class Room:
    """How much is kept: characters of one cell and of all, pictures in all, bytes of one picture."""

    cell_chars: int
    all_chars: int
    pictures: int
    picture_bytes: int


@dataclass
class Gathered:
    """The outputs of the cell that runs, as nbformat has them; a picture stands as a tensor of its bytes."""

    room: Room
    outputs: list[dict[str, Any]] = field(default_factory=list)
    _cell: int = 0
    _all: int = 0
    _pictures: int = 0

    def begin(self) -> None:
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
        kept = self._kept(text)
        if not kept:
            return
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] = _overwritten(last["text"], kept)
        else:
            self.outputs.append({"output_type": "stream", "name": name, "text": _overwritten("", kept)})

    def show(self, data: dict[str, Any], *, result: bool) -> None:
        """A value: of its forms, plain text and a PNG picture are kept."""
        if len(self.outputs) >= _MOST_OUTPUTS:
            self._cell = max(self._cell, self.room.cell_chars)
            return
        shown: dict[str, Any] = {}
        if isinstance(text := data.get("text/plain"), str):
            shown["text/plain"] = self._kept(text)
        if isinstance(picture := data.get("image/png"), bytes) and self._takes(picture):
            shown["image/png"] = torch.from_numpy(np.frombuffer(picture, np.uint8).copy())
        elif "image/png" in data:
            shown["text/plain"] = f"{shown.get('text/plain', '')} (the picture is left out)".strip()
        if shown.get("text/plain") or "image/png" in shown:
            self.outputs.append({"output_type": "execute_result" if result else "display_data", "data": shown})

    def fail(self, kind: str, words: str, traceback: list[str]) -> None:
        """The error that ended the cell."""
        self.outputs.append({"output_type": "error", "ename": kind, "evalue": words, "traceback": traceback})

    def takes_a_picture(self) -> bool:
        """Whether another picture would be kept, so that it is worth drawing."""
        return self._pictures < self.room.pictures

    def _takes(self, picture: bytes) -> bool:
        fits = self.takes_a_picture() and len(picture) <= self.room.picture_bytes
        self._pictures += fits
        return fits

    def _kept(self, text: str) -> str:
        room = min(self.room.cell_chars - self._cell, self.room.all_chars - self._all)
        if room <= 0:
            return ""
        kept = text[:room]
        self._cell += len(kept)
        self._all += len(kept)
        return kept if len(text) < room else kept + CUT


def _overwritten(before: str, text: str) -> str:
    """``before`` and ``text`` as a terminal shows them: a carriage return begins the line again."""
    if "\r" not in text:
        return before + text
    whole = (before + text).replace("\r\n", "\n")
    return "\n".join(line[line.rstrip("\r").rfind("\r") + 1 :] for line in whole.split("\n"))


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of a student's code; what is printed outside a cell is forgotten."""

    def __init__(self, gathered: Gathered, name: str) -> None:
        self._gathered = gathered
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
            self._gathered.print(self._name, str.__str__(text))
        return len(text)
