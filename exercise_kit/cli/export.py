"""``vit-course export``: grades as the files that Canvas, Moodle and Gradescope read."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import in_words, needs
from exercise_kit.files import write
from exercise_kit.judge.result import one_line

if TYPE_CHECKING:
    from exercise_kit.judge.result import Result
    from exercise_kit.nbgrader.roster import Student

_errors = Console(stderr=True, highlight=False, soft_wrap=True)
_PRIVATE = 0o600  # who may read grades: their owner


class System(StrEnum):
    """Where grades go."""

    CANVAS = "canvas"
    MOODLE = "moodle"
    GRADESCOPE = "gradescope"


def export(
    results: Annotated[Path, typer.Argument(metavar="RESULTS.json", help="What vit-course grade --json wrote.")],
    to: Annotated[System, typer.Option(help="For which system.")],
    roster: Annotated[
        Path | None,
        typer.Option(help="Who is in the class: id,first,last,email; for Canvas its own exported gradebook is better."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; else it goes to stdout.")] = None,
    visibility: Annotated[
        str, typer.Option(help="Gradescope: when students see it: visible, after_due_date, after_published, hidden.")
    ] = "visible",
) -> None:
    """Write grades as a file that Canvas, Moodle or Gradescope reads."""
    with needs("grading"):
        from exercise_kit.exports import gradescope
        from exercise_kit.exports.grades import ExportError, read
        from exercise_kit.nbgrader.roster import RosterError
    if visibility not in list(gradescope.Visibility):
        known = ", ".join(gradescope.Visibility)
        raise typer.BadParameter(f"{visibility!r} is none of: {known}", param_hint="--visibility")
    problems: tuple[str, ...] = ()
    with in_words(ExportError, RosterError):
        found = read(results)
        if to is System.GRADESCOPE:
            text = gradescope.write(found, gradescope.Visibility(visibility))
        else:
            text, problems = _table(found, to, roster)
        if out is None:
            typer.echo(text, nl=False)
        else:
            write(out, text.encode("utf-8", "backslashreplace"), None if to is System.GRADESCOPE else _PRIVATE)
    flagged = [one_line(f"{each.path}: {' '.join(each.flags)}") for each in found if each.flags]
    for sentence in (*problems, *(f"For you to look at, and not exported: {each}" for each in flagged)):
        _errors.print(sentence, markup=False)
    if problems:
        raise typer.Exit(1)


def _table(found: list[Result], to: System, roster: Path | None) -> tuple[str, tuple[str, ...]]:
    """The CSV file's text, and a sentence for each grade that is not in it."""
    from exercise_kit.exports import canvas, moodle
    from exercise_kit.exports.grades import collect

    if roster is not None and to is System.CANVAS and canvas.is_gradebook(roster):
        columns = canvas.read_gradebook(roster)
        grades = collect(found, columns)
        return canvas.write(grades, columns), grades.problems
    people, remarks = _people(roster)
    grades = collect(found, people)
    if to is System.CANVAS:
        known = None if people is None else {name: canvas.as_columns(each) for name, each in people.items()}
        text = canvas.write(grades, known)
    else:
        grades = moodle.identified(grades, people)
        text = moodle.write(grades, people)
    return text, (*remarks, *grades.problems)


def _people(roster: Path | None) -> tuple[Mapping[str, Student] | None, tuple[str, ...]]:
    from exercise_kit.nbgrader.roster import read_roster

    if roster is None:
        return None, ()
    read = read_roster(roster)
    return {each.id: each for each in read.students}, tuple(f"{roster.name}, {each}." for each in read.problems)
