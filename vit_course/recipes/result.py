"""What a run leaves to be quoted: its figures, and all that they depend on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from vit_course.recipes.recipe import Recipe, RecipeError
from vit_course.training.checkpoints import write_atomically

VERSION = 1


@dataclass(frozen=True)
class RunResult:
    """One finished run of one recipe, as result.json holds it.

    Attributes:
        recipe: its name.
        definition: see `make_recipe_definition`.
        seed: of the start, the order and the augmentation.
        data: name, and how many images train, choose the epoch and test; and how many classes.
        changed: what the command asked for in place of the recipe's own: settings by name, with their values.
        device: in words; processes: that trained together; threads: of the CPU, for each of them;
        precision: "fp32", "bf16" or "fp16"; torch: its version.
        date: of the end, ISO 8601.
        parameters: how many the training may change.
        epochs: how many were run; best_epoch: whose weights were tested; ending: why it ended.
        compile_seconds: of torch.compile, before the first step; not part of `seconds`.
        seconds: of training and validation by the clock; cpu_seconds: of all threads; None in logs of
            interrupted runs of 2026.
        images_per_second: training images, forward, backward and validation included.
        validation, test: `vit_course.metrics.Metrics` as dicts.
        history: a list for each column of `vit_course.training.History`.
    """

    recipe: str
    definition: dict[str, Any]
    seed: int
    data: dict[str, Any]
    changed: dict[str, Any]
    device: str
    processes: int
    threads: int
    precision: str
    torch: str
    date: str
    parameters: int
    epochs: int
    best_epoch: int
    ending: str
    compile_seconds: float
    seconds: float
    cpu_seconds: float | None
    images_per_second: float
    validation: dict[str, Any]
    test: dict[str, Any]
    history: dict[str, list[float]]


NEWER = ("affine", "color")  # changes that the first logged runs did not know, left out where they do nothing


def make_recipe_definition(recipe: Recipe) -> dict[str, Any]:
    """All of a recipe that its figures depend on, but the seed and the machine, as JSON gives it back."""
    settings = asdict(recipe.settings)
    for name in ("seed", "device"):
        del settings[name]
    for group, name in (*((settings["augmentation"], name) for name in NEWER), (settings, "growth")):
        if not group[name]:
            del group[name]
    known = {
        "dataset": recipe.dataset,
        "num_validation": recipe.num_validation,
        "model": asdict(recipe.config),
        "slips": [deviation.name for deviation in recipe.deviations],
        "settings": settings,
    }
    starts = {name: True for name in ("mimetic", "whitened") if getattr(recipe, name)}
    return json.loads(json.dumps(known | starts))


def find_device_name(device: torch.device) -> str:
    """The GPU's own name, or "CPU"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"


def write_result(path: Path, result: RunResult) -> None:
    """Write result.json, whole or not at all."""
    write_json(path, {"version": VERSION} | asdict(result))


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all.

    Raises:
        CannotWriteError: when the disk is full or the folder cannot be written to.
    """
    write_atomically(path, format_json(value).encode())


def format_json(value: Any) -> str:
    """JSON as all files of a run hold it."""
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def read_result(path: Path) -> RunResult:
    """Read what `write_result` wrote.

    Raises:
        RecipeError: the file is damaged, or of another version.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
        version = value.pop("version")
        if version != VERSION:
            raise RecipeError(f"{path} has version {version}; this is version {VERSION}. Run the recipe again")
        return RunResult(**value)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        if isinstance(error, RecipeError):
            raise
        raise RecipeError(f"{path} is damaged ({error}); remove it and run the recipe again with --resume") from None
