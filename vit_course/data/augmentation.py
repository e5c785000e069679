"""Images changed at random while a model learns, each in its own way, all of a batch at once: flips, crops, turns,
colors, squares, mixes, and RandAugment (`vit_course.data.randaugment`).

Whoever draws on the CPU changes a batch alike on every device. Whoever draws on the GPU on which the images lie makes
it wait for nothing: no value is read from it, none is copied to it, and no size depends on what was drawn, so that a
CUDA graph can record it all.

Ours, because it is quicker: 512 CIFAR images were shifted and flipped in 1.6 ms of one CPU core, by kornia 0.9 in
11, and by torchvision's v2, image by image, in 37; RandAugment took 8, 30 and 124 (2026-11-28).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
        erase: side in pixels of a square that is painted over in the image's mean color; 0 for none.
        mixup: alpha of MixUp; 0 for none.
        cutmix: alpha of CutMix; 0 for none. With both, each batch gets one of the two.
        randaugment: two random operations of RandAugment for each image.
        affine: how strongly an image is turned, sheared and scaled, with probability 1/2; at 1 by up to 20 degrees, a
            fifth of its side, and a fifth. The image's mirror fills the gap.
        color: how strongly contrast, brightness and saturation change, with probability 1/2; at 1 by up to 50, 25 and
            60 percent.

    Raises:
        ValueError: for a negative number.
    """

    max_shift: int = 0
    flip: bool = False
    erase: int = 0
    mixup: float = 0.0
    cutmix: float = 0.0
    randaugment: bool = False
    affine: float = 0.0
    color: float = 0.0

    def __post_init__(self) -> None:
        for name in ("max_shift", "erase", "mixup", "cutmix", "affine", "color"):
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
        generator: on the CPU, so that every device sees the same changes, or on the images' device.

    Returns:
        A tensor like `images`.

    Raises:
        ValueError: for RandAugment of images with neither 1 nor 3 channels.
    """
    if augmentation.max_shift or augmentation.flip:
        images = _shift_and_flip(images, augmentation, generator)
    if augmentation.randaugment:
        images = randaugment(images, generator)
    if augmentation.affine or augmentation.color:
        pixels = images.float()  # both in one go, so that pixels are rounded once
        pixels = _rotate_and_scale(pixels, augmentation.affine, generator) if augmentation.affine else pixels
        pixels = _recolor(pixels, augmentation.color, generator) if augmentation.color else pixels
        images = pixels.round_().clamp_(0, 255).to(images.dtype)
    if augmentation.erase:
        images = _erase_random_squares(images, augmentation.erase, generator)
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
        generator: on the CPU, or on the images' device.

    Returns:
        images like `images`, and targets (batch, num_classes) float32, each row summing to 1.
    """
    targets = (labels[:, None] == torch.arange(num_classes, device=labels.device)).float()
    kept = _draw_mixing_shares(images, augmentation, generator)
    if kept is None:
        return images, targets
    kept = kept.to(images.device, non_blocking=True)  # (height, width)
    share = kept.mean()
    return torch.lerp(images.roll(1, 0), images, kept), torch.lerp(targets.roll(1, 0), targets, share)


def _draw_mixing_shares(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor | None:
    """Of each pixel's value the share that stays: (height, width) on the generator's device; None where all does."""
    place = _make_draw_arguments(generator)
    height, width = images.shape[2:]
    shares = {
        name: torch._sample_dirichlet(torch.full((2,), alpha, device=generator.device), generator)[0]
        for name, alpha in (("mixup", augmentation.mixup), ("cutmix", augmentation.cutmix))
        if alpha > 0
    }
    added = shares["mixup"].expand(height, width) if "mixup" in shares else None
    if "cutmix" not in shares:
        return added
    rows, columns = (
        _mark_places_near(torch.randint(length, (), **place), (1 - shares["cutmix"]).sqrt() * length / 2, length)
        for length in (height, width)
    )
    pasted = 1.0 - (rows[:, None] & columns).float()
    return pasted if added is None else torch.where(torch.rand((), **place) < 0.5, added, pasted)


def _mark_places_near(center: Tensor, reach: Tensor, length: int) -> Tensor:
    """Which of so many places are nearer to the center than the reach, rounded down: (length,) bool."""
    ticks, reach = torch.arange(length, device=center.device), reach.floor()
    return (ticks >= center - reach) & (ticks < center + reach)


def _make_draw_arguments(generator: torch.Generator) -> dict[str, Any]:
    """Return what torch's functions that draw are told to draw with this generator, where it lives."""
    return {"generator": generator, "device": generator.device}


@contextmanager
def use_as_global_generator(generator: torch.Generator) -> Iterator[None]:
    """Let code that knows only torch's global generator draw from this one; its state is put back after.

    The generators of GPUs are left alone: torchvision draws on the CPU.
    """
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(torch.randint(2**31, (), generator=generator)))
        yield


