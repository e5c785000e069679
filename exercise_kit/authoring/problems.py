"""How the builder says what is wrong with a lesson, and where."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Problem:
    """One thing to mend in a file.

    Args:
        path: the file, relative to the repository's root.
        message: what is wrong and what to do about it.
        line: line in the file, counted from 1; None where the whole file is meant.
        cell: the cell's number, counted from 1.
    """

    path: Path
    message: str
    line: int | None = None
    cell: int | None = None

    def __str__(self) -> str:
        place = str(self.path)
        if self.line is not None:
            place += f":{self.line}"
        if self.cell is not None:
            place += f" (cell {self.cell})"
        return f"{place}: {self.message}"


class AuthoringError(Exception):
    """A lesson cannot be built; `problems` says why, all at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
