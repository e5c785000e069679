"""RandAugment (Cubuk et al. 2020), each image changed by operations of its own.

torchvision's `v2.RandAugment` changes all images of a call alike. Drawn on the CPU, images that have drawn the same
operation are changed together, which is the least work. Drawn on a GPU, where nothing may wait to read what was drawn,
every operation changes the whole batch and each image keeps its own: more work, always the same, which a graph records.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor

Change = Callable[[Tensor], Tensor]

ROUNDS = 2  # operations for each image
MAGNITUDE, LEVELS = 9, 31  # levels 0 to 30; these three are torchvision's defaults
OPERATIONS = 14
SIGNED = 9  # the first ones, which go either way
MOVES = 5  # the first ones of these
IDENTITY = SIGNED  # the first one without a sign


def randaugment(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each image by two operations of RandAugment, drawn for it alone.

    Args:
        images: (batch, channels, height, width) uint8, on any device.
        generator: on the CPU, or on the images' device.

    Returns:
        A tensor like `images`.

    Raises:
        ValueError: for images with neither 1 nor 3 channels.
    """
    if images.shape[1] not in (1, 3):
        raise ValueError(f"RandAugment takes images of 1 or 3 channels, not {images.shape[1]}")
    for _ in range(ROUNDS):
        images = apply_random_operation(images, generator)
    return images


def apply_random_operation(images: Tensor, generator: torch.Generator) -> Tensor:
    """Change each image of (batch, channels, height, width) by one operation, as likely as any other, and one sign."""
    place: dict[str, Any] = {"generator": generator, "device": generator.device}
    drawn = torch.randint(OPERATIONS, (len(images),), **place)
    opposite = torch.rand(len(images), **place) < 0.5
    drawn += OPERATIONS * (opposite & (drawn < SIGNED))
    return (
        apply_operations_in_groups(images, drawn)
        if drawn.device.type == "cpu"
        else apply_operations_at_once(images, drawn)
    )


def apply_operations_in_groups(images: Tensor, drawn: Tensor) -> Tensor:
    """Change each image by the operation of its number, those together that have the same one.

    Args:
        images: (batch, channels, height, width) uint8, on any device.
        drawn: (batch,) int64 on the CPU, indices into `list_operations`.
    """
    order = drawn.argsort()  # neighbors have drawn the same
    there, back = (places.to(images.device, non_blocking=True) for places in (order, order.argsort()))
    every = list_operations(*images.shape[2:], images.device)
    groups = images.index_select(0, there).split(drawn.bincount(minlength=len(every)).tolist())
    changed = [change(group) for change, group in zip(every, groups, strict=True) if len(group)]
    return torch.cat(changed).index_select(0, back) if changed else images


def apply_operations_at_once(images: Tensor, drawn: Tensor) -> Tensor:
    """Do what `apply_operations_in_groups` does, to the bit, without reading what was drawn: no size depends on it.

    Args:
        images: (batch, channels, height, width) uint8, on any device.
        drawn: (batch,) int64 on the same device, indices into `list_operations`.
    """
    every = list_operations(*images.shape[2:], images.device)
    images = _move_pixels(
        images, _find_source_pixels_by_operation(*images.shape[2:], images.device).index_select(0, drawn)[:, None]
    )
    for number, change in enumerate(every):
        if number % OPERATIONS >= MOVES and number != IDENTITY:
            images = torch.where((drawn == number)[:, None, None, None], change(images), images)
    return images


@lru_cache(maxsize=8)
def list_operations(height: int, width: int, device: torch.device) -> tuple[Change, ...]:
    """The operations at our magnitude: the signed ones, those without a sign, the signed ones the other way."""
    from torchvision.transforms.v2 import functional

    def list_signed_changes(sign: int) -> list[Change]:
        shear = sign * math.degrees(math.atan(_scale_magnitude(0.0, 0.3)))
        right, down = (sign * int(_scale_magnitude(0.0, 150 / 331 * length)) for length in (width, height))
        factor = 1.0 + sign * _scale_magnitude(0.0, 0.9)
        still = {"angle": 0.0, "translate": [0, 0], "scale": 1.0, "shear": [0.0, 0.0]}
        moves = [
            partial(functional.affine, **(still | {"shear": [shear, 0.0]}), center=[0, 0]),
            partial(functional.affine, **(still | {"shear": [0.0, shear]}), center=[0, 0]),
            partial(functional.affine, **(still | {"translate": [right, 0]})),
            partial(functional.affine, **(still | {"translate": [0, down]})),
            partial(functional.rotate, angle=sign * _scale_magnitude(0.0, 30.0)),
        ]
        return [
            *(partial(_move_pixels, sources=_find_source_pixels(move, height, width).to(device)) for move in moves),
            partial(functional.adjust_brightness, brightness_factor=factor),
            partial(functional.adjust_saturation, saturation_factor=factor),
            partial(functional.adjust_contrast, contrast_factor=factor),
            partial(_sharpen, factor=factor),
        ]

    unsigned: list[Change] = [
        lambda images: images,
        partial(functional.posterize, bits=round(8 - 4 * MAGNITUDE / (LEVELS - 1))),
        partial(functional.solarize, threshold=255 * _scale_magnitude(1.0, 0.0)),
        functional.autocontrast,
        functional.equalize,
    ]
    return (*list_signed_changes(1), *unsigned, *list_signed_changes(-1))


def _scale_magnitude(first: float, last: float) -> float:
    """Our magnitude in a range, rounded as torchvision's is."""
    return float(torch.linspace(first, last, LEVELS)[MAGNITUDE])


def _find_source_pixels(move: Change, height: int, width: int) -> Tensor:
    """Where each pixel of a moved image comes from, counted from 1 row by row: (height * width,) int64; 0 is outside.

    torchvision tells it by moving an image of such numbers, on the CPU and once: its own call on a GPU copies a
    matrix there each time, and waits for it.
    """
    numbers = torch.arange(1.0, height * width + 1).view(1, 1, height, width)
    return move(numbers).flatten().long()


@lru_cache(maxsize=8)
def _find_source_pixels_by_operation(height: int, width: int, device: torch.device) -> Tensor:
    """For each operation where each pixel comes from: (operations, height * width) int64; most leave it in place."""
    still = torch.arange(1, height * width + 1, device=device)
    every = enumerate(list_operations(height, width, device))
    return torch.stack(
        [
            cast(partial[Tensor], each).keywords["sources"] if number % OPERATIONS < MOVES else still
            for number, each in every
        ]
    )


def _move_pixels(images: Tensor, sources: Tensor) -> Tensor:
    """Pick every pixel of the result from where it was; black comes from outside.

    Args:
        images: (batch, channels, height, width).
        sources: (height * width,), or (batch, 1, height * width) for each image its own, see `_find_source_pixels`.
    """
    framed = F.pad(images.flatten(2), (1, 0))  # place 0 is black
    return framed.gather(2, sources.expand(*images.shape[:2], -1)).view_as(images)


def _sharpen(images: Tensor, factor: float) -> Tensor:
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
