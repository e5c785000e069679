"""Train a model in place: the one function that a caller needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch import nn

from vit_course.training.history import History
from vit_course.training.settings import TrainingSettings

if TYPE_CHECKING:
    from vit_course.data import ImageDataset
    from vit_course.data.folder import FolderBatches


def fit(
    model: nn.Module,
    train: ImageDataset | FolderBatches,
    validation: ImageDataset | FolderBatches,
    settings: TrainingSettings,
    progress: bool | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    trackers: Sequence[str] | None = None,
) -> History:
    """Train a model in place.

    It ends with the weights of the last epoch, or their moving average where the settings ask for one. Stopped early,
    or by Ctrl-C, it ends with the weights of the epoch that had the lowest validation loss.

    With a folder, `config.json` describes the run, `metrics.jsonl` has a line for each epoch, `best.safetensors` holds
    the weights of the epoch with the lowest validation loss, and from `last.safetensors` a killed run goes on: on a CPU
    in fp32 it reaches the same weights, bit for bit. Both weights files are written after an epoch, but at most every
    five seconds, and by Ctrl-C; a killed run repeats the epochs since then.

    Started by `torchrun` or `accelerate launch`, every process calls this alike and gets the same history.

    Args:
        model: images (batch, channels, height, width) float32 → logits (batch, num_classes).
        train: the images to learn from; their statistics normalize both sets.
        validation: the images to measure on after each epoch. Instead of two data sets, both may be the batches
            of `vit_course.data.folder_batches`.
        settings: see `TrainingSettings`.
        progress: whether to draw a progress bar on stdout; None draws it on a terminal and in a notebook.
        folder: where to keep the run; None keeps nothing.
        resume: go on with the run in `folder`, or begin it where there is none yet.
        trackers: of "tensorboard" and "wandb", whom to tell of each epoch; None for TensorBoard where it is installed
            and there is a folder.

    Raises:
        TrainingDivergedError: naming the step at which a loss was NaN or infinite.
        OutOfMemoryError: naming a batch size that fits, where a smaller one would help.
        RunFolderError: when `folder` holds a run and `resume` is false, or holds another run.
        CheckpointError: when the run's files cannot be read or written.
        ValueError: when settings, device and data do not fit together.
        ImportError: naming what to install for several processes or a tracker.
        TrackerError: when Weights & Biases does not start.
    """
    from vit_course.training.feeding import (
        check_number_of_classes,
        make_feed,
    )  # here, since a grader's worker has no part of the loop itself
    from vit_course.training.hardware import explain_out_of_memory, start_processes
    from vit_course.training.progress import Bar, draws_progress, open_trackers
    from vit_course.training.run_folder import RunFolder, describe_run
    from vit_course.training.trainer import Trainer

    if resume and folder is None:
        raise ValueError("resume goes on with the run in a folder, and none is given")
    processes = start_processes(settings.device)
    with explain_out_of_memory(processes.device):
        images = make_feed(train, validation, settings, processes)
    check_number_of_classes(model, images)
    description = describe_run(model, images, settings)
    place = None if folder is None else Path(folder)
    run_folder = None if place is None else RunFolder(place, description, resume)
    with explain_out_of_memory(processes.device):
        trainer = Trainer(model, images, settings, processes, run_folder)
    processes.wait_for_all()  # until all have looked at the folder
    if processes.is_main and run_folder is not None:
        run_folder.begin()
    done = len(trainer.history.seconds)
    opened = open_trackers(trackers, place, description, done) if processes.is_main else []
    shown = processes.is_main and (draws_progress() if progress is None else progress)
    try:
        with Bar(settings.epochs, images.num_train, done, processes.device, shown) as bar:
            history = trainer.run(bar, opened)
    finally:
        for tracker in opened:
            tracker.finish()
    if history.ending != "interrupted":
        processes.wait_for_all()
    return history
