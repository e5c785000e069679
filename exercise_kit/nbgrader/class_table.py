"""The table at the end of `nbgrader autograde`: a row for each student, and below it how many of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from types import MappingProxyType
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from exercise_kit.nbgrader.export import describe_students_to_review
from exercise_kit.quoting import make_one_line
from exercise_kit.report.terminal import advise_on_waiting_exercises, describe_waiting_counts

COLUMNS = 120
NOT_GRADED = "not graded"


class Row(NamedTuple):
    """A student's row of the table; ``waits_for`` as that of a result."""

    student: str
    points: str
    remarks: str
    waits_for: Mapping[str, str] = MappingProxyType({})


def render_class_table(rows: Iterable[Row]) -> str:
    """A table of students, their points and what there is to say, and below it how many of each kind."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    rows = list(rows)
    waiting = [row.waits_for for row in rows if row.waits_for]
    counts = {"graded": -len(waiting), "not graded": 0, "missing": 0}
    for heading in ("student", "points", "remarks"):
        table.add_column(heading, justify="right" if heading == "points" else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(make_one_line(part)) for part in row[:3]))
        counts[row.points.lower() if row.points.lower() in counts else "graded"] += 1
    out = StringIO()
    Console(file=out, width=COLUMNS).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    counted = [*(f"{n} {what}" for what, n in counts.items()), *describe_waiting_counts(waiting)]
    return "\n".join(
        ["the class in one table", *lines, make_one_line(", ".join(counted)), *advise_on_waiting_exercises(waiting)]
    )


def describe_manual_grading(written: Iterable[str], again: Iterable[str]) -> str:
    """Say how many wait for points by hand, and who has some that are to be looked at again."""
    by_hand, names = len(list(written)), sorted(again)
    said = ""
    if by_hand:
        verb = "waits" if by_hand == 1 else "wait"
        said += f"; {by_hand} {verb} for points by hand: formgrader lists them under Manual Grading"
    return f"{said}; {len(names)} with {describe_students_to_review(names)}" if names else said
