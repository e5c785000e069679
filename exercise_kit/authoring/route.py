"""Which way leads through a course: what is its core, and what each exercise asks; one table, ``exercises/route.toml``.

A table for each lesson, with an entry for each thing to do: an exercise or a question by its name, anything else by
the words that the lesson's table shows::

    [00_numbers]
    core = true
    write = "`moving_average`, and a sum without a loop"
    learn = "what a window does to a series"
    moving_average = { minutes = 10, difficulty = 2, importance = 5 }
    why-two = { minutes = 5, difficulty = 1, importance = 3, skip = true }

A course without the file keeps the tables that its lessons have.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exercise_kit.authoring.lesson import AuthoringError, Lesson, Problem, Role
from exercise_kit.engine.course_named import read_package_name

FILE = Path("exercises") / "route.toml"  # in the course's package
MOST = 5  # of difficulty and importance


@dataclass(frozen=True)
class Task:
    """One thing to do.

    Attributes:
        minutes: that it takes, reading apart: an estimate.
        difficulty, importance: from 1 to 5.
        skip: whether it may be skipped.
    """

    minutes: int
    difficulty: int
    importance: int
    skip: bool = False


@dataclass(frozen=True)
class LessonRoute:
    """One lesson: whether it belongs to the core, its tasks by name in its order, what one writes and learns."""

    core: bool
    tasks: Mapping[str, Task] = field(default_factory=dict)
    write: str = ""
    learn: str = ""


def read_route(root: Path) -> Mapping[str, LessonRoute]:
    """The table of a course, by lesson; empty where it has none.

    Raises:
        AuthoringError: it cannot be read, or an entry is not what it has to be.
    """
    path = Path(read_package_name()) / FILE
    try:
        found = tomllib.loads((root / path).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AuthoringError([Problem(path, f"cannot be read: {error}")]) from None
    problems: list[Problem] = []
    routes = {}
    for lesson, entries in found.items():
        core, write, learn = (entries.pop(name, default) for name, default in _OF_LESSON.items())
        wrong = [name for name, entry in entries.items() if not _is_valid_task_entry(entry)]
        problems += [Problem(path, f"[{lesson}] {name}: {_FORM}") for name in wrong]
        tasks = {name: Task(**entry) for name, entry in entries.items() if name not in wrong}
        routes[lesson] = LessonRoute(core is True, tasks, str(write), str(learn))
    if problems:
        raise AuthoringError(problems)
    return routes


_FORM = (
    "write { minutes = 10, difficulty = 2, importance = 5 }: whole minutes, both others from 1 to 5; add skip = true "
    "where it may be skipped"
)


def _is_valid_task_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not {"minutes", "difficulty", "importance"} <= entry.keys() <= _FIELDS:
        return False
    numbers = [entry[name] for name in ("minutes", "difficulty", "importance")]
    whole = all(isinstance(each, int) and not isinstance(each, bool) for each in numbers)
    return whole and numbers[0] > 0 and all(1 <= each <= MOST for each in numbers[1:])


_OF_LESSON = {"core": False, "write": "", "learn": ""}
_FIELDS = {"minutes", "difficulty", "importance", "skip"}


def find_route_problems(lesson: Lesson, route: LessonRoute) -> list[Problem]:
    """Exercises and questions of a lesson that its table lacks."""
    asked = [cell for role in (Role.EXERCISE, Role.QUESTION) for cell in lesson.list_cells_of_role(role)]
    message = "has no entry in {}: how many minutes, how difficult, how important?"
    return [
        lesson.problem(f"{cell.name!r} {message.format(read_package_name() / FILE)}", cell)
        for cell in asked
        if cell.name not in route.tasks
    ]
