"""Canvas: the CSV file that *Grades > Import* reads.

Its first columns are those of Canvas's own export, in that order: Student, ID, SIS User ID, SIS Login ID, Section; then
a column for each assignment, and below the headings a line "Points Possible". Canvas looks a student up by ID, then SIS
User ID, SIS Login ID, and the name, and asks what to do with an assignment that it does not know:
https://community.canvaslms.com/t5/Instructor-Guide/How-do-I-import-grades-in-the-Gradebook/ta-p/807
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

from exercise_kit.exports.grades import ExportError, Grades, make_student_row
from exercise_kit.judge.result import Result
from exercise_kit.nbgrader.roster import Student
from exercise_kit.points import format_points
from exercise_kit.quoting import escape_spreadsheet_cell

COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "    Points Possible"
Columns = tuple[str, str, str, str, str]


def is_gradebook(path: Path) -> bool:
    """Say whether a file is a gradebook that Canvas exported, which is the best roster that there is."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        first = file.readline()
    return "SIS Login ID" in first and "Section" in first


def read_gradebook(path: Path) -> dict[str, Columns]:
    """The first columns of every student in Canvas's own export, under each name that a folder may have.

    Raises:
        ExportError: its columns are others, or it is no text.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        lines = list(csv.DictReader(io.StringIO(text), delimiter=max(",;", key=text.partition("\n")[0].count)))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ExportError(f"{path} is no gradebook of Canvas: {error}") from None
    missing = [name for name in COLUMNS if name not in (lines[0] if lines else ())]
    if missing:
        raise ExportError(f"{path} is no gradebook of Canvas: it has no column {missing[0]!r}, or no line below it")
    found: dict[str, Columns] = {}
    for name in ("SIS Login ID", "SIS User ID", "ID"):
        for line in lines:
            student, own, user, login, section = ((line[each] or "").strip() for each in COLUMNS)
            if line[name] and not student.startswith("Points Possible"):
                found.setdefault(line[name].strip(), (student, own, user, login, section))
    return found


def make_student_columns(student: Student) -> Columns:
    """A roster's student: the id is taken for the login."""
    name = ", ".join(filter(None, (student.last_name, student.first_name)))
    return name or student.id, "", "", student.id, ""


def write(grades: Grades, people: Mapping[str, Columns] | None) -> str:
    """The CSV file's text; a cell without a grade is empty.

    Args:
        grades: of the class.
        people: the first columns of each student; None: there is no roster, and the id is taken for the login.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*COLUMNS, *map(escape_spreadsheet_cell, grades.lessons)])
    writer.writerow([POINTS_POSSIBLE, "", "", "", "", *map(format_points, grades.maximum.values())])
    for student in grades.students:
        columns = people[student] if people is not None else make_student_columns(Student(student))
        writer.writerow([*map(escape_spreadsheet_cell, columns), *make_student_row(grades, student, _make_score_cell)])
    return text.getvalue()


def _make_score_cell(result: Result | None) -> tuple[str]:
    return ("" if result is None else format_points(result.score),)
