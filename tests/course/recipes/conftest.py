"""A result of an invented run, and a data set small enough to train on in a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from vit_course.data import shapes
from vit_course.metrics import Metrics
from vit_course.recipes import RECIPES
from vit_course.recipes.result import RunResult, make_recipe_definition

Make = Callable[..., RunResult]


@pytest.fixture
def make_result() -> Make:
    def make_run_result(**changes: object) -> RunResult:
        metrics = asdict(Metrics(1000, 0.1, 0.98, 1.0, *[0.98] * 6, 0.01))
        recipe = RECIPES[str(changes.get("recipe", "cpu-minute"))]
        values = {
            "recipe": recipe.name,
            "definition": make_recipe_definition(recipe),
            "seed": 0,
            "data": {"name": recipe.dataset, "train_images": 55_000, "validation_images": recipe.num_validation},
            "changed": {},
            "device": "CPU",
            "processes": 1,
            "threads": 2,
            "precision": "fp32",
            "torch": "2.15.0",
            "date": "2026-11-20T12:00:00+00:00",
            "parameters": 138_890,
            "epochs": 5,
            "best_epoch": 5,
            "ending": "finished",
            "compile_seconds": 0.0,
            "seconds": 60.0,
            "cpu_seconds": 118.0,
            "images_per_second": 4600.0,
            "validation": metrics,
            "test": metrics,
            "history": {
                f"{part}_{name}": [0.9] * 5 for part in ("train", "validation") for name in ("loss", "accuracy", "top5")
            },
        }
        accuracy = changes.pop("accuracy", None)
        if accuracy is not None:
            values["test"] = metrics | {"top1": accuracy}
        return RunResult(**(values | changes))

    return make_run_result


@pytest.fixture(scope="session")
def few_shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An .npz of our own drawings, 300 to train and 100 to test on, in four of the ten classes' names."""
    drawn = shapes(1000)
    chosen = drawn.subset((drawn.labels < 4).nonzero().flatten())
    pixels = chosen.images.permute(0, 2, 3, 1).numpy()
    labels = chosen.labels.numpy()
    path = tmp_path_factory.mktemp("data") / "few_shapes.npz"
    np.savez(
        path,
        train_images=pixels[:300],
        train_labels=labels[:300],
        test_images=pixels[300:400],
        test_labels=labels[300:400],
        classes=np.array(drawn.classes[:4]),
    )
    return path
