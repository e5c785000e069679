"""``vit-course``: the kit's commands, and those that train and look into models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from exercise_kit.cli.commands import Lessons, add_commands, run
from exercise_kit.cli.errors import exit_on_errors, needs, stop
from exercise_kit.submission.released import CLONE

# a path or a command is never broken over two lines: it is there to be copied
console = Console(highlight=False, soft_wrap=True)

Data = Annotated[
    Path | None,
    typer.Option(help="Images of yours (.npz or class folders), or a folder to look for known data sets in."),
]
ImageSize = Annotated[int | None, typer.Option(min=1, help="Scale class folders' images to this side.")]
Device = Annotated[str, typer.Option(help='"cpu", "cuda", or "auto" for CUDA where there is one.')]


def train(
    recipe: Annotated[str, typer.Argument(help="A name from vit-course recipes.")],
    data: Data = None,
    image_size: ImageSize = None,
    device: Device = "auto",
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes through the images.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where this run was stopped.")] = False,
    seed: Annotated[int | None, typer.Option(min=0, max=2**63 - 1, help="Of start, order and augmentation.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; else runs/RECIPE-seedN.")] = None,
    precision: Annotated[str | None, typer.Option(help='"auto", "fp32", "bf16" or "fp16".')] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Images per step.")] = None,
    wandb: Annotated[bool, typer.Option("--wandb", help="Tell Weights & Biases, beside TensorBoard.")] = False,
) -> None:
    """Train a ViT by a recipe, and measure it once on the test images."""
    with needs("train"):
        from vit_course.recipes import command, run
    options = run.RunOptions(Path(), data, seed, epochs, batch_size, precision, device, resume, wandb, image_size)
    try:
        with exit_on_errors(*command.USER_ERRORS), needs("train"):
            command.train(recipe, out, options, console)
    except (run.RunInterruptedError, KeyboardInterrupt) as stopped:
        raise stop(str(stopped) or "Stopped before the training began.", 130) from None


def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="A weights file, or a run folder that holds one.")],
    data: Data = None,
    image_size: ImageSize = None,
    device: Device = "auto",
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """Measure a saved model on the test images of its data set, or of --data."""
    with needs("train"):
        from vit_course.recipes import command
    with exit_on_errors(*command.USER_ERRORS), needs("train"):
        command.evaluate(checkpoint, data, device, image_size, json, console)


def recipes(
    name: Annotated[str | None, typer.Argument(help="All about this one.")] = None,
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """List the named experiments: what each costs, and what it reaches."""
    from vit_course.recipes import command

    with exit_on_errors(*command.USER_ERRORS):
        command.list_recipes(name, json, console)


def diagnose(
    source: Annotated[str, typer.Argument(metavar="FILE:MODEL", help="A Python file, which is run, and a name in it.")],
    call: Annotated[
        str | None, typer.Option(help='What makes the model, such as "ViT(image_size=32)"; else MODEL() itself.')
    ] = None,
    images: Annotated[str, typer.Option(metavar="CxHxW", help="The images that it takes.")] = "3x32x32",
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """Ask a ViT, whoever wrote it, what is wrong with it, by what it does."""
    from vit_course.diagnosis import command

    with exit_on_errors(*command.USER_ERRORS):
        command.diagnose_file(source, call, images, json, console)


app = typer.Typer(
    help="A hands-on course on the Vision Transformer, with checks that name the mistake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
add_commands(app)
for command in (train, evaluate, recipes, diagnose):
    app.command()(command)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for what the demo writes; one that an earlier demo made is replaced.")
    ] = Path("demo"),
    root: Lessons = CLONE,
) -> None:
    """The main job in a few minutes: make a class, grade it with nbgrader, train a small ViT, look into it."""
    with needs("grading"):
        from exercise_kit.authoring.lesson import AuthoringError
        from exercise_kit.nbgrader.class_folder import ClassFolderError
        from exercise_kit.nbgrader.demo_class import RehearsalError
        from vit_course.demo import DemoError, run_demo
    with exit_on_errors(AuthoringError, ClassFolderError, RehearsalError, DemoError):
        run_demo(out, root, Console(highlight=False))


def main() -> None:
    """Run the command line."""
    run(app, "vit-course")
