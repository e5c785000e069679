"""Data sets as one pair of tensors: uint8 images and int64 labels, small enough to lie on the device.

Two sets need no download: `digits` (real handwriting, from scikit-learn) and `shapes` (our own drawings).
`load_npz` reads a local file, and `photo` is a picture to look at.
"""

from __future__ import annotations

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from vit_course.drawings import SHAPES, draw_shapes

if TYPE_CHECKING:
    import numpy as np

Channels = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class ImageDataset:
    """Labelled images, with the statistics that normalise them.

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
        self._validate()
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
        return replace(self, images=self.images[indices], labels=self.labels[indices])

    def to(self, device: torch.device | str) -> ImageDataset:
        """The same data on another device, still uint8: a quarter of the memory of float32."""
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def with_statistics_of(self, other: ImageDataset) -> ImageDataset:
        """The same images, to be normalised like `other`, which is what the model was trained on."""
        return replace(self, mean=other.mean, std=other.std)

    def normalize(self, images: Tensor) -> Tensor:
        """Turn uint8 images (batch, channels, height, width) into float32 of mean 0 and deviation 1."""
        mean = torch.tensor(self.mean, device=images.device).view(-1, 1, 1)
        std = torch.tensor(self.std, device=images.device).view(-1, 1, 1)
        return (images / 255 - mean) / std

    def _validate(self) -> None:
        images, labels = self.images, self.labels
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise ValueError(f"images must be uint8 (N, C, H, W), not {images.dtype} {tuple(images.shape)}")
        if labels.dtype != torch.int64 or labels.shape != images.shape[:1]:
            raise ValueError(
                f"labels must be int64 ({len(images)},), one per image, not {labels.dtype} {tuple(labels.shape)}"
            )
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
    if not 0 < num_validation < len(dataset):
        raise ValueError(f"num_validation {num_validation} is not between 1 and {len(dataset) - 1}")
    order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed)).to(dataset.labels.device)
    train = replace(dataset.subset(order[num_validation:]), mean=(), std=())
    validation = dataset.subset(order[:num_validation]).with_statistics_of(train)
    return train, validation


def shapes(num_images: int = 10_000, seed: int = 0, image_size: int = 32) -> ImageDataset:
    """Our own drawings of ten shapes: (num_images, 3, image_size, image_size), equally many of each.

    The same seed draws the same pictures; see `vit_course.drawings`.
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


def load_npz(path: Path | str, split: str = "train") -> ImageDataset:
    """Read one split of an .npz file.

    Args:
        path: a file holding `{split}_images` (num_images, height, width, channels) or
            (num_images, height, width) uint8, `{split}_labels` (num_images,) integers, and `classes`, names.
        split: "train" or "test".

    Raises:
        FileNotFoundError: when there is no such file.
        ValueError: when the file is damaged, or lacks an array.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: expected an .npz with {split}_images, {split}_labels and classes")
    images, labels, classes = _read_arrays(path, [f"{split}_images", f"{split}_labels", "classes"])
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.dtype != "uint8":
        raise ValueError(f"{path}: {split}_images must be uint8 (N, H, W, C), not {images.dtype} {images.shape}")
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    names = tuple(str(name) for name in classes)
    return ImageDataset(pixels, torch.from_numpy(labels.astype("int64")), names, path.stem)


def _read_arrays(path: Path, names: list[str]) -> list[np.ndarray]:
    """The named arrays of an .npz file, as numpy arrays; nothing is unpickled."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            if not missing:
                return [archive[name] for name in names]
            held = ", ".join(archive.files)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} is damaged or no .npz file ({error}); make or download it again") from error
    raise ValueError(f"{path} lacks {', '.join(missing)}; it holds {held}")


def photo() -> Tensor:
    """A photograph of Grace Hopper in uniform, about 1984: (3, 600, 512) uint8.

    Taken by James S. Davis for the US Navy, public domain, shipped with matplotlib. Among ImageNet's
    classes it is a "military uniform".
    """
    from matplotlib.cbook import get_sample_data
    from matplotlib.image import imread

    pixels = imread(get_sample_data("grace_hopper.jpg", asfileobj=False))  # (height, width, channels)
    return torch.from_numpy(pixels.copy()).permute(2, 0, 1).contiguous()
