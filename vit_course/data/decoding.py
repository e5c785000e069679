"""Image files into tensors, and what to say of those that are broken or unlike the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from vit_course.data.errors import DatasetError

SMALL = 64  # pixels along an axis: up to here all images of a set lie in memory at once
GREY_MODES = ("L", "LA", "1")


def read_images(paths: Sequence[Path], image_size: int | None = None) -> Tensor:
    """Decode small images of one size.

    Args:
        paths: at least one file.
        image_size: see `fit_to_square`; None takes images as they are.

    Returns:
        (num_images, channels, height, width) uint8; one channel when every image is grey, otherwise three.

    Raises:
        DatasetError: naming the files that are broken, of another size, or larger than `SMALL`.
    """
    if image_size is not None and not 0 < image_size <= SMALL:
        raise DatasetError(f"image size {image_size} is not between 1 and {SMALL}; {_OTHER_WAY}")
    images: list[Tensor] = []
    broken: list[DatasetError] = []
    for path in paths:
        try:
            image = read_image(path)
        except DatasetError as error:
            broken.append(error)
            continue
        image = image if image_size is None else fit_to_square(image, image_size)
        _check_size(path, image, images)
        images.append(image)
    if broken:
        more = f" (and {len(broken) - 1} more files)" if len(broken) > 1 else ""
        raise DatasetError(f"{broken[0]}{more}") from broken[0]
    channels = max(len(image) for image in images)
    return torch.stack([image.expand(channels, -1, -1) for image in images])


def read_image(path: Path) -> Tensor:
    """One image, upright and without transparency: (1 or 3, height, width) uint8.

    Raises:
        DatasetError: when the file cannot be read, or holds more than 8 bits a pixel and channel.
    """
    import numpy as np
    from PIL import Image, ImageOps

    try:
        with Image.open(path) as file:
            image = ImageOps.exif_transpose(file)
        if image.mode.startswith(("I", "F")):
            raise DatasetError(f"{path} holds more than 8 bits a pixel (mode {image.mode}); save it with 8")
        pixels = np.array(image.convert("L" if image.mode in GREY_MODES else "RGB"))
    except DatasetError:
        raise
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise DatasetError(f"{path} cannot be read ({error}); delete or replace it") from error
    return torch.from_numpy(pixels).view(*pixels.shape[:2], -1).permute(2, 0, 1).contiguous()


def fit_to_square(image: Tensor, image_size: int) -> Tensor:
    """Scale the shorter side of (channels, height, width) uint8 to image_size, and cut the middle square out."""
    from torchvision.transforms.v2 import functional

    if image.shape[1:] == (image_size, image_size):
        return image
    return functional.center_crop(functional.resize(image, [image_size], antialias=True), [image_size])


_OTHER_WAY = "larger ones can be trained on in Python (vit_course.data.folder_batches)"


def _check_size(path: Path, image: Tensor, images: list[Tensor]) -> None:
    _, height, width = image.shape
    if max(height, width) > SMALL:
        raise DatasetError(
            f"{path} is {height}x{width}, larger than {SMALL}x{SMALL}: scale the images down by --image-size "
            f"{SMALL} or less (in Python: image_size); {_OTHER_WAY}"
        )
    if images and images[0].shape[1:] != image.shape[1:]:
        first_height, first_width = images[0].shape[1:]
        raise DatasetError(
            f"{path} is {height}x{width}, the images before it {first_height}x{first_width}: scale all of "
            "them to one size by --image-size (in Python: image_size)"
        )
