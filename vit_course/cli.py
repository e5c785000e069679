"""``vit-course``: thin commands over the package."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from vit_course.grading.doctor_command import doctor

app = typer.Typer(
    help="A hands-on course on the Vision Transformer, with checks that name the mistake.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# a path or a command is never broken over two lines: it is there to be copied
console = Console(highlight=False, soft_wrap=True)
# where the lessons are, when this is an editable install of a clone
CLONE = Path(__file__).resolve().parents[1]


def _clone(root: Path) -> Path:
    if not (root / "solutions").is_dir():
        raise _stop(f"there is no folder {root / 'solutions'}; name a clone of the course with --root")
    return root


Lessons = Annotated[
    Path, typer.Option(help="The clone of the course whose lessons are used.", resolve_path=True, callback=_clone)
]


@app.command()
def build(
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a built notebook is stale.")] = False,
    root: Lessons = CLONE,
) -> None:
    """Build the students' and the solution notebooks from solutions/*.py."""
    with _needs("grading"):
        from vit_course.authoring.build import build as build_notebooks
        from vit_course.authoring.problems import AuthoringError
    with _in_words(AuthoringError):
        report = build_notebooks(root, check=check)
    for path in (*report.written, *report.stale):
        console.print(f"{'stale  ' if check else 'written'} {path}", markup=False)
    for path in report.orphaned:
        console.print(f"without a source: {path}; remove it", markup=False)
    if report.stale:
        raise _stop("Some notebooks are not what their sources say. Run: vit-course build")
    if report.orphaned:
        raise _stop("Some notebooks have no source. Remove them, or write solutions/NN_topic.py for them.")
    console.print(f"{len(report.written) + len(report.unchanged)} notebooks are up to date.")


@app.command("new-class")
def new_class(
    directory: Annotated[Path, typer.Argument(help="The folder to make; it must not exist, or be empty.")],
    root: Lessons = CLONE,
) -> None:
    """Make an nbgrader course folder, ready for generate_assignment and formgrader."""
    with _needs("grading"):
        from vit_course.authoring.build import build as build_notebooks
        from vit_course.authoring.problems import AuthoringError
        from vit_course.grading.classroom.class_folder import ClassFolderError
        from vit_course.grading.classroom.class_folder import new_class as make
    with _in_words(ClassFolderError):
        made = make(directory, root)
    console.print(f"Made {made.path} with {len(made.lessons)} lessons: {', '.join(made.lessons)}.", markup=False)
    with _in_words(AuthoringError):
        stale = build_notebooks(root, check=True).stale
    if stale:
        console.print("Older than their sources: " + ", ".join(str(path) for path in stale), markup=False)
        console.print("The class has them as they are. For the newest: vit-course build, and a new class.")
    console.print("Next, as the folder's README.md tells:")
    console.print(f"  cd {shlex.quote(str(made.path))}", markup=False)
    console.print(f"  nbgrader generate_assignment {made.lessons[0]}", markup=False)


@app.command()
def grade(
    paths: Annotated[
        list[Path], typer.Argument(help="Notebooks, .py files, folders of them, or nbgrader's submitted/ tree.")
    ],
    exercise: Annotated[str | None, typer.Option(help="Grade this exercise alone.")] = None,
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="How many submissions are graded at the same time.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="The address of a dask scheduler, whose workers grade.", metavar="ADDRESS")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where a run ended; tell how many results were taken over.")
    ] = False,
    no_sandbox: Annotated[
        bool, typer.Option("--no-sandbox", help="Run students' code unguarded, with your rights.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Grade all again, whatever was graded before.")] = False,
) -> None:
    """Grade submissions with the hidden checks, each in a sandbox of its own."""
    with _needs("grading"):
        from vit_course.grading.batch.command import GradeError, GradeOptions, GradeUsageError
        from vit_course.grading.batch.command import grade as grade_paths
    options = GradeOptions(paths, exercise, json, jobs, scheduler, resume, not no_sandbox, fresh)
    try:
        with _in_words(GradeError), _needs("grading"):
            every_one = grade_paths(options, console, Console(stderr=True, highlight=False, soft_wrap=True))
    except GradeUsageError as error:
        raise typer.BadParameter(str(error), param_hint=error.option) from None
    except KeyboardInterrupt:
        raise _stop("Stopped. What was graded is kept; the same command goes on from there.", 130) from None
    if not every_one:
        raise typer.Exit(1)


