"""What was measured of the recipes: measured.json, which benchmarks/recipes.py writes from logged runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from vit_course.metrics import Spread, spread
from vit_course.recipes.recipe import Recipe
from vit_course.recipes.result import RunResult, definition

MEASURED = Path(__file__).with_name("measured.json")
VERSION = 1


@dataclass(frozen=True)
class Measured:
    """One recipe on one machine, over its seeds.

    Attributes:
        device: in words, with the number of threads on a CPU; precision: of the products.
        seeds: those that were run.
        accuracy, top5: on the test images, in [0, 1].
        seconds: of training and validation by the clock.
        cpu_seconds: of all threads, which tells more than the clock where other work ran beside; None where no run
            counted them.
        images_per_second: training images.
        parameters: how many the training may change.
    """

    device: str
    precision: str
    seeds: tuple[int, ...]
    accuracy: Spread
    top5: Spread
    seconds: Spread
    cpu_seconds: Spread | None
    images_per_second: Spread
    parameters: int


def summarise(recipes: Iterable[Recipe], results: Iterable[RunResult]) -> dict[str, Any]:
    """What measured.json holds: for each recipe the runs that count, by machine, then by seed.

    A run counts when it was made by the recipe as it is now, unchanged, on the recipe's own data, in one
    process, and whole.
    """
    table: dict[str, Any] = {}
    found = sorted(results, key=lambda result: (result.device, result.threads, result.precision, result.seed))
    for recipe in recipes:
        runs = [_row(result) for result in found if result.recipe == recipe.name and counts(recipe, result)]
        if runs:
            table[recipe.name] = {"runs": runs}
    return {"version": VERSION, "recipes": table}


def counts(recipe: Recipe, result: RunResult) -> bool:
    """Whether this run says something about this recipe as it is now."""
    return (
        result.definition == definition(recipe)
        and not result.changed
        and result.processes == 1
        and result.data["name"] == recipe.dataset
        and result.data["validation_images"] == recipe.num_validation
        and result.ending in ("finished", "stopped early")
    )


def _row(result: RunResult) -> dict[str, Any]:
    return {
        "seed": result.seed,
        "accuracy": result.test["top1"],
        "top5": result.test["top5"],
        "seconds": result.seconds,
        "cpu_seconds": result.cpu_seconds if result.device == "CPU" else None,
        "images_per_second": result.images_per_second,
        "parameters": result.parameters,
        "device": device_of(result),
        "precision": result.precision,
        "torch": result.torch,
        "date": result.date[:10],
    }


def device_of(result: RunResult) -> str:
    """The machine in words: a GPU's name, or "CPU, 2 threads"."""
    threads = f"{result.threads} thread{'s' * (result.threads != 1)}"
    return f"{result.device}, {threads}" if result.device == "CPU" else result.device


@cache
def read_measured(path: Path = MEASURED) -> dict[str, list[Measured]]:
    """For each recipe that was measured, one entry for each machine, the one with the most seeds first."""
    table = json.loads(path.read_text(encoding="utf-8"))["recipes"]
    return {name: _by_machine(entry["runs"]) for name, entry in table.items()}


def _by_machine(runs: list[dict[str, Any]]) -> list[Measured]:
    machines: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        machines.setdefault((run["device"], run["precision"]), []).append(run)
    entries = [
        Measured(
            device=device,
            precision=precision,
            seeds=tuple(run["seed"] for run in of_one),
            accuracy=_spread(of_one, "accuracy"),
            top5=_spread(of_one, "top5"),
            seconds=_spread(of_one, "seconds"),
            cpu_seconds=_spread(counted, "cpu_seconds") if (counted := _counted(of_one)) else None,
            images_per_second=_spread(of_one, "images_per_second"),
            parameters=of_one[0]["parameters"],
        )
        for (device, precision), of_one in machines.items()
    ]
    return sorted(entries, key=lambda entry: -len(entry.seeds))


def _counted(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that were not interrupted, on a CPU."""
    return [run for run in runs if run["cpu_seconds"] is not None]


def _spread(runs: list[dict[str, Any]], name: str) -> Spread:
    return spread([run[name] for run in runs])
