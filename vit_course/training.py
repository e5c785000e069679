"""A training loop that is short enough to read and honest in what it counts.

The data lie on the device as uint8; each batch is picked out, shifted and normalised there.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from tqdm import tqdm

from vit_course.data import ImageDataset
from vit_course.optimizers import Updates


@dataclass(frozen=True)
class TrainingSettings:
    """How to train.

    Attributes:
        epochs: passes through the training images.
        batch_size: images per step; the last step of an epoch may have fewer.
        learning_rate: of AdamW, at its peak.
        muon_learning_rate: of Muon for the matrices inside the blocks, at its peak; None gives them to AdamW.
        weight_decay: of matrices only: norms, biases, positions and the class token are left alone.
        warmup: share of all steps over which the learning rates rise from zero.
        label_smoothing: share of the target spread over all classes, in training only.
        max_shift: largest shift of a training image, in pixels, along each axis.
        gradient_clip: largest norm of the gradient; None for no limit.
        seed: of the order, the shifts and dropout. The model's own start is the caller's.
        device: where to train, "cpu" or "cuda".

    Raises:
        ValueError: for a number outside its range.
    """

    epochs: int = 10
    batch_size: int = 128
    learning_rate: float = 1e-3
    muon_learning_rate: float | None = None
    weight_decay: float = 0.05
    warmup: float = 0.1
    label_smoothing: float = 0.0
    max_shift: int = 0
    gradient_clip: float | None = 1.0
    seed: int = 0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "muon_learning_rate", "gradient_clip"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ValueError(f"{name} must be positive, not {value}")
        for name in ("warmup", "label_smoothing"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be in [0, 1), not {getattr(self, name)}")
        for name in ("weight_decay", "max_shift"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but it is {getattr(self, name)}")


@dataclass
class History:
    """What happened, one entry per epoch: losses are means per image, accuracies are in [0, 1].

    The training numbers are taken while the model learns, so they lag behind the validation numbers; with
    label smoothing the training loss also has another floor.
    """

    train_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def append(self, train: tuple[float, float], validation: tuple[float, float], seconds: float) -> None:
        """Add one epoch: (loss, accuracy) of training and of validation, and how long both took."""
        self.train_loss.append(train[0])
        self.train_accuracy.append(train[1])
        self.validation_loss.append(validation[0])
        self.validation_accuracy.append(validation[1])
        self.seconds.append(seconds)


class TrainingDivergedError(RuntimeError):
    """The loss became NaN or infinite."""


def fit(
    model: nn.Module,
    train: ImageDataset,
    validation: ImageDataset,
    settings: TrainingSettings,
    progress: bool | None = None,
) -> History:
    """Train a model in place.

    Args:
        model: images (batch, channels, height, width) float32 → logits (batch, num_classes).
        train: the images to learn from; their statistics normalise both sets.
        validation: the images to measure on after each epoch.
        settings: see `TrainingSettings`.
        progress: whether to draw a progress bar on stdout; None draws it on a terminal and in a notebook.

    Raises:
        TrainingDivergedError: naming the step, as soon as a loss is NaN or infinite.
    """
    train, model = train.to(settings.device), model.to(settings.device)
    validation = validation.with_statistics_of(train).to(settings.device)
    total_steps = settings.epochs * math.ceil(len(train) / settings.batch_size)
    updates = Updates(model, settings, total_steps)
    generator = torch.Generator().manual_seed(settings.seed)
    shown = draws_progress() if progress is None else progress
    total = settings.epochs * len(train)
    bar = tqdm(total=total, unit=" images", unit_scale=True, file=sys.stdout, disable=not shown)
    history = History()
    with bar, _seeded(settings):
        for epoch in range(1, settings.epochs + 1):
            started = time.perf_counter()
            bar.set_description(f"epoch {epoch}/{settings.epochs}")
            training = _train_one_epoch(model, batches(train, settings, generator), updates, settings, bar)
            measured = evaluate(model, validation)
            history.append(training, measured, time.perf_counter() - started)
            bar.set_postfix_str(f"validation loss {measured[0]:.3f}, accuracy {measured[1]:.1%}")
    return history


def batches(
    dataset: ImageDataset, settings: TrainingSettings, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """One epoch in random order: images (batch, channels, height, width) shifted and normalised, labels (batch,)."""
    order = torch.randperm(len(dataset), generator=generator).to(dataset.labels.device)
    for chosen in order.split(settings.batch_size):
        images = dataset.images[chosen]
        if settings.max_shift:
            images = random_shift(images, settings.max_shift, generator)
        yield dataset.normalize(images), dataset.labels[chosen]


def _train_one_epoch(
    model: nn.Module,
    epoch: Iterator[tuple[Tensor, Tensor]],
    updates: Updates,
    settings: TrainingSettings,
    bar: tqdm[Any],
) -> tuple[float, float]:
    """Mean loss per image and accuracy, taken on each batch before the update that it causes."""
    model.train()
    loss_sum, right, seen = 0.0, 0, 0
    for images, labels in epoch:
        logits = model(images)  # (batch, num_classes)
        loss = F.cross_entropy(logits, labels, label_smoothing=settings.label_smoothing)
        loss_value = loss.item()
        if not math.isfinite(loss_value):
            raise TrainingDivergedError(
                f"the loss is {loss_value} at step {updates.steps + 1} of {updates.total_steps}: "
                "try a smaller learning rate or a longer warm-up"
            )
        updates.step(loss)
        seen += len(labels)
        loss_sum += loss_value * len(labels)
        right += int((logits.argmax(dim=-1) == labels).sum())
        bar.set_postfix_str(f"loss {loss_sum / seen:.3f}, accuracy {right / seen:.1%}", refresh=False)
        bar.update(len(labels))
    return loss_sum / seen, right / seen


@contextmanager
def _seeded(settings: TrainingSettings) -> Iterator[None]:
    """Seed torch's global generators, which dropout draws from, and put their state back after."""
    device = torch.device(settings.device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(settings.seed)
        yield


def evaluate(model: nn.Module, dataset: ImageDataset, batch_size: int = 500) -> tuple[float, float]:
    """Mean loss per image and accuracy, with dropout off; the model's mode is restored after.

    Images are normalised by the data set's own `mean` and `std`, which a split takes from its training part.

    Returns:
        (mean cross-entropy in nats, share of right answers in [0, 1]).
    """
    device = next((parameter.device for parameter in model.parameters()), dataset.images.device)
    was_training = model.training
    model.eval()
    loss_sum, right = 0.0, 0
    try:
        with torch.inference_mode():
            for images, labels in zip(dataset.images.split(batch_size), dataset.labels.split(batch_size), strict=True):
                labels = labels.to(device)
                logits = model(dataset.normalize(images.to(device)))  # (batch, num_classes)
                loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
                right += int((logits.argmax(dim=-1) == labels).sum())
    finally:
        model.train(was_training)
    return loss_sum / len(dataset), right / len(dataset)


def random_shift(images: Tensor, max_shift: int, generator: torch.Generator) -> Tensor:
    """Shift each image by its own random whole number of pixels; edge pixels fill the gap.

    Args:
        images: (batch, channels, height, width), any dtype and device.
        max_shift: in pixels, along each axis, in either direction.
        generator: on the CPU, so that every device draws the same shifts.

    Returns:
        A tensor like `images`.
    """
    batch, channels, height, width = images.shape
    shifts = torch.randint(-max_shift, max_shift + 1, (2, batch, 1), generator=generator)
    rows = (torch.arange(height) + shifts[0]).clamp(0, height - 1).to(images.device)  # (batch, height)
    columns = (torch.arange(width) + shifts[1]).clamp(0, width - 1).to(images.device)  # (batch, width)
    image = torch.arange(batch, device=images.device)[:, None, None, None]
    channel = torch.arange(channels, device=images.device)[:, None, None]
    return images[image, channel, rows[:, None, :, None], columns[:, None, None, :]]


def draws_progress() -> bool:
    """Whether stdout is a terminal or a notebook, where a progress bar can be redrawn in place."""
    return sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel")
