"""The loop: one epoch of training, and one measurement.

`loader` is any iterable of (images, labels), for instance `vit_course.data.Batches`: images (batch, channels,
height, width) float, labels (batch,) int64.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from vit_course.training.tally import Tally

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
    tally = measure(model, loader, device)
    if tally.images == 0:
        raise ValueError("the loader gave no images, so there is nothing to take a mean of")
    return tally.loss, tally.accuracy


def measure(model: nn.Module, loader: Loader, device: torch.device | str) -> Tally:
    """What `evaluate` counts, before it is divided by the number of images."""
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
