"""A running training, shown: a bar with throughput, memory, loss and accuracy; TensorBoard or, on request, Weights &
Biases.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from tqdm import tqdm

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

    from vit_course.training.loop import Tally


Step = TypeVar("Step")
SECONDS = 0.5  # from one drawing of a bar to the next: some programs that run notebooks keep each of them
WIDE = 120  # columns of a terminal in which the whole bar has room
SHORT = "{desc}{percentage:.0f}%, {remaining}, {rate_fmt}{postfix}"


def draws_progress() -> bool:
    """Say whether stdout is a terminal or a notebook, where a progress bar can be redrawn in place."""
    return sys.stdout.isatty() or type(sys.stdout).__module__.startswith("ipykernel")


def bar(steps: Iterable[Step], what: str, total: int | None = None) -> Iterable[Step]:
    """Go through steps under a bar on stdout, with the time to the end; in a pipe without one.

    Args:
        steps: epochs, models, batches, or whatever takes a while.
        what: is done in them, in a few words.
        total: how many they are, where they have no length.
    """
    hidden = not draws_progress()
    return tqdm(steps, what, total, leave=False, file=sys.stdout, ncols=80, mininterval=SECONDS, disable=hidden)


class Bar:
    """A bar over all images of all epochs, on stdout; nbgrader scores a cell that prints on stderr zero.

    Args:
        epochs: how many there are to be.
        images: in an epoch.
        done: epochs that an earlier run has done.
        device: whose memory is shown.
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
            mininterval=SECONDS,
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
            used = "" if self.is_narrow else f", {describe_gpu_memory(self.device)}"
            self.bar.set_postfix_str(f"{self._describe(tally)}{used}", refresh=False)
        self.bar.update(images)

    def show_validation(self, tally: Tally) -> None:
        """Tell what was measured on the validation images."""
        self.bar.set_postfix_str(f"validation {self._describe(tally)}")

    def _describe(self, tally: Tally) -> str:
        top5 = "" if self.is_narrow else f", top-5 {tally.top5:.1%}"
        return f"loss {tally.loss:.3f}, top-1 {tally.accuracy:.1%}{top5}"


def describe_gpu_memory(device: torch.device) -> str:
    """Memory in use, in words: of the GPU at its peak, of the process on a CPU ("" where nothing tells)."""
    if device.type == "cuda":
        return f"{torch.cuda.max_memory_allocated(device) / 2**30:.1f} GiB"
    try:
        import psutil
    except ImportError:
        return ""
    return f"{psutil.Process().memory_info().rss / 2**30:.1f} GiB"


PACKAGES = {"tensorboard": "tensorboard", "wandb": "wandb"}


class TrackerError(RuntimeError):
    """Weights & Biases does not start; the message says why and what to do."""


def open_trackers(
    names: Sequence[str] | None, folder: Path | None, description: dict[str, Any], epochs_done: int
) -> list[GeneralTracker]:
    """Start what follows a run.

    Args:
        names: of "tensorboard" and "wandb"; None for TensorBoard where it is installed and there is a folder.
        folder: of the run, in which TensorBoard's files go to `tensorboard/`.
        description: what the run is, which Weights & Biases keeps with it.
        epochs_done: by an earlier run; what TensorBoard has of later ones is hidden.

    Raises:
        ValueError: for another name, or TensorBoard without a folder.
        ImportError: naming what to install.
        TrackerError: when Weights & Biases does not start.
    """
    if names is None:
        installed = find_spec("accelerate") is not None and find_spec("tensorboard") is not None
        names = ("tensorboard",) if folder is not None and installed else ()
    for name in names:
        _require_package(name, folder)
    trackers: list[GeneralTracker] = []
    for name in names:
        trackers.append(
            _make_tensorboard_tracker(folder, epochs_done)
            if name == "tensorboard"
            else _make_wandb_tracker(description)
        )
    return trackers


def _make_tensorboard_tracker(folder: Path | None, epochs_done: int) -> GeneralTracker:
    from accelerate.tracking import TensorBoardTracker

    tracker = TensorBoardTracker("tensorboard", logging_dir=str(folder), purge_step=epochs_done + 1)
    tracker.start()
    return tracker


def _make_wandb_tracker(description: dict[str, Any]) -> GeneralTracker:
    from accelerate.tracking import WandBTracker
    from wandb.errors import Error

    tracker = WandBTracker("vit_course")
    try:
        tracker.start()
        tracker.store_init_configuration(description)
    except (Error, OSError) as error:
        raise TrackerError(
            f"Weights & Biases does not start: {' '.join(str(error).split())}. "
            "Log in by `wandb login`, or keep its files here by WANDB_MODE=offline"
        ) from error
    return tracker


def _require_package(name: str, folder: Path | None) -> None:
    if name not in PACKAGES:
        raise ValueError(f"no tracker {name!r}; there are {', '.join(PACKAGES)}")
    if name == "tensorboard" and folder is None:
        raise ValueError("TensorBoard writes into the run's folder, and this run has none")
    if find_spec("accelerate") is None:
        raise ImportError(f'{name} is reached by accelerate, which is missing: pip install "vit-course[train]"')
    if find_spec(PACKAGES[name]) is None:
        raise ImportError(f"{name} is missing: pip install {PACKAGES[name]}")
