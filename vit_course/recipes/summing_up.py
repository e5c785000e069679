"""After a training: measure its best weights, look at the test images, draw, and put the figures together."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from vit_course.metrics import measure
from vit_course.recipes.images import Images
from vit_course.recipes.measuring import predict
from vit_course.recipes.pictures import draw_pictures
from vit_course.recipes.recipe import Recipe
from vit_course.recipes.result import RunResult, definition, device_in_words
from vit_course.training import History, TrainingSettings
from vit_course.vit import VisionTransformer


@dataclass(frozen=True)
class Prepared:
    """All that a run needs before its first step.

    Attributes:
        recipe: as it stands.
        settings: the recipe's, with seed and device, and with what was asked for in place of its own.
        changed: the latter, by name.
        images: to train, validate and test with.
        model: freshly started.
        device, precision: what "auto" came to.
    """

    recipe: Recipe
    settings: TrainingSettings
    changed: dict[str, Any]
    images: Images
    model: VisionTransformer
    device: torch.device
    precision: str


def sum_up(run: Prepared, history: History, cpu_seconds: float | None, folder: Path) -> RunResult:
    """Measure and draw.

    Args:
        run: its model now has the weights that are to be measured.
        history: of the training.
        cpu_seconds: of the training, or None where they are not known.
        folder: where the pictures go.
    """
    model, images, device = run.model.to(run.device), run.images, run.device
    logits = predict(model, images.test, device)
    validation = measure(predict(model, images.validation, device), images.validation.labels)
    draw_pictures(folder, f"{run.recipe.name}, seed {run.settings.seed}", model, history, images.test, logits)
    seconds, epochs = sum(history.seconds), len(history.seconds)
    return RunResult(
        recipe=run.recipe.name,
        definition=definition(run.recipe),
        seed=run.settings.seed,
        data=images.counts(),
        changed=run.changed,
        device=device_in_words(device),
        processes=int(os.environ.get("WORLD_SIZE", "1")),
        threads=torch.get_num_threads(),
        precision=run.precision,
        torch=torch.__version__,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        parameters=sum(each.numel() for each in model.parameters() if each.requires_grad),
        epochs=epochs,
        best_epoch=history.best_epoch or epochs,
        ending=history.ending,
        compile_seconds=round(history.compile_seconds, 1),
        seconds=round(seconds, 2),
        cpu_seconds=cpu_seconds,
        images_per_second=round(epochs * len(images.train) / seconds, 1),
        validation=asdict(validation),
        test=asdict(measure(logits, images.test.labels)),
        history={name: column for name, column in asdict(history).items() if isinstance(column, list)},
    )
