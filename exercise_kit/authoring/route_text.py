"""What the builder writes of the route: the table at the start of a lesson, a line under each task's heading, hours.

A source says nothing of it: minutes stand in the route, points in headers of cells. The table comes where a source has
its mark, or at the end of the first cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from exercise_kit.authoring.lesson import Cell, Lesson, Role
from exercise_kit.authoring.minutes import Minutes, has_task
from exercise_kit.authoring.route import MOST, LessonRoute, Task

TABLE = "<!-- table: tasks -->"
_HEADING = re.compile(r"^(?:### (Exercise|Bug hunt|Question): |###? )(.*)$", re.MULTILINE)
_NAME = re.compile(r"`(\w+)`")


def add_route_to_lesson(lesson: Lesson, route: LessonRoute, minutes: Minutes) -> Lesson:
    """The lesson with its table, and with a line of facts under the heading of each exercise and question."""
    first, *others = lesson.cells
    table = _make_task_table(lesson, route, minutes)
    source = first.source if TABLE in first.source else f"{first.source}\n\n{TABLE}"
    cells = [replace(cell, source=_add_task_facts(cell, lesson, route)) for cell in others]
    return replace(lesson, cells=(replace(first, source=source.replace(TABLE, table)), *cells))


def make_lessons_table(routes: Mapping[str, LessonRoute]) -> str:
    """The table of what one writes and learns in each lesson."""
    rows = (f"| `{name}` | {each.write} | {each.learn} |" for name, each in routes.items())
    return "\n".join(["| lesson | you write | you learn |", "|---|---|---|", *rows])


def make_hours_table(minutes: Mapping[str, Minutes]) -> str:
    """The table of hours: those of each lesson, and of both routes."""
    rows = ["| lesson | minutes in all | on the core route |", "|---|---|---|"]
    rows += [f"| `{name}` | {each.total} | {each.core or '–'} |" for name, each in minutes.items()]
    everything, core = (
        sum(of) / 60 for of in zip(*((each.total, each.core) for each in minutes.values()), strict=True)
    )
    return "\n".join([*rows, f"| together | {everything:.1f} hours | {core:.1f} hours |"])


def _make_task_table(lesson: Lesson, route: LessonRoute, minutes: Minutes) -> str:
    rows = [
        f"| to do | minutes | points | difficulty, 1 to {MOST} | importance, 1 to {MOST} |",
        "|---|---|---|---|---|",
    ]
    for name, task in route.tasks.items():
        if has_task(lesson, name):
            label = _make_task_label(lesson, name) + (" (may be skipped)" if task.skip else "")
            points = _format_task_points(lesson, name)
            rows.append(f"| {label} | {task.minutes} | {points} | {task.difficulty} | {task.importance} |")
    return "\n".join([*rows, "", _write_minutes_summary(route, minutes)])


def _write_minutes_summary(route: LessonRoute, minutes: Minutes) -> str:
    whole = (
        f"In all about **{minutes.total} minutes**: {minutes.reading} to read words and code, {minutes.tasks} for the "
        "tasks. It is an estimate, without the time that a computer takes for experiments."
    )
    if not route.core:
        return f"{whole} This lesson is not part of the core."
    if minutes.core == minutes.total:
        return f"{whole} All of it is part of the core."
    return f"{whole} The core, without what may be skipped: about {minutes.core} minutes."


def _make_task_label(lesson: Lesson, name: str) -> str:
    question = next((cell for cell in lesson.list_cells_of_role(Role.QUESTION) if cell.name == name), None)
    if question:
        headings = (heading[2] for heading in _HEADING.finditer(question.source) if heading[1])
        return f"written question: {next(headings, name)}"
    return name if " " in name else f"bug hunt: `{name}`" if name.startswith("fix_") else f"`{name}`"


def _format_task_points(lesson: Lesson, name: str) -> str:
    cells = (
        cell for role in (Role.CHECK, Role.QUESTION) for cell in lesson.list_cells_of_role(role) if cell.name == name
    )
    return next((f"{cell.points:g}" for cell in cells), "–")


def _add_task_facts(cell: Cell, lesson: Lesson, route: LessonRoute) -> str:
    if not cell.is_markdown:
        return cell.source

    def add_facts_to_heading(match: re.Match[str]) -> str:
        kind, words = match.groups()
        called = _NAME.search(words)
        name = cell.name or (called[1] if called else "") if kind else f"{words[:1].lower()}{words[1:]}"
        if name not in route.tasks:
            return match[0]
        return f"{match[0]}\n\n*{_describe_task(route.tasks[name], _format_task_points(lesson, name))}*"

    return _HEADING.sub(add_facts_to_heading, cell.source)


def _describe_task(task: Task, points: str) -> str:
    worth = {"–": "no points", "1": "1 point"}.get(points, f"{points} points")
    skip = " · may be skipped" if task.skip else ""
    minutes = "minute" if task.minutes == 1 else "minutes"
    scale = f"difficulty {task.difficulty} of {MOST} · importance {task.importance} of {MOST}"
    return f"{task.minutes} {minutes} · {worth} · {scale}{skip}"
