"""A lesson's source, Python in jupytext's percent format, read into cells that know their role and line.

A role stands in the header of a cell and nowhere else::

    # %% exercise="one_hot"
    # %% check="one_hot" points=8
    # %% [markdown] question="why-scale" points=2
    # %% tags=["experiment"]
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import jupytext
import nbformat


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


# magics stay as they are written: jupytext would otherwise turn the comment "# Why?" into a call for help
PERCENT_FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
HEADER = re.compile(r"# ?%%(%*)(\s|$)")
# how a known mistake of a class's own exercise writes the line above: for no notebook
BUG = re.compile(r'^[ \t]*# bug ".*\n?', re.MULTILINE)
MARKER = re.compile(r"^[ \t]*(?:# )?#+ (BEGIN|END) SOLUTION[ \t]*$", re.MULTILINE)


class Role(Enum):
    """What a cell is for."""

    TEXT = "text"
    CODE = "code"
    EXERCISE = "exercise"
    CHECK = "check"
    QUESTION = "question"


NAMED_ROLES = (Role.EXERCISE, Role.CHECK, Role.QUESTION)


@dataclass(frozen=True)
class Cell:
    """One cell of a lesson.

    Args:
        number: its place in the lesson, counted from 1.
        line: the line of its header in the source, counted from 1.
        role: what it is for.
        source: its text, without the comment signs where it is prose.
        name: the exercise's or the question's name; empty for plain cells.
        points: what it is worth, as written in the header.
        tags: Jupyter's cell tags.
        header: every key of the header, known or not.
    """

    number: int
    line: int
    role: Role
    source: str
    name: str = ""
    points: Any = None
    tags: tuple[str, ...] = ()
    header: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_markdown(self) -> bool:
        """Whether the cell is prose in the notebook."""
        return self.role in (Role.TEXT, Role.QUESTION)


@dataclass(frozen=True)
class Lesson:
    """A lesson's source: `path` relative to the repository's root, and its cells in order."""

    path: Path
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """The lesson's name, which is also its nbgrader assignment's."""
        return self.path.stem

    def list_cells_of_role(self, role: Role) -> list[Cell]:
        """The cells that have this role, in order."""
        return [cell for cell in self.cells if cell.role is role]

    def problem(self, message: str, cell: Cell, offset: int = 0) -> Problem:
        """A problem in a cell; `offset` counts lines from the cell's first line, 0 being its header."""
        return Problem(self.path, message, cell.line + offset, cell.number)


def read_lesson(root: Path, path: Path) -> Lesson:
    """Read a lesson.

    Args:
        root: the repository's root.
        path: the source, below `root`.

    Raises:
        AuthoringError: the file is not text in percent format.
    """
    relative = path.relative_to(root)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise AuthoringError([Problem(relative, message)]) from error
    lines = [number for number, line in enumerate(text.splitlines(), 1) if HEADER.match(line)]
    try:
        raw = jupytext.reads(text, fmt=PERCENT_FORMAT).cells if lines else []
    except nbformat.ValidationError as error:
        message = f"jupytext cannot read the file's header: {error.message}"
        raise AuthoringError([Problem(relative, message, line=1)]) from error
    if len(raw) != len(lines):
        message = "text before the first '# %%' header; start the file with '# %% [markdown]' and the title"
        raise AuthoringError([Problem(relative, message, line=1)])
    if not raw:
        raise AuthoringError([Problem(relative, "no '# %%' header, so no cell; write it in percent format")])
    numbered = [(number, line, entry) for number, (line, entry) in enumerate(zip(lines, raw, strict=True), 1)]
    message = "a raw cell; make it code or [markdown]"
    if wrong := [
        Problem(relative, message, line, number) for number, line, entry in numbered if entry.cell_type == "raw"
    ]:
        raise AuthoringError(wrong)
    return Lesson(relative, tuple(_convert_to_lesson_cell(*each) for each in numbered))


def _convert_to_lesson_cell(number: int, line: int, raw: Any) -> Cell:
    header = {key: value for key, value in raw.metadata.items() if key != "lines_to_next_cell"}
    plain = Role.TEXT if raw.cell_type == "markdown" else Role.CODE
    role = next((role for role in NAMED_ROLES if role.value in header), plain)
    source = raw.source
    if role is Role.QUESTION and raw.cell_type == "code":
        source = re.sub(r"^#(?: |$)", "", source, flags=re.MULTILINE)
    if role is Role.EXERCISE:
        source = BUG.sub("", source)
    if role in (Role.TEXT, Role.QUESTION):
        source = MARKER.sub(lambda match: f"### {match[1]} SOLUTION", source)
    tags = header.get("tags", [])
    return Cell(
        number=number,
        line=line,
        role=role,
        source=source.strip("\n"),
        name=str(header.get(role.value, "")),
        points=header.get("points"),
        tags=tuple(tags) if isinstance(tags, list) else (str(tags),),
        header=header,
    )
