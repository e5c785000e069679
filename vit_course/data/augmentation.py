"""Images changed at random while a model learns, each in its own way, all of a batch at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.data.randaugment import randaugment


@dataclass(frozen=True)
class Augmentation:
    """What happens to a training image. The default leaves it alone.

    Attributes:
        max_shift: largest shift in pixels along each axis; the image's edge fills the gap.
        flip: mirror left and right, each image with probability 1/2.
        erase: side in pixels of a square that is painted over in the image's mean colour; 0 for none.
        mixup: alpha of MixUp; 0 for none.
        cutmix: alpha of CutMix; 0 for none. With both, each batch gets one of the two.
        randaugment: two random operations of RandAugment for each image.

    Raises:
        ValueError: for a negative number.
    """

    max_shift: int = 0
    flip: bool = False
    erase: int = 0
    mixup: float = 0.0
    cutmix: float = 0.0
    randaugment: bool = False

    def __post_init__(self) -> None:
        for name in ("max_shift", "erase", "mixup", "cutmix"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, but it is {getattr(self, name)}")

    @property
    def mixes(self) -> bool:
        """Whether images, and with them labels, are blended."""
        return self.mixup > 0 or self.cutmix > 0


def augment(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Change each image in its own way; blending (`mix`) comes later, on normalised images.

    Args:
        images: (batch, channels, height, width) uint8, on any device.
        augmentation: what to do.
        generator: on the CPU, so that every device sees the same changes.

    Returns:
        A tensor like `images`.

    Raises:
        ValueError: for RandAugment of images with neither 1 nor 3 channels.
    """
    if augmentation.max_shift or augmentation.flip:
        images = _shift_and_flip(images, augmentation, generator)
    if augmentation.randaugment:
        images = randaugment(images, generator)
    if augmentation.erase:
        images = _erase(images, augmentation.erase, generator)
    return images


def mix(
    images: Tensor, labels: Tensor, num_classes: int, augmentation: Augmentation, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Blend each image, and its label, with the one before it in the batch; the first with the last.

    MixUp (Zhang et al. 2018) adds the two, CutMix (Yun et al. 2019) pastes a rectangle of the other one in.
    The share, or the rectangle, is drawn once for the batch, as torchvision does; with both, a coin decides.

    Args:
        images: (batch, channels, height, width) float.
        labels: (batch,) int64.
        num_classes: length of a target.
        augmentation: its `mixup` and `cutmix`; with neither, the images come back as they are.
        generator: on the CPU.

    Returns:
        images like `images`, and targets (batch, num_classes) float32, each row summing to 1.
    """
    from torchvision.transforms import v2

    choices = [
        kind(alpha=alpha, num_classes=num_classes)
        for kind, alpha in ((v2.MixUp, augmentation.mixup), (v2.CutMix, augmentation.cutmix))
        if alpha > 0
    ]
    if not choices:
        return images, F.one_hot(labels, num_classes).float()
    chosen = choices[int(torch.randint(len(choices), (), generator=generator))]
    with drawing_from(generator):
        mixed: tuple[Tensor, Tensor] = chosen(images, labels)
    return mixed


@contextmanager
def drawing_from(generator: torch.Generator) -> Iterator[None]:
    """Let code that knows only torch's global generator draw from this one; its state is put back after.

    The generators of GPUs are left alone: torchvision draws on the CPU.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        yield


def _shift_and_flip(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Pick every pixel of the result from where it was: one gather for the whole batch."""
    batch, channels, height, width = images.shape
    reach = augmentation.max_shift
    down, right = torch.randint(-reach, reach + 1, (2, batch, 1), generator=generator)
    rows = (torch.arange(height) + down).clamp(0, height - 1)  # (batch, height)
    columns = (torch.arange(width) + right).clamp(0, width - 1)  # (batch, width)
    if augmentation.flip:
        mirrored = torch.rand(batch, 1, generator=generator) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    rows, columns = (places.to(images.device, non_blocking=True) for places in (rows, columns))
    source = rows[:, :, None] * width + columns[:, None, :]  # (batch, height, width)
    source = source.view(batch, 1, -1).expand(-1, channels, -1)
    return images.flatten(2).gather(2, source).view_as(images)


def _erase(images: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Paint a square over each image, around any of its pixels (Cutout, DeVries and Taylor 2017)."""
    batch, _, height, width = images.shape
    covered = []
    for length in (height, width):
        first = torch.randint(length, (batch, 1), generator=generator) - side // 2
        ticks = torch.arange(length)
        covered.append(((ticks >= first) & (ticks < first + side)).to(images.device, non_blocking=True))
    square = covered[0][:, None, :, None] & covered[1][:, None, None, :]  # (batch, 1, height, width)
    colour = images.sum((2, 3), keepdim=True) // (height * width)  # whole numbers: alike on every device
    return torch.where(square, colour.to(images.dtype), images)
