"""A data set as one pair of tensors, uint8 images and int64 labels, small enough for a GPU; what can be wrong with one.

Its batches are drawn and augmented on the device on which it lies as a whole.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from vit_course.data.augmentation import Augmentation, augment, mix


class DatasetError(ValueError):
    """A data set that cannot be used; the message says what is wrong, where, and what to do about it."""


class MissingDatasetError(DatasetError):
    """A data set that is not there and could not be fetched either."""


Channels = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Labeled images, with the statistics that normalize them.

    Attributes:
        images: (num_images, channels, height, width) uint8.
        labels: (num_images,) int64, indices into `classes`.
        classes: the name of each class.
        name: of the data set, for titles and messages.
        mean, std: one number per channel, on the scale where white is 1. Computed from `images` when left
            out; `train_validation_split` gives both parts those of the training part.

    Raises:
        ValueError: when dtypes, shapes or labels do not fit together.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]
    name: str
    mean: Channels = ()
    std: Channels = ()

    def __post_init__(self) -> None:
        self._check_images_and_labels()
        if not self.mean or not self.std:
            mean, std = channel_statistics(self.images)
            object.__setattr__(self, "mean", mean)
            object.__setattr__(self, "std", std)

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        count, channels, height, width = self.images.shape
        return f"ImageDataset({self.name}: {count} images {channels}x{height}x{width}, {len(self.classes)} classes)"

    def subset(self, indices: Tensor | slice) -> ImageDataset:
        """The chosen images (indices (num_chosen,) int64 or a slice), with the same statistics."""
        if isinstance(indices, Tensor):
            indices = indices.to(self.labels.device)
        return replace(self, images=self.images[indices], labels=self.labels[indices])

    def to(self, device: torch.device | str) -> ImageDataset:
        """The same data on another device, still uint8: a quarter of the memory of float32."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def with_statistics_of(self, other: ImageDataset) -> ImageDataset:
        """The same images, to be normalized like `other`, which is what the model was trained on."""
        return replace(self, mean=other.mean, std=other.std)

    def normalize(self, images: Tensor) -> Tensor:
        """Turn uint8 images (batch, channels, height, width) into float32 of mean 0 and deviation 1."""
        mean, std = self._mean_and_std.to(images.device, non_blocking=True)
        return (images / 255).sub_(mean).div_(std)

    @cached_property
    def _mean_and_std(self) -> Tensor:
        """Mean and std, (2, channels, 1, 1), where the images are: a GPU must not wait for them at each step."""
        return torch.tensor([self.mean, self.std], device=self.images.device)[..., None, None]

    def _check_images_and_labels(self) -> None:
        images, labels = self.images, self.labels
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(f"images must be uint8 (N, C, H, W), not {images.dtype} {tuple(images.shape)}")
        if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
            dtype = str(labels.dtype).removeprefix("torch.")
            raise ValueError(f"labels must be int64 ({len(images)},), one per image, not {dtype} {tuple(labels.shape)}")
        if len(labels) == 0:
            raise ValueError(f"the data set {self.name} holds no image")
        low, high = int(labels.min()), int(labels.max())
        if low < 0 or high >= len(self.classes):
            raise ValueError(f"labels run from {low} to {high}, but {len(self.classes)} classes have a name")


def channel_statistics(images: Tensor) -> tuple[Channels, Channels]:
    """Mean and standard deviation of each channel, exact, from a histogram of the pixel values.

    Args:
        images: (num_images, channels, height, width) uint8.

    Returns:
        Two tuples of `channels` floats on the scale where 255 is 1. A constant channel has deviation 1, so
        that dividing by it is harmless.
    """
    values = torch.arange(256, dtype=torch.float64, device=images.device) / 255
    means, stds = [], []
    for channel in images.unbind(1):
        share = torch.bincount(channel.flatten(), minlength=256).double() / channel.numel()
        mean = (share * values).sum()
        variance = (share * (values - mean).square()).sum()
        means.append(mean.item())
        stds.append(variance.sqrt().item() or 1.0)
    return tuple(means), tuple(stds)


