"""Results for people who read a terminal: a table of many, a sheet of one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from exercise_kit.judge.result import ExerciseResult, LogKind, Result, legible, one_line

MARKS = {"pass": ("✓", "green"), "fail": ("✗", "red"), "undecided": ("?", "yellow")}
WITHOUT_COUNT = {
    LogKind.BROKEN_CHECK: "A hidden check broke {}",
    LogKind.REFUSED_CHECK: "A hidden check refuses the lesson's model answer {}",
    LogKind.GRADER_FAILED: "The grader failed in a hidden check {}",
}


def overview(results: Sequence[Result]) -> RenderableType:
    """A row for each submission: whose, the lesson, the score, and what there is to say; below it how many."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("student or file", "lesson", "score", "remarks"):
        table.add_column(heading, justify="right" if heading == "score" else "left", overflow="fold")
    shared = _shared_folder([result.path for result in results])
    for result in results:
        who = one_line(result.student or result.path[shared:])
        table.add_row(Text(who), Text(one_line(result.assignment or "")), Text(_score(result)), Text(_remarks(result)))
    graded = [result for result in results if result.status == "graded"]
    odd = sum(result.reason is not None for result in graded)
    told = f"; {odd} of them with something to look at, see the remarks" if odd else ""
    return Group(table, Text(f"{len(graded)} of {len(results)} graded{told}"))


def sheet(result: Result) -> RenderableType:
    """One submission: each exercise with its score, and each check that did not pass with what the student reads."""
    head = Text(f"{one_line(result.path)}  {_score(result)}", style="bold")
    lines: list[RenderableType] = [head]
    if remarks := _remarks(result):
        lines.append(Text(remarks))
    for exercise in result.exercises:
        lines += _exercise(exercise)
    return Group(*lines)


def broken_checks(results: Sequence[Result]) -> Iterator[str]:
    """For each hidden check that does not count somewhere: why, on how many submissions, and the first's details."""
    found: dict[tuple[str, str, LogKind], list[str]] = {}
    for entry in (entry for result in results for entry in result.log if entry.check and entry.kind in WITHOUT_COUNT):
        found.setdefault((entry.exercise, entry.check, entry.kind), []).append(legible(entry.text))
    for (exercise, check, kind), details in found.items():
        where = f"{len(details)} of {len(results)} submissions"
        what = WITHOUT_COUNT[kind].format(f"({exercise}, {check})")
        yield f"{what} on {where}, and does not count there:\n{details[0].rstrip()}"


def _shared_folder(paths: Sequence[str]) -> int:
    """How many characters the folder has that all paths begin with."""
    shared = os.path.commonprefix([path[: path.rfind(os.sep) + 1] for path in paths])  # noqa: RUF071  # cut below
    return shared.rfind(os.sep) + 1


def _exercise(exercise: ExerciseResult) -> Iterator[RenderableType]:
    named = f"  looks like: {exercise.misconception}" if exercise.misconception else ""
    yield Text(f"{exercise.name}  {exercise.score:g} of {exercise.max_score:g}{named}", style="bold")
    if exercise.problem:
        yield Padding(Text(legible(exercise.problem)), (0, 0, 0, 2))
    for check in exercise.checks:
        mark, colour = MARKS.get(check.verdict, ("?", "yellow"))
        yield Padding(Text(f"{mark} {legible(check.claim or check.name)}", style=colour), (0, 0, 0, 2))
        if check.message and check.verdict != "pass":
            yield Padding(Text(legible(check.message)), (0, 0, 0, 4))


def _score(result: Result) -> str:
    return f"{result.score:g} of {result.max_score:g}" if result.status == "graded" else result.status


def _remarks(result: Result) -> str:
    named = (f"{each.name}: {each.misconception}" for each in result.exercises if each.misconception)
    parts = [*(f"[{flag}]" for flag in result.flags), *([result.reason] if result.reason else ()), *named]
    return one_line("; ".join(parts))
