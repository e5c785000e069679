"""What a running training tells: a bar with throughput, memory, loss, top-1 and top-5."""

from __future__ import annotations

import shutil
import sys
from types import TracebackType
from typing import TYPE_CHECKING

import torch
from tqdm import tqdm

if TYPE_CHECKING:
    from vit_course.training.tally import Tally

WIDE = 120  # columns of a terminal in which the whole bar has room
SHORT = "{desc}{percentage:.0f}%, {remaining}, {rate_fmt}{postfix}"


def draws_progress() -> bool:
    """Whether stdout is a terminal or a notebook, where a progress bar can be redrawn in place."""
    return sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel")


class Bar:
    """A bar over all images of all epochs, on stdout; nbgrader scores a cell that prints on stderr zero.

    Args:
        epochs: how many there are to be.
        images: in an epoch.
        done: epochs that an earlier run has done.
        device: whose memory is told.
        shown: whether to draw it at all.
    """

    def __init__(self, epochs: int, images: int, done: int, device: torch.device, shown: bool) -> None:
        self.epochs, self.device = epochs, device
        self.is_narrow = sys.stdout.isatty() and shutil.get_terminal_size().columns < WIDE
        self.bar = tqdm(
            total=epochs * images,
            initial=done * images,
            unit=" images",
            unit_scale=True,
            file=sys.stdout,
            disable=not shown,
            bar_format=SHORT if self.is_narrow else None,
        )

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.close()

    def begin(self, epoch: int) -> None:
        """Tell which epoch begins, counted from 1."""
        self.bar.set_description(f"epoch {epoch}/{self.epochs}")

    def advance(self, images: int, tally: Tally) -> None:
        """Tell that so many more images were seen, and how the epoch's went so far."""
        if not self.bar.disable:
            used = "" if self.is_narrow else f", {memory(self.device)}"
            self.bar.set_postfix_str(f"{self._words(tally)}{used}", refresh=False)
        self.bar.update(images)

    def measured(self, tally: Tally) -> None:
        """Tell what was measured on the validation images."""
        self.bar.set_postfix_str(f"validation {self._words(tally)}")

    def _words(self, tally: Tally) -> str:
        top5 = "" if self.is_narrow else f", top-5 {tally.top5:.1%}"
        return f"loss {tally.loss:.3f}, top-1 {tally.accuracy:.1%}{top5}"


def memory(device: torch.device) -> str:
    """Memory in use, in words: of the GPU at its peak, of the process on a CPU ("" where nothing tells)."""
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB"
    try:
        import psutil
    except ImportError:
        return ""
    return f"{psutil.Process().memory_info().rss / 2**30:.1f} GiB"
