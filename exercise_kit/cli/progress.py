"""``vit-course progress``: what a student has done, read from the file beside their notebooks."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.errors import in_words, stop
from exercise_kit.files import write

CONFIG, BOOK = "nbgrader_config.py", "gradebook.db"


def progress(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Where your notebooks are; else this folder, or your Drive.")
    ] = None,
    card: Annotated[Path | None, typer.Option(help="Draw a card with your numbers to this file: .png or .svg.")] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what is kept of your progress.")] = False,
) -> None:
    """Show what is done, what it earned, and what comes next; kept in a file of yours, for nobody else."""
    from exercise_kit.progress.log import FILE, LogError
    from exercise_kit.progress.log import delete as delete_log

    console = Console(highlight=False)
    folder = _folder(directory, FILE)
    if delete:
        with in_words():
            gone = delete_log(folder / FILE)
        names = ", ".join(str(each) for each in gone)
        console.print(
            f"Deleted: {names}" if gone else f"No progress is kept in {folder}.", markup=False, soft_wrap=True
        )
        return
    if not (folder / FILE).exists():
        raise stop(f"No progress is kept in {folder}: the lessons' checks write {FILE} there while you work.")
    from exercise_kit.progress.show import show
    from exercise_kit.progress.summary import progress_in

    with in_words(LogError):
        found = progress_in(folder)
    show(found, console)
    if card:
        if card.suffix.lower() not in (".png", ".svg"):
            raise stop(f"{card}: a card is a .png or an .svg")
        picture = io.BytesIO()
        found.card().savefig(picture, format=card.suffix[1:].lower(), dpi=150)
        with in_words():
            write(card, picture.getvalue())
        console.print(f"Drawn: {card}", markup=False, soft_wrap=True)


def _folder(directory: Path | None, file: str) -> Path:
    """Where the log is: in the folder, beside it where each lesson has its own, or among the notebooks of a clone."""
    if directory is None:
        from exercise_kit.engine.own_parts import own_folder

        directory = own_folder()
    if not directory.exists():
        raise stop(f"there is no folder {directory}")
    if not directory.is_dir():
        raise stop(f"{directory} is not a folder; name the one that your notebooks are in")
    if (directory / CONFIG).exists() or (directory / BOOK).exists():
        raise stop(f"{directory} is a class folder, with many students; for them: vit-course report {directory}")
    around = (directory, directory / "notebooks", directory.resolve().parent)
    return next((each for each in around if (each / file).is_file()), directory)
