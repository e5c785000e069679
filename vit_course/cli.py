"""``vit-course``: the kit's commands, and those that train and look into models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.commands import CLONE, Lessons, add_commands, run
from exercise_kit.refusals import in_words, needs
from vit_course.training_commands import evaluate, recipes, train

app = typer.Typer(
    help="A hands-on course on the Vision Transformer, with checks that name the mistake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_commands(app)
for command in (train, evaluate, recipes):
    app.command()(command)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for what the demo writes; one that an earlier demo made is replaced.")
    ] = Path("demo"),
    root: Lessons = CLONE,
) -> None:
    """The main job in two minutes: make a class, grade it with nbgrader, train a small ViT, look into it."""
    with needs("grading"):
        from exercise_kit.authoring.lesson import AuthoringError
        from exercise_kit.nbgrader.class_folder import ClassFolderError
        from exercise_kit.nbgrader.rehearsal import RehearsalError
        from vit_course.demo import TourError, run_tour
    with in_words(AuthoringError, ClassFolderError, RehearsalError, TourError):
        run_tour(out, root, Console(highlight=False))


def main() -> None:
    """Run the command line."""
    run(app, "vit-course")