app.command()(doctor)


@app.command()
def misconceptions(
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """List every mistake that the checks know by name."""
    from vit_course.checks.library import as_json, as_table

    if json is None:
        console.print(as_table(), soft_wrap=False)
    elif json == "-":
        typer.echo(as_json())
    else:
        with _in_words():
            Path(json).write_text(as_json() + "\n", encoding="utf-8")


Data = Annotated[
    Path | None,
    typer.Option(help="Images of yours (.npz or class folders), or a folder to look for known data sets in."),
]
ImageSize = Annotated[int | None, typer.Option(min=1, help="Scale class folders' images to this side.")]
Device = Annotated[str, typer.Option(help='"cpu", "cuda", or "auto" for CUDA where there is one.')]


@app.command()
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
    with _needs("train"):
        from vit_course.recipes import command
    options = command.RunOptions(Path(), data, seed, epochs, batch_size, precision, device, resume, wandb, image_size)
    try:
        with _in_words(*command.REFUSALS), _needs("train"):
            command.train(recipe, out, options, console)
    except (command.RunInterruptedError, KeyboardInterrupt) as stopped:
        raise _stop(str(stopped) or "Stopped before the training began.", 130) from None


@app.command()
def evaluate(
    checkpoint: Annotated[Path, typer.Argument(help="A weights file, or a run folder that holds one.")],
    data: Data = None,
    image_size: ImageSize = None,
    device: Device = "auto",
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """Measure a saved model on the test images of its data set, or of --data."""
    with _needs("train"):
        from vit_course.recipes import command
    with _in_words(*command.REFUSALS), _needs("train"):
        command.evaluate(checkpoint, data, device, image_size, json, console)


@app.command()
def recipes(
    name: Annotated[str | None, typer.Argument(help="All about this one.")] = None,
    json: Annotated[str | None, typer.Option("--json", help="Write JSON to this file, or - for stdout.")] = None,
) -> None:
    """List the named experiments: what each costs, and what it reaches."""
    from vit_course.recipes import command

    with _in_words(*command.REFUSALS):
        command.list_recipes(name, json, console)


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option(help="Folder for what the demo writes; one that an earlier demo made is replaced.")
    ] = Path("demo"),
    root: Lessons = CLONE,
) -> None:
    """The main job in two minutes: make a class, grade it with nbgrader, train a small ViT, look into it."""
    with _needs("grading"):
        from vit_course.authoring.problems import AuthoringError
        from vit_course.grading.classroom.class_folder import ClassFolderError
        from vit_course.grading.classroom.rehearsal import RehearsalError
        from vit_course.tour import TourError, run_tour
    with _in_words(AuthoringError, ClassFolderError, RehearsalError, TourError):
        run_tour(out, root, Console(highlight=False))


@contextmanager
def _needs(extra: str) -> Iterator[None]:
    """Turn a missing package into a sentence that names the extra to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "vit_course":
            raise
        install = f'pip install "vit-course[{extra}]"'
        raise _stop(f"This command needs {package}, which is not installed. Install it with: {install}") from None


@contextmanager
def _in_words(*ours: type[Exception]) -> Iterator[None]:
    """Turn errors of ours, and of the disk, into a sentence."""
    try:
        yield
    except ours as error:
        raise _stop(str(error)) from None
    except OSError as error:
        where = error.filename2 or error.filename
        raise _stop(f"cannot use {where}: {error.strerror}" if where else error.strerror or str(error)) from None


def _stop(message: str, status: int = 1) -> typer.Exit:
    Console(stderr=True, highlight=False, soft_wrap=True).print(message, markup=False)
    return typer.Exit(status)


def main() -> None:
    """Run the command line."""
    app(prog_name="vit-course")
