"""Published data sets as torchvision fetches, checks and lays them out: MNIST, CIFAR-10 and their like.

A download goes into a hidden folder, is checked there, and only then moved to its place: a data set in its place is
complete, and an interrupted download never counts as one. CIFAR-100's hundred classes also come in groups of five, its
twenty superclasses (Krizhevsky 2009).
"""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import shutil
import socket
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

import torch

from vit_course.data.image_dataset import DatasetError, ImageDataset, MissingDatasetError


@dataclass(frozen=True)
class TorchvisionSet:
    """What has to be known of a set before it is there.

    Attributes:
        title: the name of torchvision's class.
        training_images, classes: how many.
    """

    title: str
    training_images: int
    classes: int


# one more line here is one more data set, where torchvision lays it out as MNIST or as CIFAR-10
PUBLISHED = {
    "mnist": TorchvisionSet("MNIST", 60_000, 10),
    "fashion_mnist": TorchvisionSet("FashionMNIST", 60_000, 10),
    "cifar10": TorchvisionSet("CIFAR10", 50_000, 10),
    "cifar100": TorchvisionSet("CIFAR100", 50_000, 100),
}
SECONDS_OF_SILENCE = 30  # until a server that does not answer counts as gone
_FETCHING_FAILS_BY = (OSError, RuntimeError, EOFError, HTTPException, tarfile.TarError, zlib.error)


def load_torchvision_dataset(name: str, root: Path) -> tuple[ImageDataset, ImageDataset]:
    """Training and test images of a published set, downloaded or unpacked into `root` when they are not there.

    Args:
        name: one of `PUBLISHED`.
        root: what torchvision calls root.

    Raises:
        MissingDatasetError: when it is not there and cannot be fetched.
        DatasetError: when a file is damaged or was downloaded by half.
    """
    if not is_complete(name, root):
        _download_or_unpack(name, root)
    train, test = (_find_dataset_class(name)(root, train=is_train) for is_train in (True, False))
    return _convert_to_image_dataset(name, train), _convert_to_image_dataset(name, test)


def has_any_file(name: str, root: Path) -> bool:
    """Say whether any file of the set, packed or unpacked, lies in `root`."""
    return any((root / file).is_file() for file, _ in [*_list_unpacked_files(name), *_list_archives(name)])


def is_complete(name: str, root: Path) -> bool:
    """Say whether all unpacked files lie in `root`.

    Raises:
        DatasetError: when one of them is not what was published.
    """
    there = [(root / file, md5) for file, md5 in _list_unpacked_files(name) if (root / file).is_file()]
    for path, md5 in there:
        if not _is_intact_file(path, md5):
            raise DatasetError(
                f"{path} is damaged, or was copied by half: it is not the file that was published. "
                f"Delete the folder {path.parent} and try again, to have it downloaded anew."
            )
    return len(there) == len(_list_unpacked_files(name))


def _find_dataset_class(name: str) -> Any:
    from torchvision import datasets

    return getattr(datasets, PUBLISHED[name].title)


def _list_unpacked_files(name: str) -> list[tuple[Path, str | None]]:
    """The unpacked files of a set, relative to the root, with their checksums where any are published."""
    kind = _find_dataset_class(name)
    if hasattr(kind, "train_list"):
        listed = [*kind.train_list, *kind.test_list, (kind.meta["filename"], kind.meta["md5"])]
        return [(Path(kind.base_folder, file), md5) for file, md5 in listed]
    return [(path.with_suffix(""), None) for path, _ in _list_archives(name)]


def _list_archives(name: str) -> list[tuple[Path, str]]:
    """The packed files of a set, relative to the root, with their checksums."""
    kind = _find_dataset_class(name)
    if hasattr(kind, "train_list"):
        return [(Path(kind.filename), kind.tgz_md5)]
    return [(Path(PUBLISHED[name].title, "raw", file), md5) for file, md5 in kind.resources]


def _is_intact_file(path: Path, md5: str | None) -> bool:
    from torchvision.datasets.utils import check_integrity

    return check_integrity(path, md5) if md5 else _is_whole_idx(path)


def _is_whole_idx(path: Path) -> bool:
    """Say whether a file of MNIST's format (0, 0, 8, number of axes, their lengths, bytes) is as long as it says."""
    with path.open("rb") as file:
        magic = file.read(4)
        if len(magic) < 4 or magic[:3] != b"\0\0\x08" or magic[3] == 0:
            return False
        lengths = [int.from_bytes(file.read(4), "big") for _ in range(magic[3])]
    return path.stat().st_size == 4 + 4 * len(lengths) + math.prod(lengths)


