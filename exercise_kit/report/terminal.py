"""Results in a terminal: a table of many submissions, a sheet of one, what waits, which checks are broken."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from exercise_kit.engine.rendering import render_entries
from exercise_kit.engine.verdict import Verdict
from exercise_kit.judge.graded_report import make_graded_report
from exercise_kit.judge.result import LogKind, Result
from exercise_kit.quoting import make_legible, make_one_line
from exercise_kit.submission.flags import explain_flags

COLORS = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNDECIDED: "yellow"}
WITHOUT_COUNT = {
    LogKind.BROKEN_CHECK: "A hidden check is broken {}",
    LogKind.GRADER_FAILED: "The grader failed in a hidden check {}",
}


def render_overview(results: Sequence[Result]) -> RenderableType:
    """A row for each submission: whose, the lesson, the score, and what there is to say; below it how many."""
    table = Table(box=None, pad_edge=False, show_edge=False)
    for heading in ("student or file", "lesson", "score", "remarks"):
        table.add_column(heading, justify="right" if heading == "score" else "left", overflow="fold")
    shared = _measure_shared_folder_length([result.path for result in results])
    for result in results:
        who = make_one_line(result.student or result.path[shared:])
        table.add_row(
            Text(who),
            Text(make_one_line(result.assignment or "")),
            Text(format_score(result)),
            Text(describe_remarks(result)),
        )
    graded = [result for result in results if result.status == "graded" and not result.waiting]
    odd = sum(result.reason is not None for result in graded)
    remark = f"; {odd} of them with something to look at, see the remarks" if odd else ""
    waiting = [each.waits_for for each in results]
    summary = ", ".join([f"{len(graded)} of {len(results)} graded", *describe_waiting_counts(waiting)])
    return Group(table, Text(make_one_line(f"{summary}{remark}")), *map(Text, advise_on_waiting_exercises(waiting)))


def render_submission(result: Result, width: int = 100) -> RenderableType:
    """One submission: the report on each exercise as its student reads it, wrapped at ``width`` columns."""
    lines = [Text(f"{make_one_line(result.path)}  {format_score(result)}", style="bold")]
    if said := describe_remarks(result):
        lines.append(Text(said))
    for exercise in result.exercises:
        first, *others = render_entries(make_graded_report(exercise), width)
        lines.append(Text(first[0], style="bold"))
        lines += [Text(text, style=COLORS[verdict] if verdict else "") for text, verdict in others]
    return Group(*lines, *map(Text, advise_on_waiting_exercises([result.waits_for])))


def describe_waiting_counts(waiting: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """For each place that submissions wait for how many do: "2 wait for hidden/test_one_hot.py:14".

    Args:
        waiting: of each submission, as :attr:`Result.waits_for`.
    """
    counts = Counter(place for each in waiting for place in dict.fromkeys(starmap(_describe_wait_cause, each.items())))
    for place, count in counts.items():
        yield f"{count} {'waits' if count == 1 else 'wait'} for {place}"


def _describe_wait_cause(exercise: str, cause: str) -> str:
    """The file and line; where no file is at fault, the exercise."""
    return cause.partition(": ")[0] or f"the checks of {exercise}"


def advise_on_waiting_exercises(waiting: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Say what to do about exercises that wait for a file to be mended."""
    if any(cause for each in waiting for cause in each.values()):
        yield "Repair what they wait for, and run the same command again: it grades only what waits."


def describe_broken_checks(results: Sequence[Result]) -> Iterator[str]:
    """For each hidden check that does not count somewhere: why, on how many submissions, and the first's details."""
    found: dict[tuple[str, str, LogKind], list[str]] = {}
    for entry in (entry for result in results for entry in result.log if entry.check and entry.kind in WITHOUT_COUNT):
        found.setdefault((entry.exercise, entry.check, entry.kind), []).append(make_legible(entry.text))
    for (exercise, check, kind), details in found.items():
        where = f"{len(details)} of {len(results)} submissions"
        what = WITHOUT_COUNT[kind].format(f"({exercise}, {check})")
        yield f"{what} on {where}, and does not count there:\n{details[0].rstrip()}"


def _measure_shared_folder_length(paths: Sequence[str]) -> int:
    """Count the characters of the folder that all paths begin with."""
    shared = os.path.commonprefix([path[: path.rfind(os.sep) + 1] for path in paths])  # noqa: RUF071  # cut below
    return shared.rfind(os.sep) + 1


def format_score(result: Result) -> str:
    """The points of a submission, else what became of it."""
    return result.points if result.status == "graded" else result.status


def describe_remarks(result: Result) -> str:
    """Say in one line what there is to say of a submission: flags, the reason, mistakes with a name."""
    named = (f"{each.name}: {each.misconception}" for each in result.exercises if each.misconception)
    parts = [
        *(f"[{flag}]" for flag in result.flags),
        *explain_flags(result.notes),
        *([result.reason] if result.reason else ()),
        *named,
    ]
    return make_one_line("; ".join(parts))
