"""What waits for a person in nbgrader's gradebook, read without nbgrader and without touching the file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

_PATIENCE = 2.0  # seconds for another program's lock
_WAITING = """
SELECT assignment.name, base_cell.name, COUNT(*), SUM(grade.needs_manual_grade)
FROM grade
JOIN base_cell ON base_cell.id = grade.cell_id
JOIN submitted_notebook ON submitted_notebook.id = grade.notebook_id
JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
JOIN assignment ON assignment.id = submitted_assignment.assignment_id
GROUP BY assignment.name, base_cell.name
HAVING SUM(grade.needs_manual_grade) > 0 OR base_cell.name NOT LIKE 'check-%'
ORDER BY assignment.name, base_cell.name
"""
_STUDENTS = "SELECT id, first_name, last_name, email FROM student"


@dataclass(frozen=True)
class Question:
    """A question: of which ``lesson``, its ``name``, how many answers there are, and how many wait for a grade."""

    lesson: str
    name: str
    answers: int
    waiting: int


@dataclass(frozen=True)
class ByHand:
    """What the gradebook tells.

    Attributes: ``questions`` that a person grades, ``names`` (all that the gradebook knows of who a student is, to be
    kept off the page), and a ``problem`` (a sentence; None: it could be read).
    """

    questions: tuple[Question, ...] = ()
    names: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def waiting(self) -> int:
        """How many answers wait for a grade."""
        return sum(each.waiting for each in self.questions)


def read_gradebook(path: Path, lesson: str | None = None) -> ByHand | None:
    """What waits in a gradebook; None: there is no gradebook.

    Args:
        path: nbgrader's ``gradebook.db``.
        lesson: the only one; None: all.
    """
    if not path.exists():
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as book:
            waiting = book.execute(_WAITING).fetchall()
            names = [str(part) for row in book.execute(_STUDENTS) for part in row if part]
    except sqlite3.Error as error:
        return ByHand(problem=f"nbgrader's gradebook could not be read ({error}), so nobody can say what waits in it.")
    rows = [row for row in waiting if lesson in (None, row[0])]
    questions = tuple(Question(str(row[0]), str(row[1]), int(row[2]), int(row[3] or 0)) for row in rows)
    return ByHand(questions, tuple(names))
