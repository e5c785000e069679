"""Why a training stops before its end, other than early stopping and Ctrl-C."""

from __future__ import annotations


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
