"""Who is in the class: a CSV file of ids, names and addresses, written into nbgrader's gradebook.

nbgrader's own `db student import` reads such a file too, but fails on a byte-order mark and on semicolons, which
spreadsheets write in half of the world, and does not report a line without an id.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook
from sqlalchemy.exc import SQLAlchemyError

from exercise_kit.nbgrader.gradebook import (
    GradebookError,
    has_released_lesson,
    make_engine,
    read_gradebook_address,
    refuse_new_gradebook,
)
from exercise_kit.quoting import make_one_line
from exercise_kit.submission.notebook_file import Unreadable, read_bytes
from exercise_kit.submission.released import SUBMITTED

MOST_BYTES = 4 << 20
NAMES = {
    "id": ("id", "student_id", "student", "username"),
    "first_name": ("first_name", "first", "given_name", "firstname"),
    "last_name": ("last_name", "last", "surname", "family_name", "lastname"),
    "email": ("email", "e-mail", "mail"),
}
ADVICE = "write its first line as id,first,last,email"


class RosterError(Exception):
    """A roster cannot be read or kept; the message says why, and what to do."""


@dataclass(frozen=True)
class Student:
    """A line of a roster; ``id`` is the name of the student's folder below ``submitted/``."""

    id: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None


@dataclass(frozen=True)
class Roster:
    """The students of a file, and a sentence for each line that was left out."""

    students: tuple[Student, ...]
    problems: tuple[str, ...] = ()


def read_roster(path: Path) -> Roster:
    """The students that a CSV file names: by commas, semicolons or tabs; UTF-8 with or without a mark, or UTF-16.

    Raises:
        RosterError: it cannot be read, is no such text, or has no column of ids.
    """
    try:
        text = _decode_roster(read_bytes(path, MOST_BYTES))
    except Unreadable as error:
        raise RosterError(f"{path} is no roster: {error}") from None
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        rows = list(csv.reader(text.splitlines(), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise RosterError(f"{path} is no roster: {error}; {ADVICE}") from None
    columns = _find_columns(rows[0])
    if "id" not in columns:
        found = ", ".join(map(make_one_line, rows[0]))
        raise RosterError(f"{path} has no column 'id' in its first line, which is: {found}; {ADVICE}")
    students: dict[str, Student] = {}
    problems = list(_add_students(students, rows, columns))
    return Roster(tuple(students.values()), tuple(problems))


def _decode_roster(content: bytes) -> str:
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        raise Unreadable("it is not UTF-8; save it as 'CSV UTF-8'") from None


def _find_columns(header: list[str]) -> dict[str, int]:
    names = [name.strip().lower().replace(" ", "_") for name in header]
    found = {ours: [names.index(name) for name in theirs if name in names] for ours, theirs in NAMES.items()}
    return {ours: places[0] for ours, places in found.items() if places}


NO_ADDRESS = "formgrader's buttons cannot name a student with one of \\ # ? % in the id; choose another id"


def breaks_formgrader_addresses(student_id: str) -> bool:
    """Say whether formgrader's pages, which put an id into an address as it is, ask about somebody else."""
    return not set("\\#?%").isdisjoint(student_id)


def _add_students(students: dict[str, Student], rows: list[list[str]], columns: dict[str, int]) -> Iterator[str]:
    """Put students in by their ids, and yield what is wrong with a line."""
    for number, row in enumerate(rows[1:], 2):
        if not any(part.strip() for part in row):
            continue
        if len(row) != len(rows[0]):
            yield f"line {number} has {len(row)} columns, where the first line names {len(rows[0])}: left out"
            continue
        values = {name: row[place].strip() or None for name, place in columns.items()}
        who = values["id"]
        if not who:
            yield f"line {number} has no id: left out"
        elif who in (".", "..") or "/" in who or "\0" in who or not who.isprintable():
            yield f"line {number}: {make_one_line(who)!r} cannot be the name of a folder: left out"
        elif breaks_formgrader_addresses(who):
            yield f"line {number}: '{who}': {NO_ADDRESS}: left out"
        elif who in students:
            yield f"line {number}: {who} was there before, and the first line counts"
        else:
            students[who] = Student(who, *(values.get(name) for name in ("first_name", "last_name", "email")))


@dataclass(frozen=True)
class Imported:
    """The result of an import, as students' ids.

    Attributes:
        new: in the gradebook.
        changed: there.
        unchanged: there.
        unlisted: in the class, but not in the roster.
        without_work: with no file below ``submitted/``.
    """

    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    unlisted: tuple[str, ...]
    without_work: tuple[str, ...]


def import_roster(roster: Roster, class_dir: Path) -> Imported:
    """Write students' names into a class's gradebook; nobody is removed, and a field that is empty changes nothing.

    Raises:
        RosterError: the gradebook cannot be used.
    """
    ids: dict[str, list[str]] = {"new": [], "changed": [], "unchanged": []}
    try:
        address = read_gradebook_address(class_dir)
        make_engine(address)  # or it tells what is the matter with the address
        with refuse_new_gradebook(has_released_lesson(class_dir)), Gradebook(address) as gradebook:
            known = {each.id: each for each in gradebook.students}
            for student in roster.students:
                fields = {name: value for name, value in vars(student).items() if name != "id" and value}
                before = known.get(student.id)
                same = before is not None and all(getattr(before, name) == value for name, value in fields.items())
                ids["new" if before is None else "unchanged" if same else "changed"].append(student.id)
                gradebook.update_or_create_student(student.id, **fields)
    except GradebookError as error:
        raise RosterError(str(error)) from None
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        raise RosterError(f"the gradebook of {class_dir} cannot be used: {cause}") from None
    folders = class_dir / SUBMITTED
    handed_in = {each.name for each in folders.iterdir() if each.is_dir()} if folders.is_dir() else set()
    listed = {student.id for student in roster.students}
    unlisted = sorted((known.keys() | {name for name in handed_in if not name.startswith(".")}) - listed)
    without = sorted(listed - handed_in)
    counted = {kind: tuple(names) for kind, names in ids.items()}
    return Imported(**counted, unlisted=tuple(unlisted), without_work=tuple(without))
