"""How long a lesson takes, by an estimate: words to read, code to read, and the tasks' own minutes.

What is folded (hints, the setup), answers and rubrics are not counted: a task's own minutes include them. Neither is
the time that a computer takes for an experiment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from exercise_kit.authoring.lesson import Cell, Lesson, Role
from exercise_kit.authoring.lint import split_solution_regions
from exercise_kit.authoring.route import LessonRoute

# characters, not lines: breaking a line in two makes nothing longer to read
WORDS_A_MINUTE, CODE_CHARACTERS_A_MINUTE = 180, 500
_FOLDED = re.compile(r"<details>.*?</details>", re.DOTALL)
_PICTURE = re.compile(r"!\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^)]*\)", re.DOTALL)
_TABLE = re.compile(r"^\|.*$", re.MULTILINE)
_SECTION = re.compile(r"^## ", re.MULTILINE)
_WORD = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class Minutes:
    """The minutes of a lesson.

    Attributes:
        reading, core_reading: words and code; the second without sections whose tasks may all be skipped.
        tasks, core_tasks: exercises, questions and the like; the second without what may be skipped.
    """

    reading: int = 0
    core_reading: int = 0
    tasks: int = 0
    core_tasks: int = 0

    @property
    def total(self) -> int:
        """Of the whole lesson."""
        return self.reading + self.tasks

    @property
    def core(self) -> int:
        """Of the lesson without what may be skipped."""
        return self.core_reading + self.core_tasks


def estimate_minutes(lesson: Lesson, route: LessonRoute) -> Minutes:
    """The estimate for a lesson; of one outside the core, the core's share is 0."""
    sections = list(_split_into_sections(lesson))
    kept = [cells for cells in sections if not _is_section_skippable(cells, route)]
    tasks = [task for name, task in route.tasks.items() if has_task(lesson, name)]
    return Minutes(
        round(sum(map(_estimate_reading_minutes, sections))),
        round(sum(map(_estimate_reading_minutes, kept))) if route.core else 0,
        sum(each.minutes for each in tasks),
        sum(each.minutes for each in tasks if not each.skip) if route.core else 0,
    )


def count_visible_words(source: str) -> int:
    """The words of a Markdown cell that are neither folded nor in a table, a picture's description or an answer."""
    text = "\n".join(split_solution_regions(source).outside)
    for pattern in (_FOLDED, _PICTURE, _TABLE):
        text = pattern.sub(" ", text)
    return sum(bool(_WORD.search(each)) for each in text.split())


def has_task(lesson: Lesson, name: str) -> bool:
    """Say whether a lesson has a task; a class may have left an exercise or a question out."""
    named = {
        cell.name for role in (Role.EXERCISE, Role.CHECK, Role.QUESTION) for cell in lesson.list_cells_of_role(role)
    }
    return name in named or " " in name


def _split_into_sections(lesson: Lesson) -> Iterator[list[Cell]]:
    """The cells of each section, by its heading ("## ")."""
    cells: list[Cell] = []
    for cell in lesson.cells:
        if cell.is_markdown and _SECTION.search(cell.source) and cells:
            yield cells
            cells = []
        cells.append(cell)
    yield cells


def _is_section_skippable(cells: Iterable[Cell], route: LessonRoute) -> bool:
    asked = [cell.name for cell in cells if cell.role in (Role.EXERCISE, Role.QUESTION)]
    return bool(asked) and all(name in route.tasks and route.tasks[name].skip for name in asked)


def _estimate_reading_minutes(cells: Iterable[Cell]) -> float:
    """Minutes."""
    found = 0.0
    for cell in cells:
        if cell.is_markdown:
            found += count_visible_words(cell.source) / WORDS_A_MINUTE
        elif cell.role in (Role.CODE, Role.EXERCISE):
            code = "".join("\n".join(split_solution_regions(cell.source).outside).split())
            found += len(code) / CODE_CHARACTERS_A_MINUTE
    return found
