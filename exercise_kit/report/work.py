"""A class's work as the report sees it: every file that was handed in, and what is known of it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from exercise_kit.judge.result import Result
from exercise_kit.report.by_hand import ByHand
from exercise_kit.submission.needed import parse
from exercise_kit.submission.released import ReleasedLesson


class ReportError(Exception):
    """There is nothing to report on; the message says why, and what to do."""


class State(StrEnum):
    """What became of a file that was handed in."""

    GRADED = "graded"
    OLDER = "graded with older checks"
    PARTLY = "graded in part"
    WAITING = "not graded yet"
    REJECTED = "rejected"
    ERROR = "the grader failed"


@dataclass(frozen=True)
class HandedInWork:
    """A file.

    Attributes: ``path``, ``student`` and ``lesson`` where they are known, ``state``, the ``result`` that is kept of it
    (None: there is none), the ``reason`` of a rejection, and ``files`` (the digests of what counts beside a notebook).
    """

    path: Path
    student: str | None
    lesson: str | None
    state: State
    result: Result | None = None
    reason: str | None = None
    files: tuple[str, ...] = ()

    @property
    def who(self) -> str:
        """The student; a file of nobody counts as a student of its own."""
        return self.student or str(self.path)


@dataclass(frozen=True)
class LessonPlan:
    """A lesson: its name, its exercises' points by name, in order, and how it was ``released``, where that is known."""

    name: str
    points: Mapping[str, float] = field(default_factory=dict)
    released: ReleasedLesson | None = None

    def builds_on(self) -> dict[str, frozenset[str]]:
        """For each exercise, the others of the lesson whose objects its model answer uses."""
        if self.released is None:
            return {}
        exercises = self.released.exercises
        return {
            exercise.name: frozenset(
                other.name
                for other in exercises
                if other.name != exercise.name and not _names(self.released, exercise.name).isdisjoint(other.objects)
            )
            for exercise in exercises
        }


def _names(lesson: ReleasedLesson, exercise: str) -> frozenset[str]:
    """The names that a model answer reads."""
    tree = parse(lesson.model_answers.get(exercise, ""))
    nodes = ast.walk(tree) if tree else ()
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))


@dataclass(frozen=True)
class ClassWork:
    """All that a report is made of.

    Attributes: ``name`` of the class (its folder's), ``handed_in``, ``lessons`` with work in them, ``by_hand``
    (nbgrader's gradebook; None: there is none), and the ``folder`` (None: the results came in
    a JSON file).
    """

    name: str
    handed_in: tuple[HandedInWork, ...]
    lessons: tuple[LessonPlan, ...]
    by_hand: ByHand | None = None
    folder: Path | None = None

    def in_state(self, *states: State) -> list[HandedInWork]:
        """The files of these states."""
        return [each for each in self.handed_in if each.state in states]
