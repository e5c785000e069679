"""The points of a class as its gradebook has them: the judge's, a person's, what lateness costs, and what is missing.

A cell to which neither the judge nor a person gave points has none, which is not the same as zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import (
    Assignment,
    BaseCell,
    Grade,
    Gradebook,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.nbgrader.grader_notes import Noted, read_notes


@dataclass(frozen=True)
class CellScore:
    """The points of one graded cell, out of ``worth``; ``score`` is None where nobody gave any.

    Attributes: the cell's ``name``, whether a person gave the points (``by_hand``), whether formgrader lists it for one
    (``listed``), and the ``comment`` that a person wrote on the answer.
    """

    name: str
    score: float | None
    worth: float
    by_hand: bool = False
    listed: bool = False
    comment: str = ""

    @property
    def again(self) -> bool:
        """Whether a person gave the points, and has to look at them again: the work or its checks are others now."""
        return self.by_hand and self.listed


@dataclass(frozen=True)
class LessonScore:
    """The points of one student in one lesson.

    Attributes:
        student, lesson: by their names.
        handed_in: whether the gradebook has anything of them.
        cells: in the lesson's order.
        penalty: points that lateness costs.
        worth: the lesson's points.
        timestamp: when it was handed in, as the gradebook has it.
        notes: of the autograded page.
    """

    student: str
    lesson: str
    handed_in: bool = False
    cells: tuple[CellScore, ...] = ()
    penalty: float = 0.0
    worth: float = 0.0
    timestamp: Any = None
    notes: Noted = field(default_factory=Noted)

    @property
    def waiting(self) -> tuple[CellScore, ...]:
        """The cells that have no points yet, or only points that a person has to look at again."""
        return tuple(each for each in self.cells if each.score is None or each.again)

    @property
    def automatic(self) -> float:
        """The judge's points that count."""
        return _sum_points(each.score for each in self.cells if not each.by_hand)

    @property
    def by_hand(self) -> float:
        """A person's points."""
        return _sum_points(each.score for each in self.cells if each.by_hand)

    @property
    def score(self) -> float:
        """All points so far, less the penalty."""
        return max(0.0, round(self.automatic + self.by_hand - self.penalty, 4))

    @property
    def waiting_worth(self) -> float:
        """What the cells that wait are worth."""
        return _sum_points(each.worth for each in self.waiting)


def _sum_points(points: Iterable[float | None]) -> float:
    return round(sum((each or 0.0 for each in points), 0.0), 4)


def read_score(gradebook: Gradebook, lesson: str, student: str, page: Path) -> LessonScore:
    """A student's points in a lesson.

    Args:
        gradebook: of the class.
        lesson: its name, which is in the gradebook.
        student: by the id.
        page: the autograded notebook.
    """
    worth = float(gradebook.find_assignment(lesson).max_score)
    try:
        submission = gradebook.find_submission(lesson, student)
    except MissingEntry:
        return LessonScore(student, lesson, worth=worth)
    cells = tuple(cell for notebook in submission.notebooks for cell in _list_cell_scores(notebook))
    penalty = float(submission.late_submission_penalty or 0.0)
    return LessonScore(student, lesson, True, cells, penalty, worth, submission.timestamp, read_notes(page))


def _list_cell_scores(notebook: Any) -> Iterator[CellScore]:
    places = {name: place for place, name in enumerate(each.name for each in notebook.notebook.source_cells)}
    comments = {each.name: each.manual_comment or "" for each in notebook.comments}
    for grade in sorted(notebook.grades, key=lambda each: places.get(each.name, len(places))):
        has_points = grade.auto_score is not None or grade.manual_score is not None
        score = round(float(grade.score), 4) if has_points else None
        by_hand, listed = grade.manual_score is not None, bool(grade.needs_manual_grade)
        answer = grade.name.removeprefix(make_check_grade_id(""))  # a comment stands at the answer, points at its check
        comment = comments.get(answer, "")
        yield CellScore(grade.name, score, float(grade.max_score), by_hand, listed, comment)


def find_waiting_students(gradebook: Gradebook, lesson: str) -> Mapping[str, tuple[str, ...]]:
    """The students of a lesson some of whose cells have no points, with the names of these cells."""
    return _find_students_by_conditions(gradebook, lesson, Grade.auto_score.is_(None), Grade.manual_score.is_(None))


def find_students_to_review(gradebook: Gradebook, lesson: str) -> Mapping[str, tuple[str, ...]]:
    """The students of a lesson some of whose points by hand are to be looked at again, with the names of the cells."""
    return _find_students_by_conditions(
        gradebook, lesson, Grade.manual_score.is_not(None), Grade.needs_manual_grade.is_(True)
    )


def find_students_with_points(gradebook: Gradebook, lesson: str) -> frozenset[str]:
    """The students of a lesson who have points, of the judge's or of a person's."""
    has_points = Grade.auto_score.is_not(None) | Grade.manual_score.is_not(None)
    return frozenset(_find_students_by_conditions(gradebook, lesson, has_points))


def _find_students_by_conditions(gradebook: Gradebook, lesson: str, *conditions: Any) -> Mapping[str, tuple[str, ...]]:
    rows = (
        gradebook.db.query(SubmittedAssignment.student_id, BaseCell.name)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .filter(Assignment.name == lesson, *conditions)
    )
    found: dict[str, tuple[str, ...]] = {}
    for student, cell in sorted(rows.all()):
        found[student] = (*found.get(student, ()), cell)
    return found
