"""What happened in a training, epoch by epoch, and the errors that end one, other than early stopping and Ctrl-C."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal


class TrainingDivergedError(RuntimeError):
    """The loss became NaN or infinite; the message names the step."""


class OutOfMemoryError(RuntimeError):
    """A batch does not fit into the device's memory; the message says which would.

    Attributes:
        batch_size: the largest tried that fits, or None when not even one image does.
    """

    def __init__(self, message: str, batch_size: int | None) -> None:
        super().__init__(message)
        self.batch_size = batch_size


class RunFolderError(ValueError):
    """A run folder is in use, or belongs to another run; the message says what to do."""


Ending = Literal["running", "finished", "stopped early", "interrupted"]


@dataclass
class History:
    """What happened, one entry per epoch: losses are means per image, accuracies are in [0, 1].

    The training numbers are taken while the model learns, so they lag behind the validation numbers; with
    label smoothing or blended images the training loss also has another floor.

    Attributes:
        train_loss, train_accuracy, train_top5: of the training images, as augmented.
        validation_loss, validation_accuracy, validation_top5: of the validation images, after the epoch.
        seconds: of training and validation, without writing checkpoints, by the clock.
        cpu_seconds: the same, of all threads of this process, which other work beside changes less.
        learning_rate: of AdamW, at the epoch's last step.
        ending: why the training ended, or "running".
        compile_seconds: what torch.compile took before the first epoch.
    """

    train_loss: list[float] = field(default_factory=list)
    train_accuracy: list[float] = field(default_factory=list)
    validation_loss: list[float] = field(default_factory=list)
    validation_accuracy: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)
    train_top5: list[float] = field(default_factory=list)
    validation_top5: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    ending: Ending = "running"
    compile_seconds: float = 0.0

    def append(self, **numbers: float) -> None:
        """Add one epoch: a number for each list, by its name."""
        for name in self._name_lists():
            getattr(self, name).append(numbers[name])

    def rows(self) -> list[dict[str, float]]:
        """One dict per epoch, with its number (from 1) as "epoch"."""
        columns = [getattr(self, name) for name in self._name_lists()]
        names = ["epoch", *self._name_lists()]
        return [dict(zip(names, (epoch, *row), strict=True)) for epoch, row in enumerate(zip(*columns, strict=True), 1)]

    @property
    def best_epoch(self) -> int | None:
        """The epoch (from 1) with the lowest validation loss, the first of equals; None before the first."""
        if not self.validation_loss:
            return None
        return self.validation_loss.index(min(self.validation_loss)) + 1

    @classmethod
    def _name_lists(cls) -> list[str]:
        return [each.name for each in fields(cls) if each.name not in ("ending", "compile_seconds")]
