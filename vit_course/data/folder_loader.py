"""Class folders of images too large or too many for memory: read, cropped and changed while a model learns."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from vit_course.data.augmentation import Augmentation, augment, drawing_from, mix
from vit_course.data.decoding import fit_to_square, read_image
from vit_course.data.folder import Files, find_images
from vit_course.data.image_dataset import Channels, channel_statistics
from vit_course.data.loaders import generator_of

STATISTICS_FROM = 500  # images, spread over the training set

Ticket = tuple[int, int]  # the pass, and the number of the image


@dataclass(frozen=True)
class FolderImages(Dataset[tuple[Tensor, int]]):
    """Image files as a torch Dataset: (image (3, image_size, image_size) uint8, label).

    Attributes:
        files: which images.
        image_size: side in pixels.
        augmentation: what happens to each image after the crop.
        min_crop: least share of the area that a random crop keeps; 1 takes the middle square instead.
        seed: of crops and changes, which follow from it, the pass and the image's number alone.
    """

    files: Files
    image_size: int
    augmentation: Augmentation
    min_crop: float = 1.0
    seed: int = 0

    def __len__(self) -> int:
        return len(self.files.paths)

    def __getitem__(self, ticket: int | Ticket) -> tuple[Tensor, int]:
        epoch, index = ticket if isinstance(ticket, tuple) else (0, ticket)
        image = read_image(self.files.paths[index]).expand(3, -1, -1)
        generator = generator_of(self.seed, epoch, index)
        image = self._cropped(image, generator)
        return augment(image[None], self.augmentation, generator)[0], self.files.labels[index]

    def collate(self, samples: list[tuple[Tensor, int]]) -> tuple[Tensor, Tensor]:
        """Images (batch, 3, image_size, image_size) uint8 and labels (batch,) int64; an empty share is a batch too."""
        images = torch.empty(len(samples), 3, self.image_size, self.image_size, dtype=torch.uint8)
        for place, (image, _) in zip(images, samples, strict=True):
            place.copy_(image)
        return images, torch.tensor([label for _, label in samples], dtype=torch.int64)

    def _cropped(self, image: Tensor, generator: torch.Generator) -> Tensor:
        from torchvision.transforms import v2

        if self.min_crop == 1:
            return fit_to_square(image, self.image_size)
        with drawing_from(generator):
            cropped: Tensor = v2.RandomResizedCrop(self.image_size, scale=(self.min_crop, 1.0), antialias=True)(image)
        return cropped


class FolderBatches:
    """`FolderImages` in batches, again and again, with the protocol of `Batches`.

    With several processes each reads its share only; blending then stays inside a share.

    Attributes:
        images: the Dataset.
        name, classes, mean, std: as those of an `ImageDataset`.
        epoch: number of the next pass, from 0; counts up by itself, and may be set.
    """

    def __init__(
        self,
        images: FolderImages,
        name: str,
        classes: tuple[str, ...],
        statistics: tuple[Channels, Channels],
        batch_size: int,
        *,
        shuffle: bool = False,
        device: torch.device | str = "cpu",
        num_workers: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self.images, self.name, self.classes = images, name, classes
        self.mean, self.std = statistics
        self.batch_size, self.shuffle, self.device, self.num_workers = batch_size, shuffle, device, num_workers
        self.rank, self.world_size = rank, world_size
        self.epoch = 0

    def __len__(self) -> int:
        return math.ceil(len(self.images) / self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        epoch, self.epoch = self.epoch, self.epoch + 1
        return self._one_pass(epoch)

    def to(self, device: torch.device | str) -> FolderBatches:
        """The same batches, from the next pass on, for another device."""
        moved = copy.copy(self)
        moved.device = device
        return moved

    def _one_pass(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        generator = generator_of(self.images.seed, epoch)
        count = len(self.images)
        order = torch.randperm(count, generator=generator) if self.shuffle else torch.arange(count)
        shares = [chosen[self.rank :: self.world_size] for chosen in order.split(self.batch_size)]
        tickets = [[(epoch, index) for index in share.tolist()] for share in shares]
        mean, std = torch.tensor([self.mean, self.std], device=self.device)[..., None, None]
        pinned = torch.device(self.device).type == "cuda"
        loader = DataLoader(
            self.images,
            batch_sampler=tickets,
            num_workers=self.num_workers,
            pin_memory=pinned,
            collate_fn=self.images.collate,
        )
        for pixels, labels in loader:
            images = pixels.to(self.device, non_blocking=True) / 255
            images, labels = images.sub_(mean).div_(std), labels.to(self.device, non_blocking=True)
            if self.images.augmentation.mixes:
                images, labels = mix(images, labels, len(self.classes), self.images.augmentation, generator)
            yield images, labels


def folder_batches(
    root: Path | str,
    image_size: int,
    batch_size: int,
    augmentation: Augmentation | None = None,
    *,
    min_crop: float = 0.35,
    seed: int = 0,
    device: torch.device | str = "cpu",
    num_workers: int = 0,
    rank: int = 0,
    world_size: int = 1,
) -> tuple[FolderBatches, FolderBatches]:
    """Training and test batches from class folders, for images of any size.

    Training images are cropped at random (Inception's crop, torchvision's RandomResizedCrop) and augmented, each
    by itself; test images are scaled and their middle is cut out. Grey images get three equal channels.

    Args:
        root: class folders, as `vit_course.data.folder` describes them.
        image_size: side in pixels of what the model sees.
        batch_size: of all processes together.
        augmentation: of the training images; None for nothing but the crop.
        min_crop: least share of the area that a random crop keeps; 1 for no random crop.
        seed: of the order, the crops and the augmentation.
        device: where the batches go; `fit` sends them to that of its settings.
        num_workers: processes that read files beside this one.
        rank, world_size: which of how many training processes this is.

    Raises:
        DatasetError: as `load_folder` does, but for sizes; a broken file is found when its turn comes.
        ValueError: for a size below 1, or min_crop outside (0, 1].
    """
    if min(image_size, batch_size) < 1 or not 0 < min_crop <= 1:
        raise ValueError(
            "image_size and batch_size must be at least 1, and min_crop above 0 and at most 1, "
            f"not {image_size}, {batch_size} and {min_crop}"
        )
    found = find_images(root)
    plain = FolderImages(found.train, image_size, Augmentation())
    step = math.ceil(len(plain) / STATISTICS_FROM)
    statistics = channel_statistics(torch.stack([plain[index][0] for index in range(0, len(plain), step)]))
    changed = replace(plain, augmentation=augmentation or Augmentation(), min_crop=min_crop, seed=seed)
    batches = partial(
        FolderBatches,
        name=found.name,
        classes=found.classes,
        statistics=statistics,
        batch_size=batch_size,
        device=device,
        num_workers=num_workers,
        rank=rank,
        world_size=world_size,
    )
    return batches(changed, shuffle=True), batches(replace(plain, files=found.test), shuffle=False)
