"""Measure a saved model on images, and refuse in words where they do not fit together."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from vit_course.data import ImageDataset
from vit_course.data.sources import holds_dataset
from vit_course.data.torchvision_sets import PUBLISHED
from vit_course.metrics import Metrics, measure
from vit_course.recipes import RECIPES
from vit_course.recipes.finalize import predict_logits
from vit_course.recipes.images import load_images
from vit_course.recipes.recipe import Recipe, RecipeError
from vit_course.recipes.run import BEST_FILE, RECIPE_FILE
from vit_course.training import SavedModel, load_model
from vit_course.training.hardware import find_device


@dataclass(frozen=True)
class CheckpointEvaluation:
    """A saved model's metrics on the test part of a data set."""

    checkpoint: Path
    data: str
    parameters: int
    metrics: Metrics


def evaluate_checkpoint(
    checkpoint: Path, data: Path | None = None, device: str = "auto", image_size: int | None = None
) -> CheckpointEvaluation:
    """Measure the model of a weights file, or of a run folder, on test images.

    Args:
        checkpoint: a weights file of `vit_course.training.save_model`, or a run folder that holds one.
        data: where to look for the data set that the model was trained on, or images of one's own.
        device: "cpu", "cuda" or "auto".
        image_size: in pixels, to which the images of class folders are scaled and cropped.

    Raises:
        CheckpointError: the file cannot be read as a model.
        DatasetError: the images cannot be had.
        RecipeError: the model is not made for these images, or these classes; or there is no such device.
    """
    path = checkpoint / BEST_FILE if checkpoint.is_dir() else checkpoint
    saved = open_checkpoint(path)
    try:
        where = find_device(device)
    except ValueError as error:
        raise RecipeError(str(error)) from None
    if data is None and not _is_known_dataset(saved.dataset_name):
        raise RecipeError(
            f"the model in {path} was trained on {saved.dataset_name!r}, which is no data set that we know; name the "
            "images (.npz or class folders) with --data"
        )
    _, test = load_images(saved.dataset_name, data, image_size)
    check_images_fit_model(path, saved, test)
    test = replace(test, mean=saved.mean, std=saved.std)
    logits = predict_logits(saved.model.to(where), test, where)
    parameters = sum(each.numel() for each in saved.model.parameters())
    return CheckpointEvaluation(path, test.name, parameters, measure(logits, test.labels))


def _is_known_dataset(name: str) -> bool:
    """Say whether `load_dataset` finds, or can fetch, a data set of this name without a place given."""
    return name in PUBLISHED or holds_dataset(name) or Path(name).exists()


def open_checkpoint(path: Path) -> SavedModel:
    """Load a weights file; one that lies in a run folder is built with the slips of that run's recipe.

    Raises:
        CheckpointError: the file cannot be read as a model.
    """
    recipe = _read_recipe_beside(path)
    return load_model(path) if recipe is None else load_model(path, recipe.build)


def _read_recipe_beside(path: Path) -> Recipe | None:
    """The recipe that a run folder says it holds, if that is one with slips."""
    try:
        name = json.loads(path.with_name(RECIPE_FILE).read_text(encoding="utf-8"))["recipe"]
        recipe = RECIPES[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return recipe if recipe.deviations else None


def check_images_fit_model(path: Path, saved: SavedModel, test: ImageDataset) -> None:
    """Compare sizes, channels and classes of a model and of images.

    Raises:
        RecipeError: naming what differs.
    """
    wanted = (saved.config.in_channels, saved.config.height, saved.config.width)
    found = tuple(test.images.shape[1:])
    if wanted != found:
        raise RecipeError(
            f"the model in {path} takes images of {_describe_size(*wanted)}, and those of {test.name} are "
            f"{_describe_size(*found)}"
        )
    if len(saved.classes) != len(test.classes):
        raise RecipeError(
            f"the model in {path} knows {len(saved.classes)} classes ({_join_first_names(saved.classes)}), and "
            f"{test.name} has {len(test.classes)} ({_join_first_names(test.classes)})"
        )
    for number, (ours, theirs) in enumerate(zip(saved.classes, test.classes, strict=True)):
        if ours != theirs:
            raise RecipeError(
                f"class {number} is {ours!r} for the model in {path} and {theirs!r} in {test.name}: its answers would "
                "be counted against other names"
            )


def _describe_size(channels: int, height: int, width: int) -> str:
    return f"{height} x {width} pixels in {channels} channel{'s' * (channels != 1)}"


def _join_first_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
