"""What was handed in, as the judge takes it: cells to run, the answer to every exercise, and what is odd about it.

A submission is made by :mod:`exercise_kit.submission.parse`. It crosses to other processes, so it holds only text.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection
from dataclasses import dataclass, replace

from exercise_kit.reasons import FlagNote, Reason
from exercise_kit.submission.result_file import ResultFile


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

    Attributes:
        name: of the exercise.
        max_score: points in the released notebook; None where it names none, so that the hidden checks' points count.
        source: of the cell that holds the answer; None: there is none.
        cell: the index of that cell; None as for ``source``.
        problem: a sentence on why it cannot be graded as it should be (missing, empty, answered twice), else None.
        reason, kind: of the problem, as in a result.
        untouched: whether the answer is as it was released.
        file: the file that the exercise asks for instead of a cell; None for all other exercises.
        parts: other exercises' answers that it calls.
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
    kind: str = ""


class NoSubmission(Exception):
    """A file beside the submissions that is none: a helper module, say."""


@dataclass(frozen=True)
class Submission:
    """A notebook or a ``.py`` file, read.

    Attributes:
        path: as it was given, with surrogate escapes where its name is not UTF-8.
        student: who handed it in.
        assignment: the folder's name in a submitted tree, else the lesson.
        lesson: None in a rejected submission of an unknown lesson.
        digest: of the file's bytes, 64 hex digits; empty where it could not be read.
        cells: code cells to run, in order.
        exercises: answers, in the lesson's order.
        reason: sentences; None: nothing to say.
        flags: found by reading: "test-cell-edited" ...
        notes: on those flags that one exercise raised.
        rejected: whether it cannot be graded, for that reason.
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
    notes: tuple[FlagNote, ...] = ()
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

    def derive_key(self, secret: bytes) -> bytes:
        """Return what its checks draw from; it tells nothing of the grader's secret, or of other submissions' keys."""
        return hmac.new(secret, self.digest.encode(), hashlib.sha256).digest()

    def keep_exercises(self, names: Collection[str]) -> Submission:
        """The same submission with these exercises alone; its cells all stay."""
        return replace(self, exercises=tuple(each for each in self.exercises if each.name in names))
