"""The images of a run, as batches for this process."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from vit_course.config import ViTConfig
from vit_course.data import Batches, ImageDataset
from vit_course.data.folder import FolderBatches
from vit_course.training.hardware import Processes
from vit_course.training.settings import TrainingSettings


@dataclass(frozen=True)
class Feed:
    """What a run learns from and is measured on.

    Attributes:
        train, validation: batches for this process.
        num_train, num_validation: images of all processes together.
        about: name, classes and statistics of the data.
    """

    train: Batches | FolderBatches
    validation: Batches | FolderBatches
    num_train: int
    num_validation: int
    about: ImageDataset | FolderBatches

    def list_batch_sizes(self) -> list[int]:
        """Images in each batch of an epoch, of all processes together."""
        whole, rest = divmod(self.num_train, self.train.batch_size)
        return [self.train.batch_size] * whole + [rest] * (rest > 0)


def check_number_of_classes(model: nn.Module, images: Feed) -> None:
    """Say it before the loss does, in words.

    Raises:
        ValueError: when the model tells fewer classes apart than the images have.
    """
    config = getattr(model, "config", None)
    wanted = len(images.about.classes)
    if isinstance(config, ViTConfig) and config.num_classes < wanted:
        raise ValueError(f"the model has {config.num_classes} classes, and {images.about.name} has {wanted}")


def make_feed(
    train: ImageDataset | FolderBatches,
    validation: ImageDataset | FolderBatches,
    settings: TrainingSettings,
    processes: Processes,
) -> Feed:
    """Put data sets on the device and cut them into batches; ready-made batches go to the device as they are.

    Measuring keeps nothing for a backward pass, so its batches are twice as large.

    Raises:
        ValueError: when ready-made batches do not fit the settings or the processes.
    """
    if isinstance(train, FolderBatches) and isinstance(validation, FolderBatches):
        _check_batches_match_settings(train, settings, processes)
        _check_batches_match_settings(validation, settings, processes)
        train, validation = train.to(processes.device), validation.to(processes.device)
        return Feed(train, validation, len(train.images), len(validation.images), train)
    if not isinstance(train, ImageDataset) or not isinstance(validation, ImageDataset):
        raise ValueError("train and validation must both be an ImageDataset, or both come from folder_batches")
    size, device, rank, count = settings.batch_size, processes.device, processes.rank, processes.count
    batches = Batches(train, size, settings.augmentation, True, settings.seed, device, rank=rank, world_size=count)
    held_out = validation.with_statistics_of(train)
    measured = Batches(held_out, 2 * size, device=device, rank=rank, world_size=count)
    return Feed(batches, measured, len(train), len(validation), train)


def _check_batches_match_settings(batches: FolderBatches, settings: TrainingSettings, processes: Processes) -> None:
    if batches.batch_size != settings.batch_size:
        raise ValueError(f"batch_size is {settings.batch_size} in the settings and {batches.batch_size} in the batches")
    if batches.shuffle and batches.images.augmentation != settings.augmentation:
        raise ValueError("the settings' augmentation is not that of the batches: give both the same")
    if batches.shuffle and batches.images.seed != settings.seed:
        raise ValueError(
            f"seed is {settings.seed} in the settings and {batches.images.seed} in the batches: give both the same"
        )
    if (batches.rank, batches.world_size) != (processes.rank, processes.count):
        raise ValueError(
            f"this is process {processes.rank} of {processes.count}, and the batches are for {batches.rank} of "
            f"{batches.world_size}: give folder_batches this rank and world_size"
        )
