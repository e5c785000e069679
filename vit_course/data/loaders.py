"""Batches of a data set that lies on the device as a whole, drawn and augmented there."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor

from vit_course.data.augmentation import Augmentation, augment, mix
from vit_course.data.image_dataset import ImageDataset


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
        generator = generator_of(self.seed, self.epoch)
        self.epoch += 1
        return self._one_pass(generator)

    def _one_pass(self, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
        dataset, device = self.dataset, self.dataset.labels.device
        count = len(dataset)
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        share = slice(self.rank, None, self.world_size)
        for chosen in order.to(device, non_blocking=True).split(self.batch_size):
            images = dataset.normalize(augment(dataset.images.index_select(0, chosen), self.augmentation, generator))
            labels = dataset.labels[chosen]
            if self.augmentation.mixes:
                images, labels = mix(images, labels, len(dataset.classes), self.augmentation, generator)
            yield images[share], labels[share]


def generator_of(*numbers: int) -> torch.Generator:
    """A generator on the CPU for a seed, a pass, and so on: other numbers draw unrelated ones."""
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=4).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
