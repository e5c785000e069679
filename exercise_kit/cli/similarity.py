"""``vit-course similarity``: answers that are alike beyond the task, on a private page or as files."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import in_words, needs

PAGE = "similarity.html"


def similarity(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A class folder.")],
    lesson: Annotated[str | None, typer.Option(help="Compare the answers to this lesson alone.")] = None,
    out: Annotated[Path | None, typer.Option(help="The page's file; else similarity.html in the class folder.")] = None,
    export: Annotated[
        Path | None, typer.Option(help="Write no page, but files for JPlag, Dolos or compare50 to this new folder.")
    ] = None,
) -> None:
    """Show pairs of submissions that are alike beyond what the task forces: to ask about, never a score."""
    with needs("similarity"):
        from exercise_kit.report import similarity as engine
    console = Console(highlight=False, soft_wrap=True)
    with in_words(engine.SimilarityError):
        if export is None:
            target = out or directory / PAGE
            count = engine.write_page(directory, target, lesson)
            console.print(f"{count} {'pair' if count == 1 else 'pairs'} alike, for you alone: {target}", markup=False)
            return
        found = engine.texts_of(directory, lesson)
        count = engine.export(found, export)
    console.print(f"{count} students' answers are in {export}. For instance:", markup=False)
    for name in found:
        home = shlex.quote(str(export / name))
        for command in (
            f"java -jar jplag.jar -l python3 -bc {home}/basecode {home}/submissions",
            f"dolos run -l python --ignore {home}/basecode/basecode.py {home}/submissions/*.py",
            f"compare50 {home}/submissions/*.py -d {home}/basecode/*.py",
        ):
            console.print(f"  {command}", markup=False)
