"""Moodle: the CSV file that *Grades > Import > CSV file* reads.

Its columns are free: Moodle asks which one identifies the user (an email address or an ID number, which must match
exactly) and to which grade item each of the others belongs. Import the grade and the feedback of an item together:
feedback alone empties the grade. A user whom Moodle does not know stops the whole import. A line with an empty
identifier gives its grades to the student of the line above, so such a line is never written.
https://docs.moodle.org/en/Grade_import
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from exercise_kit.exports.grades import Grades, make_student_row
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.roster import Student
from exercise_kit.points import format_points
from exercise_kit.quoting import escape_spreadsheet_cell

ID_NUMBER, EMAIL = "ID number", "Email address"
NO_GRADE = "-"  # as Moodle's own export writes it; the import leaves such a grade empty


def drop_students_without_email(grades: Grades, people: Mapping[str, Student] | None) -> Grades:
    """The same less the students who have no email address, where the others have one."""
    if people is not None and _has_email(grades, people):
        for student in grades.students:
            if not people[student].email:
                grades = grades.without(student, "has no email address in the roster, and Moodle needs one: left out")
    return grades


def write(grades: Grades, people: Mapping[str, Student] | None) -> str:
    """The CSV file's text: who, then a grade and a feedback for each lesson.

    Args:
        grades: as :func:`identified` left them.
        people: the roster's students; None: there is no roster, and the id is taken for the ID number.
    """
    by_email = people is not None and _has_email(grades, people)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    who = ("First name", "Last name", ID_NUMBER, *([EMAIL] if by_email else ())) if people is not None else (ID_NUMBER,)
    writer.writerow(
        [*who, *(escape_spreadsheet_cell(f"{each}{end}") for each in grades.lessons for end in ("", " (feedback)"))]
    )
    for student in grades.students:
        person = people[student] if people is not None else Student(student)
        columns = (person.first_name, person.last_name, person.id, person.email) if people is not None else (person.id,)
        writer.writerow(
            [*map(escape_spreadsheet_cell, columns[: len(who)]), *make_student_row(grades, student, _make_grade_cells)]
        )
    return text.getvalue()


def _has_email(grades: Grades, people: Mapping[str, Student]) -> bool:
    return any(people[student].email for student in grades.students)


def _make_grade_cells(result: Result | None) -> tuple[str, str]:
    if result is None:
        return NO_GRADE, ""
    parts = []
    for each in result.exercises:
        looks = f" (looks like: {each.misconception})" if each.misconception else ""
        comment = f": {each.comment}" if each.comment else ""
        parts.append(f"{each.name} {format_points(each.score)} of {format_points(each.max_score)}{looks}{comment}")
    if result.penalty:
        parts.append(f"late: -{format_points(result.penalty)}")
    return format_points(result.score), escape_spreadsheet_cell("; ".join(parts))
