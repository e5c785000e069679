"""`nbgrader export` with two columns more: the judge's flags and what it noticed, beside the gradebook's scores."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import ExportPlugin

from exercise_kit.files import write
from exercise_kit.nbgrader.gradebook import Fault, GradebookError, shown
from exercise_kit.nbgrader.grader_notes import noted
from exercise_kit.quoting import harmless_cell

COLUMNS = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email", "raw_score"),
    *("late_submission_penalty", "score", "max_score", "flags", "remarks"),
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
            raise GradebookError(Fault.EMPTY, shown(gradebook.engine.url))
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for assignment in sorted(gradebook.assignments, key=lambda each: (str(each.duedate or ""), each.name)):
            for student in sorted(gradebook.students, key=_place):
                if self._is_wanted(self.assignment, assignment.name) and self._is_wanted(self.student, student.id):
                    row = self._row(gradebook, assignment, student)
                    writer.writerow({name: harmless_cell(row.get(name)) for name in COLUMNS})
        self.log.info("Exporting grades to %s", target)
        try:
            write(target, text.getvalue().encode("utf-8", "backslashreplace"), 0o600)
        except OSError as error:  # the name of a draft says nothing to anybody
            raise OSError(error.errno, error.strerror, str(target.absolute())) from None

    @staticmethod
    def _is_wanted(names: list[Any], name: str) -> bool:
        return not names or name in map(str, names)

    def _row(self, gradebook: Gradebook, assignment: Any, student: Any) -> dict[str, Any]:
        row = {name: getattr(student, name) for name in ("last_name", "first_name", "email")}
        row |= {"assignment": assignment.name, "duedate": assignment.duedate, "student_id": student.id}
        row |= {"max_score": assignment.max_score, "raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0}
        try:
            submission = gradebook.find_submission(assignment.name, student.id)
        except MissingEntry:
            return row | {"remarks": "nothing handed in"}
        penalty = submission.late_submission_penalty or 0.0
        row |= {"timestamp": submission.timestamp, "raw_score": submission.score, "late_submission_penalty": penalty}
        course = CourseDirectory(parent=self)
        folder = Path(course.format_path(course.autograded_directory, student.id, assignment.name))
        notes = noted(folder / f"{assignment.name}.ipynb")
        state = ("PARTLY GRADED: " if notes.waiting else "") if notes.graded else "NOT GRADED: "
        score = max(0.0, submission.score - penalty)
        return row | {"score": score, "flags": " ".join(notes.flags), "remarks": state + notes.reason}


def _place(student: Any) -> tuple[str, str, str]:
    """By name, in every database alike: they differ in where a name stands that is not there."""
    return student.last_name or "", student.first_name or "", student.id
