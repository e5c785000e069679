"""``vit-course export``: grades as the files that other systems read, and the autograder that one of them runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import exit_on_errors, needs
from exercise_kit.files import write
from exercise_kit.quoting import make_one_line
from exercise_kit.submission.released import CLONE

if TYPE_CHECKING:
    from exercise_kit.exports.gradebook import Table
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
    CSV = "csv"
    XLSX = "xlsx"


_TABLES = (System.CSV, System.XLSX)


def export(
    to: Annotated[System, typer.Option(help="For which system.")],
    results: Annotated[
        Path | None,
        typer.Argument(
            metavar="CLASS|RESULTS.json",
            help="A class folder, of which the gradebook counts, with points given by hand and late penalties; or "
            "what vit-course grade --json wrote.",
        ),
    ] = None,
    roster: Annotated[
        Path | None,
        typer.Option(help="Who is in the class: id,first,last,email; for Canvas its own exported gradebook is better."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file; else it goes to stdout.")] = None,
    lesson: Annotated[
        list[str] | None, typer.Option(metavar="LESSON", help="Of a class: this lesson alone; may be repeated.")
    ] = None,
    student: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Of a class: this student alone; may be repeated.")
    ] = None,
    total: Annotated[bool, typer.Option("--total", help="Of a class: one column, the sum of all lessons.")] = False,
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
    """Write grades as a file that Canvas, Moodle, Gradescope, Classroom 50 or a spreadsheet reads.

    Or Gradescope's autograder.
    """
    with needs("grading"):
        from exercise_kit.exports.gradescope import Visibility
    if visibility not in list(Visibility):
        known = ", ".join(Visibility)
        raise typer.BadParameter(f"{visibility!r} is none of: {known}", param_hint="--visibility")
    if autograder is not None:
        if to is not System.GRADESCOPE:
            raise typer.BadParameter("it is Gradescope's: give --to gradescope", param_hint="--autograder")
        _write_autograder(autograder, root, Visibility(visibility))
    elif results is None:
        words = "name a class folder, or the file that vit-course grade --json wrote"
        raise typer.BadParameter(words, param_hint="CLASS|RESULTS.json")
    else:
        if not results.is_dir() and (lesson or student or total or to in _TABLES):
            words = "a file of results has no gradebook; for --lesson, --student, --total, --to csv and --to xlsx name "
            raise typer.BadParameter(f"{words}a class folder", param_hint="CLASS|RESULTS.json")
        if to is System.XLSX and out is None:
            raise typer.BadParameter("a spreadsheet needs a file, as --out grades.xlsx", param_hint="--out")
        source = _Source(results, tuple(lesson or ()), tuple(student or ()), total)
        _write_grades(source, to, roster, out, Visibility(visibility))


def _write_autograder(target: Path, root: Path, visibility: Visibility) -> None:
    with needs("grading"):
        from exercise_kit.authoring.release import ReleaseError
        from exercise_kit.exports.autograder import build_autograder
        from exercise_kit.exports.grades import ExportError
    with exit_on_errors(ExportError, ReleaseError):
        write(target, build_autograder(root, visibility), _PRIVATE)  # it holds the answers and the hidden checks
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"Gradescope's autograder: {target}. It holds the answers and the hidden checks.", markup=False)
    console.print(
        "In Gradescope: Configure Autograder > Zip file upload; then Test Autograder with a notebook of yours."
    )


@dataclass(frozen=True)
class _Source:
    """Where grades come from: a class folder's gradebook, or a file of results; and of a gradebook which of them."""

    path: Path
    lessons: tuple[str, ...] = ()
    students: tuple[str, ...] = ()
    in_total: bool = False


def _write_grades(
    source: _Source, system: System, roster: Path | None, out: Path | None, visibility: Visibility
) -> None:
    with needs("grading"):
        from exercise_kit.exports import classroom50, gradescope
        from exercise_kit.exports.gradebook import render_csv, render_xlsx
        from exercise_kit.exports.grades import ExportError
        from exercise_kit.nbgrader.gradebook import GradebookError
        from exercise_kit.nbgrader.roster import RosterError

    problems: tuple[str, ...] = ()
    with exit_on_errors(ExportError, RosterError, GradebookError):
        found, people, table, remarks = _read_results(source)
        if system in _TABLES:
            with needs("grading"):
                content = render_csv(table) if system is System.CSV else render_xlsx(table)
            problems = _describe_incomplete_grades(found)
        elif system is System.GRADESCOPE:
            content = gradescope.write(found, visibility).encode()
        elif system is System.CLASSROOM50:
            content = classroom50.write(found, os.environ).encode()
        else:
            text, problems = _render_grades_csv(found, system, roster, people)
            content = text.encode("utf-8", "backslashreplace")
        if out is None:
            typer.echo(content, nl=False)
        else:
            write(out, content, None if system in (System.GRADESCOPE, System.CLASSROOM50) else _PRIVATE)
    flagged = [make_one_line(f"{each.path}: {' '.join(each.flags)}") for each in found if each.flags]
    for sentence in (*problems, *remarks, *(f"For you to look at, and not exported: {each}" for each in flagged)):
        _errors.print(sentence, markup=False)
    if problems:
        raise typer.Exit(1)


def _read_results(source: _Source) -> tuple[list[Result], Mapping[str, Student] | None, Table, tuple[str, ...]]:
    """The results; of a gradebook its names too, its table as it is, and what is to be looked at again."""
    from exercise_kit.exports.grades import read

    if not source.path.is_dir():
        return read(source.path), None, [], ()
    from exercise_kit.exports.gradebook import make_grades_table, read_class_grades

    grades = read_class_grades(source.path.resolve(), source.lessons, source.students)
    named = any(each.first_name or each.last_name or each.email for each in grades.people.values())
    found = grades.totals if source.in_total else grades.results
    return found, grades.people if named else None, make_grades_table(grades, source.in_total), tuple(grades.remarks)


def _describe_incomplete_grades(results: list[Result]) -> tuple[str, ...]:
    """A sentence for each grade of which a part is missing, so that its line has no score."""
    from exercise_kit.exports.grades import describe_missing_grade

    said = ((each.path, describe_missing_grade(each)) for each in results)
    return tuple(make_one_line(f"{path}: {problem}") for path, problem in said if problem)


def _render_grades_csv(
    results: list[Result], system: System, roster: Path | None, known_people: Mapping[str, Student] | None
) -> tuple[str, tuple[str, ...]]:
    """The CSV file's text, and a sentence for each grade that is not in it; without a roster the gradebook's names."""
    from exercise_kit.exports import canvas, moodle
    from exercise_kit.exports.grades import collect_grades

    if roster is not None and system is System.CANVAS and canvas.is_gradebook(roster):
        listed = canvas.read_gradebook(roster)
        grades = collect_grades(results, listed)
        return canvas.write(grades, listed), grades.problems
    people, remarks = _read_students_of_roster(roster) if roster is not None else (known_people, ())
    grades = collect_grades(results, people)
    if system is System.CANVAS:
        columns = None if people is None else {name: canvas.make_student_columns(each) for name, each in people.items()}
        text = canvas.write(grades, columns)
    else:
        grades = moodle.drop_students_without_email(grades, people)
        text = moodle.write(grades, people)
    return text, (*remarks, *grades.problems)


def _read_students_of_roster(roster: Path) -> tuple[Mapping[str, Student], tuple[str, ...]]:
    from exercise_kit.nbgrader.roster import read_roster

    read = read_roster(roster)
    return {each.id: each for each in read.students}, tuple(f"{roster.name}, {each}." for each in read.problems)
