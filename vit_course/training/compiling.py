"""torch.compile, and a training without it where it cannot compile."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from vit_course.training.processes import Processes


class Fusible(nn.Module):
    """A model with the same parameters, that torch.compile runs once `fuse` has been called and has succeeded.

    torch.compile needs more than torch: a C compiler, Python's headers, and for a GPU Triton, which knows no old ones.

    Args:
        model: images (batch, channels, height, width) → logits (batch, num_classes).
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.run: Callable[[Tensor], Tensor] = model.__call__  # the method, since a module would count as a second one

    def forward(self, images: Tensor) -> Tensor:
        """As the model does."""
        return self.run(images)

    def fuse(self, processes: Processes, attempt: Callable[[], None]) -> float:
        """Compile; where that fails, in one process of many or in all, say so once and leave the model as it was.

        Args:
            processes: this one among those that train together.
            attempt: does a forward and a backward pass of this module, in no need of the other processes, with each
                size of batch that will come.

        Returns:
            The seconds that it took; 0 when it failed.

        Raises:
            torch.OutOfMemoryError: by `attempt`.
        """
        started, reason = time.perf_counter(), ""
        plain = self.run
        try:
            # code for each size of batch: code for any size is slower, and an epoch has two sizes at most
            self.run = cast(nn.Module, torch.compile(self.model, dynamic=False)).__call__
            attempt()
        except torch.OutOfMemoryError:
            raise
        except Exception as error:  # of torch, Triton, a C compiler, the disk; one of the model's own comes again
            reason = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        failed = processes.sum(torch.tensor(float(reason != ""), device=processes.device))
        if failed.item() == 0:
            return time.perf_counter() - started
        self.run = plain
        if processes.is_main:
            told = f" ({reason})" if reason else ""
            warnings.warn(f"torch.compile cannot compile here{told}; training goes on without it", stacklevel=2)
        return 0.0
