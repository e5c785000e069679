"""A data set by its name or its place: `load_dataset` looks, fetches if it must, and says what is wrong.

A local file is numpy's .npz, and nothing in it is unpickled.
"""

from __future__ import annotations

import os
import textwrap
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from exercise_kit.files import find_user_folder
from vit_course.data.bundled import digits, shapes
from vit_course.data.image_dataset import DatasetError, ImageDataset, MissingDatasetError
from vit_course.data.torchvision_sets import PUBLISHED, has_any_file, is_complete, load_torchvision_dataset

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
    images, labels, classes = _read_npz_arrays(path, [f"{split}_images", f"{split}_labels", "classes"])
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


def _read_npz_arrays(path: Path, names: list[str]) -> list[np.ndarray]:
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


EMBEDDED = ("digits", "shapes")
DIGITS_TEST = 297  # the last of 1,797: mostly hands that wrote none of the others

Pair = tuple[ImageDataset, ImageDataset]


def load_dataset(
    name: str | Path,
    root: Path | str | None = None,
    otherwise: str | None = None,
    *,
    image_size: int | None = None,
) -> Pair:
    """Training and test images, both with the statistics of the training images.

    Looks in `root` for `{name}.npz`, then for torchvision's files, then for class folders `{name}/`; then takes
    `root` itself, where it is an .npz file or holds train/ with class folders; then downloads into it with torchvision.

    Args:
        name: a published set ("mnist", "cifar10", a key of `PUBLISHED`); "digits" or "shapes", which need no file;
            the name of an own set in `root`; or the path of an .npz file or of class folders.
        root: where data sets are kept. None for the folder that VIT_COURSE_DATA names, otherwise
            `~/.cache/vit_course`, or `vit_course` in what XDG_CACHE_HOME names.
        otherwise: an embedded set, announced by a printed paragraph, for when there is no such set here and none
            can be fetched. A set that is there and damaged is an error all the same.
        image_size: side in pixels to which the images of class folders are scaled and cropped.

    Raises:
        MissingDatasetError: when the set is not there and cannot be fetched.
        DatasetError: when it is damaged, half downloaded, or no data set at all.
        ValueError: when `otherwise` is no embedded set.
    """
    name = str(name)
    if otherwise is not None and otherwise not in EMBEDDED:
        raise ValueError(f"otherwise must be one of {', '.join(EMBEDDED)}, which need no file, not {otherwise!r}")
    try:
        train, test = _load_train_and_test(name, data_folder(root), image_size)
    except MissingDatasetError as error:
        if otherwise is None:
            raise
        print(textwrap.fill(f"{error} Going on with the embedded set {otherwise!r} instead.", 88))
        return _make_embedded_dataset(otherwise)
    if train.images.shape[1:] != test.images.shape[1:]:
        sizes = f"{tuple(train.images.shape[1:])}, those to test with {tuple(test.images.shape[1:])}"
        raise DatasetError(f"{train.name}: images to train with are {sizes}; both must have one shape")
    return train, test.with_statistics_of(train)


def data_folder(root: Path | str | None = None) -> Path:
    """Where data sets are kept: `root`, or what VIT_COURSE_DATA says, or `vit_course` in the user's cache.

    A folder `~/.cache/vit_course` that is there counts before the cache that XDG_CACHE_HOME names: sets may lie in it.
    """
    if named := root or os.environ.get("VIT_COURSE_DATA"):
        return Path(named).expanduser()
    in_home = os.path.expanduser("~/.cache/vit_course")
    return Path(in_home) if os.path.isdir(in_home) else find_user_folder("cache")


def holds_dataset(name: str, root: Path | str | None = None) -> bool:
    """Say whether `load_dataset(name, root)` would find something under that name in `root`, right or damaged."""
    folder = data_folder(root)
    named = (folder / f"{name}.npz").is_file() or (folder / name).is_dir()
    return name in EMBEDDED or named or (name in PUBLISHED and has_any_file(name, folder))


def _load_train_and_test(name: str, root: Path, image_size: int | None) -> Pair:
    from vit_course.data.folder import is_class_folder

    if name in EMBEDDED:
        return _make_embedded_dataset(name)
    if name not in PUBLISHED:
        return _load_own_dataset(name, root, image_size)
    if (root / f"{name}.npz").is_file():
        return _load_npz_pair(root / f"{name}.npz")
    if not is_complete(name, root):
        if is_class_folder(root / name):
            return _load_npz_or_folder(root / name, image_size)
        if root.is_file() or is_class_folder(root / "train"):
            return _load_npz_or_folder(root, image_size)
    return load_torchvision_dataset(name, root)


def _make_embedded_dataset(name: str) -> Pair:
    if name == "shapes":
        train = shapes(10_000, seed=0)
        return train, shapes(2_000, seed=1).with_statistics_of(train)
    every = digits()
    train = ImageDataset(every.images[:-DIGITS_TEST], every.labels[:-DIGITS_TEST], every.classes, every.name)
    return train, every.subset(slice(-DIGITS_TEST, None)).with_statistics_of(train)


def _load_own_dataset(name: str, root: Path, image_size: int | None) -> Pair:
    """A set that only the user knows: a path, or a name in `root`."""
    path = Path(name).expanduser()
    is_path = name != path.name or bool(path.suffix)
    in_root = [root / name, root / f"{name}.npz"]
    for place in [path, *in_root] if is_path else [*in_root, path]:
        if place.exists():
            return _load_npz_or_folder(place, image_size)
    if is_path:
        raise MissingDatasetError(f"There is no data set at {path}, nor at {root / name}.")
    known = ", ".join((*PUBLISHED, *EMBEDDED))
    raise DatasetError(
        f"{name!r} is no data set that we know ({known}), and neither {in_root[0]} nor {in_root[1].name} beside it is "
        "there"
    )


def _load_npz_or_folder(place: Path, image_size: int | None) -> Pair:
    from vit_course.data.folder import load_folder

    return _load_npz_pair(place) if place.is_file() else load_folder(place, image_size)


def _load_npz_pair(path: Path) -> Pair:
    return load_npz(path, "train"), load_npz(path, "test")
