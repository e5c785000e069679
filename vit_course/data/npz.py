"""Data sets in one local file: numpy's .npz, nothing in it unpickled."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from vit_course.data.errors import DatasetError
from vit_course.data.image_dataset import ImageDataset

if TYPE_CHECKING:
    import numpy as np

MOST_CHANNELS = 4  # an array with as few rows and more channels has them in another order


def load_npz(path: Path | str, split: str = "train") -> ImageDataset:
    """Read one split of an .npz file.

    Args:
        path: a file holding `{split}_images` (num_images, height, width, channels) or
            (num_images, height, width) uint8, `{split}_labels` (num_images,) integers, and `classes`, names.
        split: "train" or "test".

    Raises:
        FileNotFoundError: when there is no such file.
        DatasetError: when the file is damaged, lacks an array, or its arrays do not fit together.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: expected an .npz with {split}_images, {split}_labels and classes")
    images, labels, classes = _read_arrays(path, [f"{split}_images", f"{split}_labels", "classes"])
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.dtype != "uint8":
        raise DatasetError(f"{path}: {split}_images must be uint8 (N, H, W, C), not {images.dtype} {images.shape}")
    if images.shape[3] > MOST_CHANNELS >= images.shape[1]:
        raise DatasetError(
            f"{path}: {split}_images are {images.shape}, whose channels seem to come first; they must come last, "
            "(N, H, W, C): save images.transpose(0, 2, 3, 1)"
        )
    if labels.dtype.kind not in "iu":
        raise DatasetError(
            f"{path}: {split}_labels must be whole numbers, indices into classes, and their type is {labels.dtype}"
        )
    if classes.ndim != 1:
        raise DatasetError(f"{path}: classes must be a list of names, and its shape is {classes.shape}")
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous()
    names = tuple(str(name) for name in classes)
    try:
        return ImageDataset(pixels, torch.from_numpy(labels.astype("int64")), names, path.stem)
    except ValueError as error:
        raise DatasetError(f"{path}: {error}") from error


def _read_arrays(path: Path, names: list[str]) -> list[np.ndarray]:
    """The named arrays of an .npz file, as numpy arrays; nothing is unpickled."""
    import numpy as np

    if not zipfile.is_zipfile(path):
        raise DatasetError(f"{path} is damaged or no .npz file; make or download it again")
    try:
        with np.load(path, allow_pickle=False) as archive:
            missing = [name for name in names if name not in archive]
            if not missing:
                return [archive[name] for name in names]
            held = ", ".join(archive.files)
    except ValueError as error:
        if "pickle" not in str(error):
            raise DatasetError(f"{path} is damaged ({error}); make or download it again") from error
        raise DatasetError(
            f"{path} holds Python objects, which are not read since they could run any code; save arrays of numbers, "
            "and the names of the classes as np.array([...], dtype=str)"
        ) from error
    except MemoryError:
        raise
    except Exception as error:  # zipfile, its decompressors and numpy trip over damage in many ways
        raise DatasetError(f"{path} is damaged or no .npz file ({error}); make or download it again") from error
    raise DatasetError(f"{path} lacks {', '.join(missing)}; it holds {held or 'no array'}")
