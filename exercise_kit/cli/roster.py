"""``vit-course roster``: students' names for nbgrader's pages, from a CSV file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import in_words, needs, stop
from exercise_kit.judge.result import one_line
from exercise_kit.submission.released import CONFIG, current_class, is_class

_MOST_NAMES = 10


def roster(
    file: Annotated[Path, typer.Argument(help="A CSV file whose first line is id,first,last,email.")],
    class_dir: Annotated[
        Path | None,
        typer.Option("--class", metavar="DIR", help="Your class folder; else the one that the command runs in."),
    ] = None,
) -> None:
    """Tell nbgrader who is in the class: ids (the folders in submitted/), names, addresses."""
    with needs("grading"):
        from exercise_kit.nbgrader.roster import RosterError, import_roster, read_roster
    folder = class_dir or current_class()
    if folder is None or not is_class(folder):
        raise stop(f"{folder or 'This'} is no class folder: it has no {CONFIG}; name yours with --class DIR")
    with in_words(RosterError):
        read = read_roster(file)
        done = import_roster(read, folder.resolve())
    console = Console(highlight=False, soft_wrap=True)
    counts = f"{len(done.new)} new, {len(done.changed)} changed, {len(done.unchanged)} as before"
    console.print(f"In the gradebook from {file.name}: {counts}.", markup=False)
    for sentence in (
        *(f"{file.name}, {problem}." for problem in read.problems),
        *_listed("in the class, but not in the file", done.unlisted),
        *_listed("in the file, but without work in submitted/", done.without_work),
    ):
        console.print(one_line(sentence), markup=False)
    if read.problems:
        raise typer.Exit(1)


def _listed(what: str, names: tuple[str, ...]) -> Iterable[str]:
    if names:
        more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
        yield f"{len(names)} {what}: {', '.join(names[:_MOST_NAMES])}{more}."