def _download_or_unpack(name: str, root: Path) -> None:
    """Put the files of a set into `root`, from archives that lie there or from the internet."""
    lying = [(file, md5) for file, md5 in _list_archives(name) if (root / file).is_file()]
    for file, md5 in lying:
        if not _is_intact_file(root / file, md5):
            raise DatasetError(
                f"{root / file} was downloaded by half, or is damaged: its checksum is not {md5}. "
                "Delete it and try again, to have it downloaded anew."
            )
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root, prefix=f".{name}-", ignore_cleanup_errors=True) as scratch:
            for file, _ in lying:
                (Path(scratch) / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / file, Path(scratch) / file)
            if len(lying) < len(_list_archives(name)):
                print(f"Downloading {PUBLISHED[name].title} into {root}.")
            with _limit_download_silence():
                _find_dataset_class(name)(scratch, download=True)
            for file, _ in _list_unpacked_files(name):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                os.replace(Path(scratch) / file, root / file)
    except _FETCHING_FAILS_BY as error:
        raise MissingDatasetError(_describe_failed_download(name, root, error)) from error


@contextlib.contextmanager
def _limit_download_silence() -> Iterator[None]:
    """Give up on a silent server, and draw torchvision's progress bar on a terminal only."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(SECONDS_OF_SILENCE)
    silence = contextlib.nullcontext() if sys.stderr.isatty() else contextlib.redirect_stderr(io.StringIO())
    try:
        with silence:
            yield
    finally:
        socket.setdefaulttimeout(before)


def _describe_failed_download(name: str, root: Path, error: Exception) -> str:
    reason = " ".join(str(error).split())
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC):
        what_to_do = "Name a folder with room to write by --data or VIT_COURSE_DATA."
    else:
        what_to_do = (
            f"Try again with an internet connection, or copy the set from another machine to {root}: "
            f"torchvision's files, or {name}.npz, or class folders {name}/train and {name}/test."
        )
    return f"{PUBLISHED[name].title} is not in {root}, and could not be put there: {reason}. {what_to_do}"


def _convert_to_image_dataset(name: str, published: Any) -> ImageDataset:
    images = torch.as_tensor(published.data)
    pixels = images[:, None] if images.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()
    classes = tuple("0123456789") if name == "mnist" else tuple(published.classes)
    return ImageDataset(pixels, torch.as_tensor(published.targets), classes, name)


SUPERCLASSES = {
    "aquatic mammals": ("beaver", "dolphin", "otter", "seal", "whale"),
    "fish": ("aquarium_fish", "flatfish", "ray", "shark", "trout"),
    "flowers": ("orchid", "poppy", "rose", "sunflower", "tulip"),
    "food containers": ("bottle", "bowl", "can", "cup", "plate"),
    "fruit and vegetables": ("apple", "mushroom", "orange", "pear", "sweet_pepper"),
    "household electrical devices": ("clock", "keyboard", "lamp", "telephone", "television"),
    "household furniture": ("bed", "chair", "couch", "table", "wardrobe"),
    "insects": ("bee", "beetle", "butterfly", "caterpillar", "cockroach"),
    "large carnivores": ("bear", "leopard", "lion", "tiger", "wolf"),
    "large man-made outdoor things": ("bridge", "castle", "house", "road", "skyscraper"),
    "large natural outdoor scenes": ("cloud", "forest", "mountain", "plain", "sea"),
    "large omnivores and herbivores": ("camel", "cattle", "chimpanzee", "elephant", "kangaroo"),
    "medium-sized mammals": ("fox", "porcupine", "possum", "raccoon", "skunk"),
    "non-insect invertebrates": ("crab", "lobster", "snail", "spider", "worm"),
    "people": ("baby", "boy", "girl", "man", "woman"),
    "reptiles": ("crocodile", "dinosaur", "lizard", "snake", "turtle"),
    "small mammals": ("hamster", "mouse", "rabbit", "shrew", "squirrel"),
    "trees": ("maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"),
    "vehicles 1": ("bicycle", "bus", "motorcycle", "pickup_truck", "train"),
    "vehicles 2": ("lawn_mower", "rocket", "streetcar", "tank", "tractor"),
}


def grouped(dataset: ImageDataset, names: Sequence[str]) -> ImageDataset:
    """The images of some superclasses, in their order in the data set, with the superclasses for classes.

    Args:
        dataset: CIFAR-100, or a part of it.
        names: keys of `SUPERCLASSES`; the position of a name becomes its label.

    Returns:
        A data set with the statistics of the given one.

    Raises:
        DatasetError: when the data set lacks one of the classes.
    """
    new_label = torch.full((len(dataset.classes),), -1)
    for label, name in enumerate(names):
        for kind in SUPERCLASSES[name]:
            if kind not in dataset.classes:
                raise DatasetError(f"{dataset.name} has no class {kind!r}; superclasses are those of CIFAR-100")
            new_label[dataset.classes.index(kind)] = label
    labels = new_label[dataset.labels]
    kept = labels >= 0
    return ImageDataset(dataset.images[kept], labels[kept], tuple(names), dataset.name, dataset.mean, dataset.std)
