"""Data that need no download: real handwriting, our own drawings, and a photograph to look at."""

from __future__ import annotations

import torch
from torch import Tensor

from vit_course.data.drawings import SHAPES, draw_shapes
from vit_course.data.image_dataset import ImageDataset


def shapes(num_images: int = 10_000, seed: int = 0, image_size: int = 32) -> ImageDataset:
    """Our own drawings of ten shapes: (num_images, 3, image_size, image_size), equally many of each.

    The same seed draws the same pictures; see `vit_course.data.drawings`.
    """
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(num_images) % len(SHAPES)
    labels = labels[torch.randperm(num_images, generator=generator)]
    return ImageDataset(draw_shapes(labels, generator, image_size), labels, tuple(SHAPES), "shapes")


def digits() -> ImageDataset:
    """scikit-learn's 1,797 handwritten digits: (1797, 1, 8, 8), the 17 grey levels spread over 0 to 255.

    Source: Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998.

    Raises:
        ImportError: naming the extra to install when scikit-learn is missing.
    """
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            'the digits come with scikit-learn, which is missing: pip install "vit-course[train]"'
        ) from error
    pixels, labels = load_digits(return_X_y=True)
    images = (torch.from_numpy(pixels) * (255 / 16)).round().to(torch.uint8).view(-1, 1, 8, 8)
    return ImageDataset(images, torch.from_numpy(labels).long(), tuple("0123456789"), "digits")


def photo() -> Tensor:
    """A photograph of Grace Hopper in uniform, about 1984: (3, 600, 512) uint8.

    Taken by James S. Davis for the US Navy, public domain, shipped with matplotlib. Among ImageNet's
    classes it is a "military uniform".
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))  # (height, width, channels)
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
