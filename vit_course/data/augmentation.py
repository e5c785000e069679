"""Images changed at random while a model learns, each in its own way, all of a batch at once: flips, crops, mixes,
RandAugment.

torchvision's `v2.RandAugment` (Cubuk et al. 2020) changes all images of a call alike. Here every image draws its own
operations, images that have drawn the same one are changed together, and nothing waits for a GPU: no value is read
from it, and no number is copied to it at each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial

import torch
import torch.nn.functional as F
from torch import Tensor

Change = Callable[[Tensor], Tensor]

ROUNDS = 2  # operations for each image
MAGNITUDE, LEVELS = 9, 31  # levels 0 to 30; these three are torchvision's defaults
OPERATIONS = 14
SIGNED = 9  # the first ones, which go either way


def randaugment(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each image by two operations of RandAugment, drawn for it alone.

    Args:
        images: (batch, channels, height, width) uint8, on any device.
        generator: on the CPU.

    Returns:
        A tensor like `images`.

    Raises:
        ValueError: for images with neither 1 nor 3 channels.
    """
    if images.shape[1] not in (1, 3):
        raise ValueError(f"RandAugment takes images of 1 or 3 channels, not {images.shape[1]}")
    for _ in range(ROUNDS):
        images = one_operation(images, generator)
    return images


def one_operation(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each image of (batch, channels, height, width) by one operation, as likely as any other, and one sign."""
    batch, _, height, width = images.shape
    drawn = torch.randint(OPERATIONS, (batch,), generator=generator)
    opposite = torch.rand(batch, generator=generator) < 0.5
    drawn += OPERATIONS * (opposite & (drawn < SIGNED))
    order = drawn.argsort()  # neighbors have drawn the same
    there, back = (places.to(images.device, non_blocking=True) for places in (order, order.argsort()))
    every = changes(height, width, images.device)
    groups = images.index_select(0, there).split(drawn.bincount(minlength=len(every)).tolist())
    changed = [change(group) for change, group in zip(every, groups, strict=True) if len(group)]
    return torch.cat(changed).index_select(0, back) if changed else images


@lru_cache(maxsize=8)
def changes(height: int, width: int, device: torch.device) -> tuple[Change, ...]:
    """The operations at our magnitude: the signed ones, those without a sign, the signed ones the other way."""
    from torchvision.transforms.v2 import functional

    def signed(sign: int) -> list[Change]:
        shear = sign * math.degrees(math.atan(_level(0.0, 0.3)))
        right, down = (sign * int(_level(0.0, 150 / 331 * length)) for length in (width, height))
        factor = 1.0 + sign * _level(0.0, 0.9)
        still = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
        moves = [
            partial(functional.affine, **(still | {"shear": [shear, 0.0]}), center=[0, 0]),
            partial(functional.affine, **(still | {"shear": [0.0, shear]}), center=[0, 0]),
            partial(functional.affine, **(still | {"translate": [right, 0]})),
            partial(functional.affine, **(still | {"translate": [0, down]})),
            partial(functional.rotate, angle=sign * _level(0.0, 30.0)),
        ]
        return [
            *(partial(_moved, sources=_sources(move, height, width).to(device)) for move in moves),
            partial(functional.adjust_brightness, brightness_factor=factor),
            partial(functional.adjust_saturation, saturation_factor=factor),
            partial(functional.adjust_contrast, contrast_factor=factor),
            partial(_sharpened, factor=factor),
        ]

    unsigned: list[Change] = [
        lambda images: images,
        partial(functional.posterize, bits=round(8 - 4 * MAGNITUDE / (LEVELS - 1))),
        partial(functional.solarize, threshold=255 * _level(1.0, 0.0)),
        functional.autocontrast,
        functional.equalize,
    ]
    return (*signed(1), *unsigned, *signed(-1))


def _level(first: float, last: float) -> float:
    """Our magnitude in a range, rounded as torchvision's is."""
    return float(torch.linspace(first, last, LEVELS)[MAGNITUDE])


def _sources(move: Change, height: int, width: int) -> Tensor:
    """Where each pixel of a moved image comes from, counted from 1 row by row: (height * width,) int64; 0 is outside.

    torchvision tells it by moving an image of such numbers, on the CPU and once: its own call on a GPU copies a
    matrix there each time, and waits for it.
    """
    numbers = torch.arange(1.0, height * width + 1).view(1, 1, height, width)
    return move(numbers).flatten().long()


def _moved(images: Tensor, sources: Tensor) -> Tensor:
    """Pick every pixel of the result from where it was; black comes from outside."""
    framed = F.pad(images.flatten(2), (1, 0))  # place 0 is black
    return framed.gather(2, sources.expand(*images.shape[:2], -1)).view_as(images)


def _sharpened(images: Tensor, factor: float) -> Tensor:
    """torchvision's adjust_sharpness, without the kernel that it copies to a GPU: the edge stays, the rest is blended.

    The blurred image is a mean of 3 x 3 pixels in which the middle counts five times.
    """
    if min(images.shape[2:]) < 3:
        return images
    pixels = images.float()
    inner = pixels[..., 1:-1, 1:-1]
    rows = pixels[..., :-2, :] + pixels[..., 1:-1, :] + pixels[..., 2:, :]
    squares = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:]  # sums of 3 x 3 pixels
    blurred = squares.add_(inner, alpha=4).div_(13).round_()
    inner.add_(blurred.sub_(inner), alpha=1.0 - factor)
    return pixels.clamp_(0, 255).to(images.dtype)


@dataclass(frozen=True)
class Augmentation:
    """What happens to a training image. The default leaves it alone.

    Attributes:
        max_shift: largest shift in pixels along each axis; the image's edge fills the gap.
        flip: mirror left and right, each image with probability 1/2.
        erase: side in pixels of a square that is painted over in the image's mean color; 0 for none.
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
    """Change each image in its own way; blending (`mix`) comes later, on normalized images.

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
    color = images.sum((2, 3), keepdim=True) // (height * width)  # whole numbers: alike on every device
    return torch.where(square, color.to(images.dtype), images)
