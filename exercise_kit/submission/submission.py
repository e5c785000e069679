"""A submission as the judge takes it, and the files that lie beside it.

A result that is handed in as a file beside the notebook: found, and read as what a stranger has put there.

What was handed in, as the judge takes it: cells to run, the answer to every exercise, and what is odd about it.

A submission is made by :mod:`exercise_kit.submission.parse`. It crosses to other processes, so it holds only
text.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from exercise_kit.engine.course import MOST_BYTES, MOST_BYTES_BESIDE
from exercise_kit.reasons import Reason
from exercise_kit.submission.notebook_file import Unreadable, read_bytes


@dataclass(frozen=True)
class ResultFile:
    """A file that an exercise asks for.

    Attributes: ``name`` as the lesson has it, ``path`` where it was looked for, ``digest`` (of its bytes and of those
    of the JSON file beside it; empty where it cannot be read), ``problem`` (a clause on why it cannot be graded).
    """

    name: str
    path: str
    digest: str = ""
    problem: str | None = None


def find_result(folder: Path, name: str) -> ResultFile:
    """The file called ``name`` in ``folder``; links are not followed.

    Args:
        folder: of the notebook.
        name: a file's name, from the lesson as it was released.
    """
    result = ResultFile(name, str(folder / name))
    content, beside = contents(result)
    if isinstance(content, str):
        return ResultFile(name, result.path, problem=content)
    return ResultFile(name, result.path, _digest(content, beside))


def contents(result: ResultFile) -> tuple[bytes | str, bytes | None]:
    """The bytes of a result, and those of the JSON file beside it; a clause in the place of what cannot be read.

    A file that has changed since it was found is not read.
    """
    path = Path(result.path)
    if not os.path.lexists(path):
        return f"{result.name} does not lie beside the notebook", None
    try:
        content = read_bytes(path, MOST_BYTES)
    except Unreadable as error:
        return f"{result.name} cannot be graded: {error}", None
    beside = None
    with suppress(Unreadable):  # only a file that tells nothing of its model needs it
        beside = read_bytes(path.with_suffix(".json"), MOST_BYTES_BESIDE)
    if result.digest and _digest(content, beside) != result.digest:
        return f"{result.name} was changed while it was graded", None
    return content, beside


def _digest(content: bytes, beside: bytes | None) -> str:
    return hashlib.sha256(hashlib.sha256(content).digest() + (beside or b"")).hexdigest()


@dataclass(frozen=True)
class CellSource:
    """A code cell that runs for grading: its place among all cells of the notebook, from 0, and its source."""

    index: int
    source: str


@dataclass(frozen=True)
class Part:
    """Another exercise whose answer an answer calls, and the source of the model solution that can take its place."""

    exercise: str
    source: str


@dataclass(frozen=True)
class ExerciseAnswer:
    """The answer to one exercise.

    Attributes: ``name``, ``max_score`` (points in the released notebook; None where nobody has said, then the points
    of its hidden checks count), ``source`` (the cell that holds the answer; None: there is none), ``cell`` (its index;
    None as for ``source``), ``problem`` (a sentence on why it cannot be graded as it should be: missing, empty,
    answered twice; None otherwise) and its ``reason``, ``untouched`` (the answer is as it was released), ``file`` (that
    the exercise asks for in the place of an answer in a cell; None for all others) and ``parts`` (the other exercises'
    answers that it calls).
    """

    name: str
    max_score: float | None
    source: str | None = None
    cell: int | None = None
    problem: str | None = None
    reason: Reason | None = None
    untouched: bool = False
    file: ResultFile | None = None
    parts: tuple[Part, ...] = ()


class NoSubmission(Exception):
    """A file beside the submissions that is none: a helper module, say."""


@dataclass(frozen=True)
class Submission:
    """A notebook or a ``.py`` file, read.

    Attributes: ``path`` as it was given (with surrogate escapes where its name is no UTF-8), ``student``,
    ``assignment`` (the folder's name in a submitted tree, else the lesson), ``lesson`` (None in a rejected one whose
    lesson is not known), ``digest`` (of the file's bytes, 64 hex digits; empty where it could not be read), ``cells``
    (code cells to run, in order), ``exercises`` in the lesson's order, ``reason`` (sentences; None: nothing to say),
    ``flags`` (found by reading: "test-cell-edited" ...) and ``rejected`` (it cannot be graded, for that reason).
    """

    path: str
    student: str | None
    assignment: str | None
    lesson: str | None
    digest: str
    cells: tuple[CellSource, ...] = ()
    exercises: tuple[ExerciseAnswer, ...] = ()
    reason: str | None = None
    flags: tuple[str, ...] = ()
    rejected: bool = False

    @property
    def content(self) -> str:
        """A digest of all that was handed in: of the notebook and of the files beside it that count."""
        return "/".join([self.digest, *(each.file.digest for each in self.exercises if each.file)])

    @property
    def files(self) -> tuple[str, ...]:
        """The digests of the files beside the notebook that count and can be read."""
        return tuple(each.file.digest for each in self.exercises if each.file and each.file.digest)

    @property
    def max_score(self) -> float:
        """The points of all its exercises that are known."""
        return sum(each.max_score or 0.0 for each in self.exercises)

    def only(self, names: Collection[str]) -> Submission:
        """The same submission with these exercises alone; its cells all stay."""
        return replace(self, exercises=tuple(each for each in self.exercises if each.name in names))
