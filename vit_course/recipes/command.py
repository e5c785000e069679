"""``vit-course train``, ``evaluate`` and ``recipes``: what they do, what they print, and where a JSON answer goes."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vit_course.data.image_dataset import DatasetError
from vit_course.recipes import RECIPES, RecipeError, find
from vit_course.recipes.evaluate import evaluate_checkpoint
from vit_course.recipes.finalize import Prepared
from vit_course.recipes.listing import (
    describe_accuracy,
    describe_time,
    find_first_measured,
    make_recipe_table,
    write_recipe_page,
    write_recipes_json,
)
from vit_course.recipes.result import RunResult, write_json
from vit_course.recipes.run import RECIPE_FILE, RESULT_FILE, RunOptions, train_recipe
from vit_course.training import CheckpointError, OutOfMemoryError, RunFolderError, TrainingDivergedError
from vit_course.training.hardware import is_main_process

if TYPE_CHECKING:
    from rich.console import Console


def check_json_output(output: str | None) -> None:
    """Look at what --json names before the work is done.

    Args:
        output: None, "-" for stdout, or the name of a file.

    Raises:
        RecipeError: it is a folder, or its folder is not there.
    """
    if output is None or output == "-":
        return
    path = Path(output)
    if path.is_dir():
        raise RecipeError(f"{path} is a folder; name a file with --json")
    if not path.parent.is_dir():
        raise RecipeError(f"there is no folder {path.parent} to write {path.name} into; make it, or name another")


def print_line(text: str) -> None:
    """Print; a reader who has seen enough and closes the pipe, as `head` does, is no failure."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python complains when it ends


# what ends a command with a sentence in place of a traceback
USER_ERRORS: tuple[type[Exception], ...] = (
    RecipeError,
    DatasetError,
    CheckpointError,
    RunFolderError,
    OutOfMemoryError,
    ImportError,
    TrainingDivergedError,
)

# in this order; with one label for each image the micro averages say no more than top-1
SHOWN = {
    "top1": "top-1 accuracy",
    "top5": "top-5 accuracy",
    "macro_precision": "macro precision",
    "macro_recall": "macro recall",
    "macro_f1": "macro F1",
    "micro_precision": "micro precision",
    "micro_recall": "micro recall",
    "micro_f1": "micro F1",
    "calibration_error": "calibration error",
}


WIDEST = 200  # columns, of a table that no terminal cuts
WRITTEN = ("result.json", "best.safetensors", "curves.png", "confusion.png", "attention.png")


def name_run_folder(name: str, seed: int) -> Path:
    """Where a run goes unless --out says otherwise."""
    return Path("runs") / f"{name}-seed{seed}"


def train(name: str, out: Path | None, options: RunOptions, console: Console) -> None:
    """Run a recipe and say what came out; `options.folder` is replaced by `out`, or by a folder named after the run.

    Raises:
        RecipeError: there is no such recipe, or it cannot be run so.
        RunInterruptedError, and others: see `train_recipe`.
    """
    recipe = find(name)
    seed = recipe.seeds[0] if options.seed is None else options.seed
    options = replace(options, folder=out or name_run_folder(name, seed), seed=seed)
    was_finished = (options.folder / RESULT_FILE).exists()
    if is_main_process() and options.resume and not (options.folder / RECIPE_FILE).exists():
        console.print(f"There is no run in {options.folder} to go on with: this one begins.", markup=False)
    result = train_recipe(recipe, options, lambda run: _announce_run(run, console))
    if result is not None and is_main_process():
        if was_finished:
            date = result.date[:16].replace("T", " ")
            console.print(f"The run in {options.folder} was finished already, on {date} UTC:", markup=False)
        _print_result(result, options.folder, console)


def _announce_run(run: Prepared, console: Console) -> None:
    recipe, data = run.recipe, run.images.train.name
    if data != recipe.dataset:
        console.print(f"{recipe.name}, made for {recipe.dataset}, on your images {data}.", markup=False)
        return
    measured = find_first_measured(recipe)
    console.print(f"{recipe.name}: {recipe.summary}", markup=False)
    if run.changed:
        console.print("What to expect with these options was not measured.")
    elif measured is None:
        console.print(f"For {recipe.hardware}. What to expect was not measured yet.")
    else:
        accuracy = describe_accuracy(measured.accuracy)
        console.print(f"Expect {accuracy} in {describe_time(measured)}, as measured on {measured.device}.")


def _print_result(result: RunResult, folder: Path, console: Console) -> None:
    test = result.test
    console.print(
        f"{test['top1']:.2%} of the {test['num_images']:,} test images of {result.data['name']} are right "
        f"(top-5: {test['top5']:.2%}), with the weights of epoch {result.best_epoch} of {result.epochs}."
    )
    cpu = "" if result.cpu_seconds is None else f", {result.cpu_seconds:,.0f} CPU seconds"
    console.print(
        f"{result.seconds:,.0f} seconds{cpu}, {result.images_per_second:,.0f} images/s, {result.parameters:,} "
        f"parameters, {result.device}, {result.precision}, seed {result.seed}."
    )
    written = ", ".join(name for name in WRITTEN if (folder / name).exists())
    console.print(f"Everything is in {folder}: {written}.", markup=False)


def evaluate(
    checkpoint: Path,
    data: Path | None,
    device: str,
    image_size: int | None,
    output: str | None,
    console: Console,
) -> None:
    """Measure a saved model on test images, and print or write its metrics.

    Args:
        output: None for a table on `console`, "-" for JSON on stdout, or the name of a file.

    Raises:
        CheckpointError, DatasetError, RecipeError: see `examine`; or `output` cannot be written to.
    """
    check_json_output(output)
    examined = evaluate_checkpoint(checkpoint, data, device, image_size)
    metrics = asdict(examined.metrics)
    value: dict[str, Any] = {
        "version": 1,
        "checkpoint": str(examined.checkpoint),
        "data": examined.data,
        "parameters": examined.parameters,
        **metrics,
    }
    if output == "-":
        print_line(json.dumps(value, indent=1))
        return
    if output is not None:
        write_json(Path(output), value)
    console.print(
        f"{examined.checkpoint} on the {metrics['num_images']:,} test images of {examined.data}", markup=False
    )
    for key, words in SHOWN.items():
        console.print(f"  {words:<18} {metrics[key]:8.2%}")
    console.print(f"  {'loss':<18} {metrics['loss']:8.4f}")


def list_recipes(name: str | None, output: str | None, console: Console) -> None:
    """Print all recipes as a table, one as a page, or either as JSON.

    Raises:
        RecipeError: there is no recipe of this name, or `output` cannot be written to.
    """
    check_json_output(output)
    chosen = list(RECIPES.values()) if name is None else [find(name)]
    if output == "-":
        print_line(write_recipes_json(chosen))
    elif output is not None:
        write_json(Path(output), json.loads(write_recipes_json(chosen)))
    elif name is not None:
        print_line(write_recipe_page(chosen[0]))
    else:
        with console.capture() as captured:
            width = console.width if console.is_terminal else None  # a pipe gets the whole table
            console.print(make_recipe_table(), soft_wrap=False, width=width or WIDEST)
            console.print("Run one: vit-course train RECIPE. All about one: vit-course recipes RECIPE.")
        print_line(captured.get().rstrip("\n"))
