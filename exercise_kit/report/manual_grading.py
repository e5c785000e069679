"""What nbgrader's gradebook says of points that a person gives, read without nbgrader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exercise_kit.conventions import make_check_grade_id
from exercise_kit.quoting import make_one_line

_GRADES = """
SELECT assignment.name, base_cell.name, submitted_assignment.student_id,
       grade.auto_score, grade.manual_score, grade.needs_manual_grade, COALESCE(grade_cells.max_score, 0)
FROM grade
JOIN base_cell ON base_cell.id = grade.cell_id
LEFT JOIN grade_cells ON grade_cells.id = grade.cell_id
JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
JOIN assignment ON assignment.id = submitted_assignment.assignment_id
ORDER BY assignment.name, base_cell.name
"""
_STUDENTS = "SELECT id, first_name, last_name, email FROM student"


@dataclass(frozen=True)
class Question:
    """A question that a person grades, or looks at.

    Attributes:
        lesson: that it is in.
        name: of its cell.
        answers: how many there are.
        waiting: how many of them have no points yet.
        again: how many have points, and are to be looked at all the same.
    """

    lesson: str
    name: str
    answers: int
    waiting: int
    again: int = 0


@dataclass(frozen=True)
class ByHand:
    """The points that a person gave one student in one lesson.

    Attributes:
        given: all of them, out of ``worth``.
        code: the points of the lesson's code, where a person gave some of these; None: they are the judge's alone.
    """

    given: float = 0.0
    worth: float = 0.0
    code: float | None = None
    code_worth: float = 0.0


@dataclass(frozen=True)
class ManualGrading:
    """What the gradebook says.

    Attributes:
        questions: that a person grades.
        names: every name and address of a student in the gradebook; the page must not show them.
        problem: what is wrong with the gradebook, for the instructor; None: it could be read.
        students: their ids.
        by_hand: student and lesson → the points that a person gave.
    """

    questions: tuple[Question, ...] = ()
    names: tuple[str, ...] = ()
    problem: str | None = None
    students: tuple[str, ...] = ()
    by_hand: Mapping[tuple[str | None, str | None], ByHand] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """How many answers wait for a grade."""
        return sum(each.waiting for each in self.questions)

    @property
    def again(self) -> int:
        """How many answers have a grade that is to be looked at."""
        return sum(each.again for each in self.questions)


def read_gradebook(class_dir: Path, lesson: str | None = None) -> ManualGrading | None:
    """Return what a class's gradebook says; None: there is no gradebook, or nothing in it yet.

    Args:
        class_dir: its folder.
        lesson: the only one; None: all.
    """
    # SQLAlchemy takes a while
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError

    from exercise_kit.nbgrader.gradebook import (
        GradebookError,
        find_gradebook_file,
        make_engine,
        read_gradebook_address,
        refuse_new_gradebook,
    )

    try:
        address = read_gradebook_address(class_dir)
        file = find_gradebook_file(address)
        if file is not None and not file.exists():
            return None
        with refuse_new_gradebook(), make_engine(address).connect() as book:
            if not book.dialect.has_table(book, "grade"):
                return None
            grades = [row for row in book.execute(text(_GRADES)).all() if lesson in (None, row[0])]
            students = book.execute(text(_STUDENTS)).all()
    except GradebookError as error:
        return ManualGrading(problem=str(error))
    except SQLAlchemyError as error:
        return ManualGrading(problem=make_one_line(str(error.__cause__ or error)))
    names = tuple(str(part) for row in students for part in row if part)
    return ManualGrading(
        _list_questions(grades), names, None, tuple(str(row[0]) for row in students), _sum_points_by_hand(grades)
    )


def _is_check_cell(cell_name: str) -> bool:
    return cell_name.startswith(make_check_grade_id(""))


def _list_questions(grades: Iterable[Any]) -> tuple[Question, ...]:
    """The written questions, and of the code what formgrader lists."""
    counts: dict[tuple[str, str], list[int]] = {}
    for lesson, cell, _, automatic, manual, listed, _ in grades:
        count = counts.setdefault((str(lesson), str(cell)), [0, 0, 0])
        without = automatic is None and manual is None
        count[0] += 1
        count[1] += bool(listed) and without
        count[2] += bool(listed) and not without
    kept = {place: count for place, count in counts.items() if count[1] or count[2] or not _is_check_cell(place[1])}
    return tuple(Question(*place, *count) for place, count in kept.items())


def _sum_points_by_hand(grades: Iterable[Any]) -> dict[tuple[str | None, str | None], ByHand]:
    cells: dict[tuple[str | None, str | None], list[Any]] = {}
    for row in grades:
        cells.setdefault((str(row[2]), str(row[0])), []).append(row)
    found = {}
    for place, rows in cells.items():
        manual = [row for row in rows if row[4] is not None]
        code = [row for row in rows if _is_check_cell(row[1])]
        if manual:
            counts = [row[3] if row[4] is None else row[4] for row in code]
            found[place] = ByHand(
                round(sum(row[4] for row in manual), 4),
                sum(row[6] for row in manual),
                round(sum(points or 0.0 for points in counts), 4)
                if any(_is_check_cell(row[1]) for row in manual)
                else None,
                sum(row[6] for row in code),
            )
    return found
