"""The outline of a course, read off its lessons: titles, points, and the minutes that their exercises are set at.

It goes with the package, so that a student's own progress can be told where the lessons' sources are not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

from exercise_kit.authoring.lesson import Lesson, Role

FILE = Path("exercises") / "outline.json"


def outline_of(lessons: Iterable[Lesson]) -> bytes:
    """The outline as a JSON file."""
    facts = {lesson.name: _facts(lesson) for lesson in lessons}
    return f"{json.dumps(facts, indent=1, ensure_ascii=False)}\n".encode()


def _facts(lesson: Lesson) -> dict[str, object]:
    first = lesson.cells[0].source
    title = first.partition("\n")[0].lstrip("# ")
    return {
        "title": re.sub(r"^\d\d\s*·\s*", "", title),
        "minutes": _minutes(first),
        "points": {cell.name: cell.points for cell in lesson.of_role(Role.CHECK)},
        "questions": {cell.name: cell.points for cell in lesson.of_role(Role.QUESTION)},
    }


def _minutes(text: str) -> int:
    """The sum of the column "minutes" of a lesson's table; of "1 to 10" the last number."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.split("\n") if line.startswith("|")]
    if not rows or "minutes" not in rows[0]:
        return 0
    column = rows[0].index("minutes")
    numbers = (re.findall(r"\d+", row[column]) for row in rows[1:] if len(row) > column)
    return sum(int(found[-1]) for found in numbers if found)
