"""The three pictures of a run folder."""

from __future__ import annotations

import io
from pathlib import Path

import torch
from torch import Tensor

from vit_course.config import ViTConfig
from vit_course.data import ImageDataset
from vit_course.interpret import record
from vit_course.metrics import confusion_matrix, worst_confusions
from vit_course.plots import show_attention
from vit_course.plots_training import plot_runs, show_confusions
from vit_course.training import History
from vit_course.training.safe_files import write_atomically
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
        figures["attention.png"] = _attention(model, model.config, test)
    for name, figure in figures.items():
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=DOTS_PER_INCH)
        write_atomically(folder / name, picture.getvalue())
    return [folder / name for name in figures]


def _attention(model: VisionTransformer, config: ViTConfig, test: ImageDataset):  # type: ignore[no-untyped-def]
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