def train_validation_split(
    dataset: ImageDataset, num_validation: int, seed: int = 0
) -> tuple[ImageDataset, ImageDataset]:
    """Cut a data set in two at random; no image is in both parts, and each is in one.

    The statistics of both parts are computed from the training part alone: a validation image must not
    take part in preparing the model that it judges.

    Raises:
        ValueError: when a part would be empty.
    """
    from vit_course.data.splits import split_indices

    chosen, held_back = split_indices(len(dataset), num_validation, seed)
    train = replace(dataset.subset(chosen), mean=(), std=())
    return train, dataset.subset(held_back).with_statistics_of(train)


class Batches:
    """A data set in batches, again and again: (images, labels) on the device.

    Images are (batch, channels, height, width) float32, normalized by the data set's statistics; labels are
    (batch,) int64. Where the augmentation mixes (`Augmentation.mixes`), targets (batch, num_classes) float32
    stand in for the labels; `F.cross_entropy` takes either.

    The order and the augmentation of a pass follow from `seed` and `epoch` alone. With several processes,
    process `rank` gets every `world_size`-th image of each batch: all of them together see what one process
    alone would have seen. The share of a last, short batch may be empty.

    Args:
        dataset: moved to `device` once, as uint8.
        batch_size: of all processes together; the last batch may be smaller.
        augmentation: what happens to the images; None for nothing.
        shuffle: whether each pass has an order of its own, or all that of the data set.
        seed: of the order and the augmentation.
        device: None for that of the data set.
        rank, world_size: which of how many processes this is.

    Attributes:
        epoch: number of the next pass, from 0; counts up by itself, and may be set.

    Raises:
        ValueError: for a batch size below 1, or a rank outside 0 to world_size - 1.
    """

    def __init__(
        self,
        dataset: ImageDataset,
        batch_size: int,
        augmentation: Augmentation | None = None,
        shuffle: bool = False,
        seed: int = 0,
        device: torch.device | str | None = None,
        *,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} is not between 0 and world_size - 1 = {world_size - 1}")
        self.dataset = dataset if device is None else dataset.to(device)
        self.batch_size = batch_size
        self.augmentation = augmentation or Augmentation()
        self.shuffle = shuffle
        self.seed = seed
        self.rank, self.world_size = rank, world_size
        self.epoch = 0

    def __len__(self) -> int:
        return math.ceil(len(self.dataset) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        generator = make_generator(self.seed, self.epoch)
        return (self.prepare(generator, *inputs) for inputs in self.choices(generator))

    def choices(self, generator: torch.Generator) -> Iterator[tuple[Tensor, ...]]:
        """The images of the next pass by number, batch by batch: ((batch,) int64,) on the device.

        Args:
            generator: on the CPU; the order is the first that it draws.
        """
        self.epoch += 1
        count = len(self.dataset)
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        return ((chosen,) for chosen in order.to(self.dataset.labels.device, non_blocking=True).split(self.batch_size))

    def prepare(self, generator: torch.Generator, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """This process's share of the batch of these numbers, augmented and normalized.

        Args:
            generator: on the CPU, or on the device, which then waits for nothing.
            inputs: what `choices` gives, (batch,) int64 on the device.
        """
        (chosen,) = inputs
        dataset = self.dataset
        images = augment(dataset.images.index_select(0, chosen), self.augmentation, generator)
        images, labels = dataset.normalize(images), dataset.labels.index_select(0, chosen)
        if self.augmentation.mixes:
            images, labels = mix(images, labels, len(dataset.classes), self.augmentation, generator)
        return images[self.rank :: self.world_size], labels[self.rank :: self.world_size]


def make_generator(*numbers: int) -> torch.Generator:
    """A generator on the CPU for a seed, a pass, and so on: other numbers draw unrelated ones."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
