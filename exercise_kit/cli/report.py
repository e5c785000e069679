"""``vit-course report``: one page about a class."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import in_words, needs
from exercise_kit.judge.result import legible


def report(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A class folder, or a JSON file that vit-course grade wrote.")
    ],
    out: Annotated[Path | None, typer.Option(help="The page's file; else report.html in the class folder.")] = None,
    lesson: Annotated[str | None, typer.Option(help="Report on this lesson alone.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="Write a second page to this file, which tells who is who: keep it private.")
    ] = None,
) -> None:
    """Write one page about a class: scores, mistakes, what to teach next; without names, to be shown in a lecture."""
    with needs("grading"):
        from exercise_kit.report.collect import ReportError
        from exercise_kit.report.page import write_report
    with in_words(ReportError), needs("grading"):
        written = write_report(directory, out, lesson, names)
    # a path is never broken over two lines: it is there to be copied
    console = Console(highlight=False, soft_wrap=True)
    for sentence in written.sentences:
        console.print(sentence, markup=False)
    book = written.work.manual_grading
    if book and book.problem:
        console.print(legible(f"What waits to be graded by hand is not known: {book.problem}."), markup=False)
        console.print("Names that it alone knows may stand in the answers shown: look before you show the page.")
    console.print(f"\nThe report: {written.page}", markup=False)
    if written.names:
        console.print(f"Who is who, for you alone: {written.names}", markup=False)
