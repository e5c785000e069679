"""``vit-course export``: grades as the files that other systems read, and the autograder that one of them runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import exit_on, needs
from exercise_kit.files import write
from exercise_kit.quoting import one_line
from exercise_kit.submission.released import CLONE

if TYPE_CHECKING:
    from exercise_kit.exports.gradescope import Visibility
    from exercise_kit.judge.result import Result
    from exercise_kit.nbgrader.roster import Student

_errors = Console(stderr=True, highlight=False, soft_wrap=True)
# where the lessons are, when this is an editable install of a clone
_PRIVATE = 0o600  # who may read grades: their owner


class System(StrEnum):
    """Where grades go."""

    CANVAS = "canvas"
    MOODLE = "moodle"
    GRADESCOPE = "gradescope"
    CLASSROOM50 = "classroom50"


def export(
    to: Annotated[System, typer.Option(help="For which system.")],
    results: Annotated[
        Path | None, typer.Argument(metavar="RESULTS.json", help="What vit-course grade --json wrote.")
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option(help="Who is in the class: id,first,last,email; for Canvas its own exported gradebook is better."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; else it goes to stdout.")] = None,
    visibility: Annotated[
        str, typer.Option(help="Gradescope: when students see it: visible, after_due_date, after_published, hidden.")
    ] = "visible",
    autograder: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.zip", help="Gradescope: write the autograder to upload there; without RESULTS.json."
        ),
    ] = None,
    root: Annotated[
        Path, typer.Option(help="With --autograder: the clone of the course that is packed.", resolve_path=True)
    ] = CLONE,
) -> None:
    """Write grades as a file that Canvas, Moodle, Gradescope or Classroom 50 reads; or Gradescope's autograder."""
    with needs("grading"):
        from exercise_kit.exports.gradescope import Visibility
    if visibility not in list(Visibility):
        known = ", ".join(Visibility)
        raise typer.BadParameter(f"{visibility!r} is none of: {known}", param_hint="--visibility")
    if autograder is not None:
        if to is not System.GRADESCOPE:
            raise typer.BadParameter("it is Gradescope's: give --to gradescope", param_hint="--autograder")
        _pack(autograder, root, Visibility(visibility))
    elif results is None:
        raise typer.BadParameter("name the file that vit-course grade --json wrote", param_hint="RESULTS.json")
    else:
        _write_grades(results, to, roster, out, Visibility(visibility))


def _pack(target: Path, root: Path, visibility: Visibility) -> None:
    with needs("grading"):
        from exercise_kit.authoring.release import ReleaseError
        from exercise_kit.exports.autograder import autograder
        from exercise_kit.exports.grades import ExportError
    with exit_on(ExportError, ReleaseError):
        write(target, autograder(root, visibility), _PRIVATE)  # it holds the answers and the hidden checks
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Gradescope's autograder: {target}. It holds the answers and the hidden checks.", markup=False)
    console.print(
        "In Gradescope: Configure Autograder > Zip file upload; then Test Autograder with a notebook of yours."
    )


def _write_grades(results: Path, to: System, roster: Path | None, out: Path | None, visibility: Visibility) -> None:
    from exercise_kit.exports import classroom50, gradescope
    from exercise_kit.exports.grades import ExportError, read
    from exercise_kit.nbgrader.roster import RosterError

    problems: tuple[str, ...] = ()
    with exit_on(ExportError, RosterError):
        found = read(results)
        if to is System.GRADESCOPE:
            text = gradescope.write(found, visibility)
        elif to is System.CLASSROOM50:
            text = classroom50.write(found, os.environ)
        else:
            text, problems = _table(found, to, roster)
        if out is None:
            typer.echo(text, nl=False)
        else:
            public = to in (System.GRADESCOPE, System.CLASSROOM50)
            write(out, text.encode("utf-8", "backslashreplace"), None if public else _PRIVATE)
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
