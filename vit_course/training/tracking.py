"""Where numbers go to be looked at in a browser: TensorBoard, or Weights & Biases on request, by accelerate."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

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
        _require(name, folder)
    trackers: list[GeneralTracker] = []
    for name in names:
        trackers.append(_tensorboard(folder, epochs_done) if name == "tensorboard" else _wandb(description))
    return trackers


def _tensorboard(folder: Path | None, epochs_done: int) -> GeneralTracker:
    from accelerate.tracking import TensorBoardTracker

    tracker = TensorBoardTracker("tensorboard", logging_dir=str(folder), purge_step=epochs_done + 1)
    tracker.start()
    return tracker


def _wandb(description: dict[str, Any]) -> GeneralTracker:
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


def _require(name: str, folder: Path | None) -> None:
    if name not in PACKAGES:
        raise ValueError(f"no tracker {name!r}; there are {', '.join(PACKAGES)}")
    if name == "tensorboard" and folder is None:
        raise ValueError("TensorBoard writes into the run's folder, and this run has none")
    if find_spec("accelerate") is None:
        raise ImportError(f'{name} is reached by accelerate, which is missing: pip install "vit-course[train]"')
    if find_spec(PACKAGES[name]) is None:
        raise ImportError(f"{name} is missing: pip install {PACKAGES[name]}")
