"""Sums of losses and right answers, kept on the device so that counting never makes it wait."""

from __future__ import annotations

import torch
from torch import Tensor

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
        if labels.ndim == 2:
            labels = labels.argmax(dim=-1)
        logits = logits.detach()
        best = logits.topk(min(BEST_GUESSES, logits.shape[-1])).indices  # (batch, guesses)
        right = best == labels[:, None]
        self.sums += torch.stack([loss_sum.detach().double(), right[:, 0].sum(), right.sum()])
        self.images += len(labels)

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
