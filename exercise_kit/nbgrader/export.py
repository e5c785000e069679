"""`nbgrader export` with three columns more beside the scores: points not graded yet, the judge's flags and remarks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExportPlugin

from exercise_kit.files import write
from exercise_kit.nbgrader.gradebook import Fault, GradebookError, describe_address
from exercise_kit.nbgrader.scores import LessonScore, read_score
from exercise_kit.points import round_to_hundredths
from exercise_kit.quoting import escape_spreadsheet_cell, make_one_line

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"),
    *("late_submission_penalty", "score", "max_score", "not_graded_yet", "flags", "remarks"),
)


class GradesWithFlags(ExportPlugin):
    """nbgrader's own columns in their order, quoted where they have to be, then the flags and remarks."""

    def export(self, gradebook: Gradebook) -> None:
        """Write grades.csv, or what ``--to`` names; a file that was there stays whole until the new one is.

        Raises:
            GradebookError: it holds no lesson.
            OSError: the file cannot be written; the error names it.
        """
        target = Path(self.to or "grades.csv")
        if not gradebook.assignments:  # a gradebook that was lost would empty the last grades that there are
            raise GradebookError(Fault.EMPTY, describe_address(gradebook.engine.url))
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        waiting: dict[str, list[str]] = {}
        again: dict[str, list[str]] = {}
        for assignment in sorted(gradebook.assignments, key=lambda each: (str(each.duedate or ""), each.name)):
            for student in sorted(gradebook.students, key=_make_sort_key):
                if self._is_selected(self.assignment, assignment.name) and self._is_selected(self.student, student.id):
                    course = CourseDirectory(parent=self)
                    folder = Path(course.format_path(course.autograded_directory, student.id, assignment.name))
                    score = read_score(gradebook, assignment.name, student.id, folder / f"{assignment.name}.ipynb")
                    row = _make_student_columns(student) | {"duedate": assignment.duedate} | make_score_columns(score)
                    writer.writerow({name: escape_spreadsheet_cell(row.get(name)) for name in COLUMNS})
                    if any(each.score is None for each in score.cells):
                        waiting.setdefault(assignment.name, []).append(student.id)
                    if any(each.again for each in score.cells):
                        again.setdefault(assignment.name, []).append(student.id)
        self.log.info("Exporting grades to %s", target)
        write(target, text.getvalue().encode("utf-8", "backslashreplace"), 0o600)
        for lesson, students in waiting.items():
            self.log.warning("%s", describe_incomplete_points(lesson, students))
        for lesson, students in again.items():
            self.log.warning("%s: %s", lesson, describe_students_to_review(students))

    @staticmethod
    def _is_selected(names: list[Any], name: str) -> bool:
        return not names or name in map(str, names)


def _make_student_columns(student: Any) -> dict[str, Any]:
    return {"student_id": student.id} | {name: getattr(student, name) for name in ("last_name", "first_name", "email")}


def describe_incomplete_points(lesson: str, students: Sequence[str]) -> str:
    """A sentence on those whose points are not complete, which is said wherever points go out."""
    return make_one_line(
        f"{lesson}: not graded yet, and not zero, are answers of {', '.join(students)}: formgrader lists them under "
        "Manual Grading"
    )


def describe_students_to_review(students: Iterable[str]) -> str:
    """A clause on those who have points by hand for work that is other work now."""
    return make_one_line(
        f"points by hand for other work than there is now: {', '.join(students)}: look at it in formgrader under "
        "Manual Grading, and give other points or press Resolve"
    )


def make_score_columns(score: LessonScore) -> dict[str, Any]:
    """The columns that tell of the points of one student in one lesson."""
    points = {"max_score": score.worth, "score": score.score, "raw_score": score.automatic + score.by_hand}
    points |= {"late_submission_penalty": score.penalty, "not_graded_yet": score.waiting_worth}
    row: dict[str, Any] = {name: round_to_hundredths(value) for name, value in points.items()}
    row |= {"assignment": score.lesson, "timestamp": score.timestamp}
    if not score.handed_in:
        return row | {"remarks": "nothing handed in"}
    return row | {"flags": " ".join(score.notes.flags), "remarks": _write_remarks(score)}


def _write_remarks(score: LessonScore) -> str:
    """Return what is wrong with the points, if anything, and what the judge noticed."""
    notes, names = score.notes, [each.name for each in score.waiting]
    again = [each.name for each in score.cells if each.again]
    without = [name for name in names if name not in again]
    if not notes.finished:
        return f"NOT GRADED: its grading was interrupted; run: nbgrader autograde {score.lesson}"
    if not notes.graded and names:
        return f"NOT GRADED: {notes.reason}"
    looked_at = f"to be looked at again: {', '.join(again)}" if again else ""
    if notes.waiting and without:
        return "; ".join(filter(None, (f"PARTLY GRADED: {notes.reason}", looked_at)))
    waiting = f"not graded yet: {', '.join(without)}" if without else ""
    return "; ".join(filter(None, (waiting, looked_at, notes.reason)))


def _make_sort_key(student: Any) -> tuple[str, str, str]:
    """By name, in every database alike: they differ in where a name stands that is not there."""
    return student.last_name or "", student.first_name or "", student.id
