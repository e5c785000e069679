"""Stop when the validation loss has long since seen its best."""

from __future__ import annotations

import math


class EarlyStopping:
    """Count the epochs in a row without a new lowest validation loss.

    Args:
        patience: how many such epochs to wait for before saying stop.

    Attributes:
        best: the lowest loss so far; infinite before the first.
        bad_epochs: how many calls ago that was.

    Raises:
        ValueError: for a patience below 1.

    Source: Prechelt 1998, "Early stopping, but when?", class UP with the strip length 1.
    """

    def __init__(self, patience: int) -> None:
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience}")
        self.patience = patience
        self.best = math.inf
        self.bad_epochs = 0

    def step(self, validation_loss: float) -> bool:
        """Take in one epoch's loss, and say whether to stop; a NaN is no improvement."""
        if validation_loss < self.best:
            self.best = validation_loss
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        return self.bad_epochs >= self.patience
