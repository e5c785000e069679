"""After a training: measure its best weights, look at the test images, draw, and put the figures together."""

from __future__ import annotations

import io
import os
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.data import Batches, ImageDataset
from vit_course.metrics import confusion_matrix, measure, worst_confusions
from vit_course.plots import show_attention
from vit_course.plots_training import plot_runs, show_confusions
from vit_course.recipes.images import Images
from vit_course.recipes.recipe import Recipe
from vit_course.recipes.result import RunResult, find_device_name, make_recipe_definition
from vit_course.recording import record
from vit_course.training import History, TrainingSettings
from vit_course.training.checkpoints import read_tensors, write_atomically
from vit_course.training.loop import evaluating
from vit_course.vit import VisionTransformer

WORST, ATTENDED = 6, 6
DOTS_PER_INCH = 150


def draw_pictures(
    folder: Path, title: str, model: VisionTransformer, history: History, test: ImageDataset, logits: Tensor
) -> list[Path]:
    """Write curves.png, confusion.png and attention.png; images of other than 1 or 3 channels are shown in neither.

    Args:
        folder: of the run.
        title: above the curves.
        model: trained; it is left in evaluation mode.
        history: of the training.
        test: with the statistics that the model was trained with.
        logits: (num_images, num_classes) of the test images, on the CPU.

    Raises:
        CannotWriteError: when the disk is full or the folder cannot be written to.
    """
    can_be_shown = test.images.shape[1] in (1, 3)
    worst = worst_confusions(logits, test.labels, WORST) if can_be_shown else []
    matrix = confusion_matrix(test.labels, logits.argmax(dim=-1), len(test.classes))
    figures = {
        "curves.png": plot_runs([history], title),
        "confusion.png": show_confusions(matrix, test.classes, worst, test.images),
    }
    if can_be_shown and model.config.depth:
        figures["attention.png"] = _draw_class_attention(model, model.config, test)
    for name, figure in figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=DOTS_PER_INCH)
        write_atomically(folder / name, picture.getvalue())
    return [folder / name for name in figures]


def _draw_class_attention(model: VisionTransformer, config: ViTConfig, test: ImageDataset):  # type: ignore[no-untyped-def]
    """Where the last block looks, on the first image of each of several classes."""
    present = test.labels.unique()[:ATTENDED]
    first = torch.stack([(test.labels == label).nonzero()[0, 0] for label in present])
    images = test.images[first]  # (chosen, channels, height, width)
    device = next(model.parameters()).device
    model.eval()
    with torch.inference_mode():
        stages = record(model, test.normalize(images).to(device))
    weights = stages[f"blocks.{config.depth - 1}.attention.weights"]
    answers = stages["logits"].argmax(dim=-1).tolist()
    names = [
        f"{test.classes[label]}\nanswer: {test.classes[answer]}"
        for label, answer in zip(present.tolist(), answers, strict=True)
    ]
    figure = show_attention(images, weights, config.grid_size, names)
    looks = "the class token looks" if config.pooling == "class_token" else "all patches look on average"
    figure.suptitle(
        f"Where {looks} in the last block, head by head; beside each picture its class and the model's answer"
    )
    return figure


BATCH = 500


def predict_logits(model: nn.Module, dataset: ImageDataset, device: torch.device) -> Tensor:
    """Logits (num_images, num_classes) float32 on the CPU, without dropout; the model's mode is put back after."""
    with evaluating(model), torch.inference_mode():
        batches = Batches(dataset, BATCH, device=device)
        return torch.cat([model(images).float().cpu() for images, _ in batches])


def load_weights(path: Path, model: nn.Module) -> None:
    """Put the weights of a file that `vit_course.training.fit` wrote into a model of the same recipe."""
    model.load_state_dict(read_tensors(path)[0])


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


def measure_and_draw(run: Prepared, history: History, folder: Path) -> RunResult:
    """Measure and draw.

    Args:
        run: its model now has the weights that are to be measured.
        history: of the training.
        folder: where the pictures go.
    """
    model, images, device = run.model.to(run.device), run.images, run.device
    logits = predict_logits(model, images.test, device)
    validation = measure(predict_logits(model, images.validation, device), images.validation.labels)
    draw_pictures(folder, f"{run.recipe.name}, seed {run.settings.seed}", model, history, images.test, logits)
    seconds, epochs = sum(history.seconds), len(history.seconds)
    return RunResult(
        recipe=run.recipe.name,
        definition=make_recipe_definition(run.recipe),
        seed=run.settings.seed,
        data=images.counts(),
        changed=run.changed,
        device=find_device_name(device),
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
        cpu_seconds=round(sum(history.cpu_seconds), 1),
        images_per_second=round(epochs * len(images.train) / seconds, 1),
        validation=asdict(validation),
        test=asdict(measure(logits, images.test.labels)),
        history={name: column for name, column in asdict(history).items() if isinstance(column, list)},
    )
