"""A small ViT learns our own shapes from nothing, in about a minute on one core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vit_course.config import ViTConfig
from vit_course.data import Augmentation, ImageDataset, shapes, train_validation_split
from vit_course.interpret import record
from vit_course.plots import plot_history, show_attention
from vit_course.training import TrainingSettings, fit
from vit_course.vit import VisionTransformer

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONFIG = ViTConfig(image_size=32, patch_size=4, embed_dim=64, depth=3, num_heads=4, mlp_ratio=2.0, position_std=0.5)
SETTINGS = TrainingSettings(
    epochs=6, batch_size=64, learning_rate=2e-3, muon_learning_rate=0.02, augmentation=Augmentation(max_shift=2)
)
NUM_TRAIN, NUM_VALIDATION = 10_000, 1_000


@dataclass(frozen=True)
class DemoResult:
    """What the demo reached: accuracy in [0, 1] on validation images, seconds, and the pictures written."""

    accuracy: float
    seconds: float
    parameters: int
    curves: Path
    attention: Path


def train_demo(out_dir: Path, progress: bool | None = None) -> DemoResult:
    """Draw a data set, train a ViT on it, and write curves.png and attention.png.

    Args:
        out_dir: made when it does not exist; files of the same names are written over.
        progress: as for `vit_course.training.fit`.
    """
    started = time.perf_counter()
    out_dir.mkdir(parents=True, exist_ok=True)
    dataset = shapes(NUM_TRAIN + NUM_VALIDATION)
    train, validation = train_validation_split(dataset, NUM_VALIDATION)
    with _one_thread(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(SETTINGS.seed)
        model = VisionTransformer(CONFIG)
        history = fit(model, train, validation, SETTINGS, progress)
    curves, attention = out_dir / "curves.png", out_dir / "attention.png"
    plot_history(history, "A small ViT learns ten shapes").savefig(curves, dpi=150)
    _attention_figure(model, validation).savefig(attention, dpi=150)
    return DemoResult(
        accuracy=history.validation_accuracy[-1],
        seconds=time.perf_counter() - started,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        curves=curves,
        attention=attention,
    )


@contextmanager
def _one_thread() -> Iterator[None]:
    """Compute with one thread, so that the time does not depend on who else is at work.

    Two threads on two idle cores are faster, but beside four busy processes they took six times the CPU seconds.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _attention_figure(model: VisionTransformer, validation: ImageDataset, num_images: int = 6) -> Figure:
    """Where the class token looks in the last block, on the first image of each of several classes."""
    first = torch.stack([(validation.labels == label).nonzero()[0, 0] for label in range(num_images)])
    images: Tensor = validation.images[first]  # (num_images, 3, 32, 32)
    model.eval()
    with torch.inference_mode():
        stages = record(model, validation.normalize(images))
    weights = stages[f"blocks.{CONFIG.depth - 1}.attention.weights"]
    names = [validation.classes[answer] for answer in stages["logits"].argmax(dim=-1)]
    figure = show_attention(images, weights, CONFIG.grid_size, names)
    figure.suptitle("Where the class token looks in the last block, head by head; left, what the model calls it")
    return figure