def _shift_and_flip(images: Tensor, augmentation: Augmentation, generator: torch.Generator) -> Tensor:
    """Pick every pixel of the result from where it was: one gather for the whole batch."""
    batch, channels, height, width = images.shape
    reach, place = augmentation.max_shift, _make_draw_arguments(generator)
    down, right = torch.randint(-reach, reach + 1, (2, batch, 1), **place)
    rows = (torch.arange(height, device=generator.device) + down).clamp(0, height - 1)  # (batch, height)
    columns = (torch.arange(width, device=generator.device) + right).clamp(0, width - 1)  # (batch, width)
    if augmentation.flip:
        mirrored = torch.rand(batch, 1, **place) < 0.5
        columns = torch.where(mirrored, columns.flip(1), columns)
    rows, columns = (places.to(images.device, non_blocking=True) for places in (rows, columns))
    source = rows[:, :, None] * width + columns[:, None, :]  # (batch, height, width)
    source = source.view(batch, 1, -1).expand(-1, channels, -1)
    return images.flatten(2).gather(2, source).view_as(images)


ANGLE, SHEAR, SCALE = 0.35, 0.2, 0.2  # radians, and shares of a side, at strength 1
CONTRAST, BRIGHTNESS, SATURATION = 0.5, 0.25, 0.6


def _draw_strengths(
    peaks: tuple[float, ...], strength: float, images: Tensor, generator: torch.Generator
) -> list[Tensor]:
    """For each peak a number for each image: 0 for half of them, else between both signs of it; each (batch,)."""
    place = _make_draw_arguments(generator)
    spread = (2 * torch.rand(len(peaks), len(images), **place) - 1) * strength
    changed = torch.rand(len(images), **place) < 0.5
    drawn = (spread * changed).to(images.device, non_blocking=True)
    return [peak * row for peak, row in zip(peaks, drawn, strict=True)]


def _rotate_and_scale(pixels: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Turn, shear and scale each image around its middle."""
    angle, shear, wide, high = _draw_strengths((ANGLE, SHEAR, SCALE, SCALE), strength, pixels, generator)
    still = torch.zeros_like(angle)
    rows = [angle.cos() * (1 + wide), shear - angle.sin(), still, angle.sin(), angle.cos() * (1 + high), still]
    grid = F.affine_grid(torch.stack(rows, 1).view(-1, 2, 3), list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels, grid, padding_mode="reflection", align_corners=False)


def _recolor(pixels: Tensor, strength: float, generator: torch.Generator) -> Tensor:
    """Change contrast and brightness of each image, and its saturation where it has colors."""
    drawn = _draw_strengths((CONTRAST, 255 * BRIGHTNESS, SATURATION), strength, pixels, generator)
    contrast, brightness, saturation = (each[:, None, None, None] for each in drawn)
    middle = pixels.mean((1, 2, 3), keepdim=True)
    pixels = torch.lerp(middle, pixels, 1 + contrast) + brightness
    return torch.lerp(pixels.mean(1, keepdim=True), pixels, 1 + saturation)


def _erase_random_squares(images: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Paint a square over each image, around any of its pixels (Cutout, DeVries and Taylor 2017)."""
    batch, _, height, width = images.shape
    covered = []
    for length in (height, width):
        first = torch.randint(length, (batch, 1), **_make_draw_arguments(generator)) - side // 2
        ticks = torch.arange(length, device=generator.device)
        covered.append(((ticks >= first) & (ticks < first + side)).to(images.device, non_blocking=True))
    square = covered[0][:, None, :, None] & covered[1][:, None, None, :]  # (batch, 1, height, width)
    color = images.sum((2, 3), keepdim=True) // (height * width)  # whole numbers: alike on every device
    return torch.where(square, color.to(images.dtype), images)
