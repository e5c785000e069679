"""Run a recipe: load, split, train, choose the best epoch, look at the test images once, write the folder; resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from vit_course.recipes.finalize import Prepared, load_weights, measure_and_draw
from vit_course.recipes.images import Images, load_images, name_images_unread, split_validation
from vit_course.recipes.recipe import Recipe, RecipeError
from vit_course.recipes.result import RunResult, make_recipe_definition, read_result, write_json, write_result
from vit_course.training import History, OutOfMemoryError, TrainingDivergedError, TrainingSettings, fit
from vit_course.training.checkpoints import CannotWriteError
from vit_course.training.hardware import choose_precision, find_device, is_main_process
from vit_course.training.progress import TrackerError


class RunInterruptedError(Exception):
    """Somebody pressed Ctrl-C; the message says what is left and how to go on."""


def read_finished_result(path: Path, recipe: Recipe, data: Path | None, changed: dict[str, Any]) -> RunResult:
    """The result of a run that is finished, if that run is what was asked for.

    Args:
        path: of its result.json.
        recipe: what was asked for, and with which seed the caller has compared.
        data: as for `load_images`.
        changed: settings by name, in place of the recipe's own.

    Raises:
        RecipeError: the run had other settings or other images, or its result is damaged.
    """
    result = read_result(path)
    mine = make_recipe_definition(recipe)
    begun = {**result.definition.get("settings", {}), **result.changed, "data": result.data.get("name")}
    requested = {**mine["settings"], **changed, "data": name_images_unread(recipe.dataset, data)}
    for name, value in requested.items():
        if begun.get(name) != value:
            raise RecipeError(
                f"{path.parent} holds a finished run with {name} = {begun.get(name)!r}, not {value!r}; name another "
                "folder with --out"
            )
    return result


@contextmanager
def add_cli_hints(folder: Path) -> Iterator[None]:
    """Add to what ends a training what somebody at a command line can do about it."""
    try:
        yield
    except TrainingDivergedError as error:
        raise TrainingDivergedError(
            f"{error}. The rates stand in the recipe: try another --seed, a larger --batch-size or --precision fp32, "
            f"or train in Python with settings of your own (vit_course.training.fit). Its epochs are in {folder}"
        ) from error
    except OutOfMemoryError as error:
        size = error.batch_size
        way = "--resume and --device cpu" if size is None else f"--batch-size {size} and another folder by --out"
        raise OutOfMemoryError(f"{error}. That is the same command with {way}", size) from error
    except TrackerError as error:
        raise RecipeError(
            f"{error}. Then the same command with --resume begins; without --wandb it does too"
        ) from error
    except CannotWriteError as error:
        raise CannotWriteError(f"{error}. With room, the same command with --resume goes on") from error


RECIPE_FILE, RESULT_FILE = "recipe.json", "result.json"
BEST_FILE = "best.safetensors"


@dataclass(frozen=True)
class RunOptions:
    """What a run may choose; None leaves it to the recipe.

    Attributes:
        folder: of the run; it must not hold anything, unless `resume` goes on with it.
        data: where to look for the recipe's data set, or images of one's own, see `load_images`.
        seed: of the start, the order and the augmentation.
        epochs, batch_size, precision: in place of the recipe's own.
        device: "cpu", "cuda" or "auto".
        resume: go on where a run in `folder` was stopped.
        wandb: also tell Weights & Biases.
        image_size: in pixels, to which the images of class folders are scaled and cropped.
        progress: draw a bar; None draws one on a terminal.
    """

    folder: Path
    data: Path | None = None
    seed: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    precision: str | None = None
    device: str = "auto"
    resume: bool = False
    wandb: bool = False
    image_size: int | None = None
    progress: bool | None = None


def train_recipe(
    recipe: Recipe, options: RunOptions, announce: Callable[[Prepared], None] | None = None
) -> RunResult | None:
    """Train once from one seed, and write the run folder.

    The folder then holds recipe.json, what `vit_course.training.fit` writes (best.safetensors is the result),
    curves.png, confusion.png, attention.png and, last, result.json. A folder with a result.json is finished: with
    `resume` its result is given back. Of several processes that train together the first one writes, and the
    others return None.

    Args:
        recipe: what to train.
        options: what the run chooses.
        announce: called by the first process when nothing is left to refuse, before the first step.

    Raises:
        RecipeError: the folder is in use, the recipe does not fit the images, or a choice is out of range.
        RunInterruptedError: by Ctrl-C; what was learned is kept.
        DatasetError, TrainingDivergedError, OutOfMemoryError, CheckpointError: see `load_dataset` and `fit`.
    """
    import sklearn  # noqa: F401  # missed now, and not when the metrics are due after hours

    if is_main_process():
        _check_folder_is_free(recipe, options)
    if (options.folder / RESULT_FILE).exists():
        return read_finished_result(
            options.folder / RESULT_FILE, recipe, options.data, _list_requested_settings(options)
        )
    trackers = _choose_trackers(options)
    prepared = _prepare_run(recipe, options)
    if is_main_process():
        options.folder.mkdir(parents=True, exist_ok=True)
        for left in filter(_is_unfinished_recipe_file, options.folder.iterdir()):
            left.unlink()
        write_json(options.folder / RECIPE_FILE, _identify_run(prepared))
        if announce is not None:
            announce(prepared)
    with add_cli_hints(options.folder):
        return _train_and_measure(prepared, options, trackers)


def _train_and_measure(prepared: Prepared, options: RunOptions, trackers: tuple[str, ...] | None) -> RunResult | None:
    folder, model, images = options.folder, prepared.model, prepared.images
    try:
        history = fit(
            model, images.train, images.validation, prepared.settings, options.progress, folder, True, trackers=trackers
        )
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        raise RunInterruptedError(f"Stopped. The same command with --resume goes on with {folder}.") from None
    if not is_main_process():
        return None
    _stop_when_interrupted(history, folder)
    try:
        load_weights(folder / BEST_FILE, model)
        result = measure_and_draw(prepared, history, folder)
        write_result(folder / RESULT_FILE, result)
    except KeyboardInterrupt:
        raise RunInterruptedError(
            f"Stopped after the training, whose weights are in {folder / BEST_FILE}. "
            "The same command with --resume measures them on the test images and draws the pictures."
        ) from None
    return result


def _prepare_run(recipe: Recipe, options: RunOptions) -> Prepared:
    """Images, model and settings; everything that can be refused is refused here."""
    settings = _make_settings(recipe, options)
    device = find_device(settings.device)
    whole, test = load_images(recipe.dataset, options.data, options.image_size)
    train, validation = split_validation(recipe, whole)
    channels = train.images.shape[1]
    if settings.augmentation.randaugment and channels not in (1, 3):
        raise RecipeError(
            f"{recipe.name} changes its images by RandAugment, which takes 1 or 3 channels, and those of {train.name} "
            f"have {channels}; choose another recipe (vit-course recipes)"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        model = recipe.build(recipe.config_for(train), train)
    try:
        precision = choose_precision(settings.precision, device)
    except ValueError as error:
        raise RecipeError(f"{recipe.name} cannot be run so: {error}") from None
    images = Images(train, validation, test.with_statistics_of(train))
    return Prepared(recipe, settings, _list_requested_settings(options), images, model, device, precision)


def _check_folder_is_free(recipe: Recipe, options: RunOptions) -> None:
    folder = options.folder
    if not folder.exists():
        return
    if not folder.is_dir():
        raise RecipeError(f"{folder} is a file; name a folder with --out")
    if all(map(_is_unfinished_recipe_file, folder.iterdir())):
        return
    if not options.resume:
        raise RecipeError(f"{folder} is not empty; go on with that run by --resume, or name another folder with --out")
    try:
        known = json.loads((folder / RECIPE_FILE).read_text(encoding="utf-8"))
        name, seed = known["recipe"], known["seed"]
    except (OSError, ValueError, KeyError, TypeError):
        raise RecipeError(f"{folder} holds no run of a recipe: its {RECIPE_FILE} is missing or damaged") from None
    wanted = (recipe.name, _choose_seed(recipe, options))
    if (name, seed) != wanted:
        raise RecipeError(
            f"{folder} holds a run of {name} with seed {seed}, not of {wanted[0]} with seed {wanted[1]}; "
            "name another folder with --out"
        )


def _is_unfinished_recipe_file(path: Path) -> bool:
    """Say whether this is a recipe.json that a killed process, or a full disk, left unfinished."""
    return path.name == f"{RECIPE_FILE}.unfinished" or path.name.startswith(f".{RECIPE_FILE}.")


def _choose_trackers(options: RunOptions) -> tuple[str, ...] | None:
    if not options.wandb:
        return None
    if find_spec("wandb") is None:
        raise RecipeError("--wandb needs wandb, which is not installed. Install it with: pip install wandb")
    return ("tensorboard", "wandb") if find_spec("tensorboard") else ("wandb",)


def _choose_seed(recipe: Recipe, options: RunOptions) -> int:
    return recipe.seeds[0] if options.seed is None else options.seed


def _list_requested_settings(options: RunOptions) -> dict[str, Any]:
    """Settings that the command asked for in place of the recipe's own."""
    requested = {name: getattr(options, name) for name in ("epochs", "batch_size", "precision")}
    return {name: value for name, value in requested.items() if value is not None}


def _make_settings(recipe: Recipe, options: RunOptions) -> TrainingSettings:
    try:
        settings = replace(
            recipe.settings,
            seed=_choose_seed(recipe, options),
            device=options.device,
            **_list_requested_settings(options),
        )
        device = find_device(settings.device)
    except ValueError as error:
        raise RecipeError(f"{recipe.name} cannot be run so: {error}") from None
    return replace(settings, compile=settings.compile and device.type == "cuda")


def _identify_run(prepared: Prepared) -> dict[str, Any]:
    """Return what tells this run from another one, for --resume and for `vit-course evaluate`."""
    return {
        "version": 1,
        "recipe": prepared.recipe.name,
        "seed": prepared.settings.seed,
        "slips": [deviation.name for deviation in prepared.recipe.deviations],
        "data": prepared.images.train.name,
    }


def _stop_when_interrupted(history: History, folder: Path) -> None:
    if history.ending != "interrupted":
        return
    done = len(history.validation_loss)
    best = f" {folder / BEST_FILE} is the best model so far, of epoch {history.best_epoch}." if done else ""
    raise RunInterruptedError(
        f"Stopped after {done} whole epochs.{best} The test images were not looked at. "
        "The same command with --resume goes on from here."
    )
