"""The loop: one epoch of training, and one measurement.

`loader` is any iterable of (images, labels), for instance `vit_course.data.Batches`: images (batch, channels,
height, width) float, labels (batch,) int64. Sums of losses and right answers are kept on the device, so that counting
never makes it wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

Loader = Iterable[tuple[Tensor, Tensor]]


def train_one_epoch(model: nn.Module, loader: Loader, optimizer: Optimizer, device: torch.device | str) -> float:
    """Update the model once per batch, in training mode.

    Returns:
        The mean cross-entropy per image in nats, each taken before the update that it causes.
    """
    model.train()
    tally = Tally(device)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        logits = model(images)  # (batch, num_classes)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tally.add(loss.detach() * len(labels), logits, labels)
    return tally.loss


def evaluate(model: nn.Module, loader: Loader, device: torch.device | str) -> tuple[float, float]:
    """Measure the model as it is used, with dropout off; its mode is put back after.

    Returns:
        (mean cross-entropy per image in nats, share of right answers in [0, 1]).

    Raises:
        ValueError: when the loader gives no images.
    """
    tally = tally_predictions(model, loader, device)
    if tally.images == 0:
        raise ValueError("the loader gave no images, so there is nothing to take a mean of")
    return tally.loss, tally.accuracy


def tally_predictions(model: nn.Module, loader: Loader, device: torch.device | str) -> Tally:
    """Return what `evaluate` counts, before it is divided by the number of images."""
    tally = Tally(device)
    with evaluating(model), torch.inference_mode():
        for images, labels in loader:
            images, labels = images.to(device), labels.to(device)
            logits = model(images)  # (batch, num_classes)
            tally.add(F.cross_entropy(logits.float(), labels, reduction="sum"), logits, labels)
    return tally


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, the model is in evaluation mode; then each of its modules is in the mode in which it was."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


BEST_GUESSES = 5


class Tally:
    """Losses and right answers of any number of batches.

    Attributes:
        images: how many were added.
        sums: (3,) float64 on the device: of the losses, of right best guesses, of labels among the best five.
    """

    def __init__(self, device: torch.device | str) -> None:
        self.images = 0
        self.sums = torch.zeros(3, dtype=torch.float64, device=device)

    def add(self, loss_sum: Tensor, logits: Tensor, labels: Tensor) -> None:
        """Count one batch.

        Args:
            loss_sum: scalar, the sum of the images' losses.
            logits: (batch, num_classes).
            labels: (batch,) int64, or targets (batch, num_classes), whose largest counts.
        """
        self.sums += count_right_guesses(loss_sum, logits, labels)
        self.images += len(labels)

    def clear(self) -> Tally:
        """Begin anew, in the same memory."""
        self.sums.zero_()
        self.images = 0
        return self

    @property
    def loss(self) -> float:
        """Mean per image, in nats."""
        return self.sums[0].item() / self.images

    @property
    def accuracy(self) -> float:
        """Share of images whose label is the best guess."""
        return self.sums[1].item() / self.images

    @property
    def top5(self) -> float:
        """Share of images whose label is among the best five guesses."""
        return self.sums[2].item() / self.images


def count_right_guesses(loss_sum: Tensor, logits: Tensor, labels: Tensor) -> Tensor:
    """Return what `Tally.add` adds to its sums: (3,) float64 on the device."""
    if labels.ndim == 2:
        labels = labels.argmax(dim=-1)
    logits = logits.detach()
    best = logits.topk(min(BEST_GUESSES, logits.shape[-1])).indices  # (batch, guesses)
    right = best == labels[:, None]
    return torch.stack([loss_sum.detach().double(), right[:, 0].sum(), right.sum()])
