"""Class folders: one folder of image files for each class, as torchvision's ImageFolder takes them.

`DIR/train/<class>/*.png` and `DIR/test/<class>/*.png` ("val" will do for "test"); or `DIR/<class>/*.png`, from
which a fifth is held back to test on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from vit_course.data.decoding import read_images
from vit_course.data.errors import DatasetError, MissingDatasetError
from vit_course.data.image_dataset import ImageDataset

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".gif", ".ppm", ".pgm", ".tif", ".tiff")
TEST_NAMES = ("test", "val", "valid", "validation")


@dataclass(frozen=True)
class Files:
    """The image files of a split, and the class of each, as an index into the names of the classes."""

    paths: tuple[Path, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class ClassFolder:
    """What lies where: nothing but names has been read."""

    name: str
    classes: tuple[str, ...]
    train: Files
    test: Files


def load_folder(root: Path | str, image_size: int | None = None) -> tuple[ImageDataset, ImageDataset]:
    """Read class folders of small images whole: the training and the test images.

    The images have one channel when all of them are grey, otherwise three: grey ones among coloured ones get
    three equal channels. What is transparent becomes white, and photographs are turned upright.

    Args:
        root: see above.
        image_size: side in pixels: the shorter side of each image is scaled to it and the middle cut out. None
            takes images as they are.

    Raises:
        MissingDatasetError: when there are no class folders.
        DatasetError: for splits without class folders, a class without images or in one split only, files that
            cannot be read, images of different sizes, or ones larger than 64 pixels.
    """
    found = find_images(root)
    images = read_images(found.train.paths + found.test.paths, image_size)
    labels = torch.tensor(found.train.labels + found.test.labels)
    count = len(found.train.paths)
    train = ImageDataset(images[:count], labels[:count], found.classes, found.name)
    return train, ImageDataset(images[count:], labels[count:], found.classes, found.name, train.mean, train.std)


def is_class_folder(path: Path | str) -> bool:
    """Whether there are folders with image files in them in `path`, or in `path`/train."""
    path = Path(path)
    return any(_images_in(folder, deep=False) for parent in (path / "train", path) for folder in _folders_in(parent))


def find_images(root: Path | str) -> ClassFolder:
    """List class folders; raises as `load_folder` does for what names alone tell."""
    root = Path(root).expanduser()
    if not is_class_folder(root):
        raise MissingDatasetError(
            f"There are no class folders in {root}: expected image files in {root.name}/train/<class>/ and "
            f"{root.name}/test/<class>/, or in {root.name}/<class>/."
        )
    if not (root / "train").is_dir():
        return _divided(root)
    test = next((root / name for name in TEST_NAMES if (root / name).is_dir()), None)
    if test is None:
        raise DatasetError(f"{root} holds train/, but no test/ (or {'/, '.join(TEST_NAMES[1:])}/) beside it")
    classes, test_classes = _classes(root / "train"), _classes(test)
    if not classes and not test_classes:
        raise DatasetError(
            f"{root}: train/ and {test.name}/ hold no class folders: expected image files in "
            f"{root.name}/train/<class>/ and {root.name}/{test.name}/<class>/"
        )
    if classes != test_classes:
        only_train, only_test = set(classes) - set(test_classes), set(test_classes) - set(classes)
        raise DatasetError(
            f"{root}: train/ and {test.name}/ must hold the same classes, but only train/ has "
            f"{_named(only_train)}, and only {test.name}/ has {_named(only_test)}"
        )
    return ClassFolder(root.name, classes, _files(root / "train", classes), _files(test, classes))


def _divided(root: Path) -> ClassFolder:
    """Class folders without train and test: a fifth of the images is drawn to test on."""
    from vit_course.data.splits import split_indices

    classes = _classes(root)
    files = _files(root, classes)
    if len(files.paths) < 5:
        raise DatasetError(f"{root} holds {len(files.paths)} images: too few to hold a fifth back to test on")
    parts = split_indices(len(files.paths), len(files.paths) // 5, seed=0)
    print(f"{root} has no train/ and test/: a fifth of its images, always the same, is held back to test on.")
    train, test = (
        Files(tuple(files.paths[i] for i in part), tuple(files.labels[i] for i in part))
        for part in (sorted(indices.tolist()) for indices in parts)
    )
    return ClassFolder(root.name, classes, train, test)


def _folders_in(path: Path) -> list[Path]:
    """Folders, sorted by name, without hidden ones such as Jupyter's checkpoints or __MACOSX."""
    if not path.is_dir():
        return []
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith((".", "__")))


def _images_in(folder: Path, deep: bool = True) -> list[Path]:
    found = folder.rglob("*") if deep else folder.glob("*")
    return sorted(path for path in found if path.suffix.lower() in SUFFIXES and path.name[0] != "." and path.is_file())


def _classes(split: Path) -> tuple[str, ...]:
    return tuple(folder.name for folder in _folders_in(split))


def _files(split: Path, classes: tuple[str, ...]) -> Files:
    by_class = [_images_in(split / name) for name in classes]
    empty = [name for name, paths in zip(classes, by_class, strict=True) if not paths]
    if empty:
        raise DatasetError(
            f"{split}: there is no image in {_named(set(empty))}; put some in ({', '.join(SUFFIXES[:3])}, …) or "
            "delete the folder"
        )
    labels = [label for label, paths in enumerate(by_class) for _ in paths]
    return Files(tuple(path for paths in by_class for path in paths), tuple(labels))


def _named(names: set[str]) -> str:
    first = sorted(names)[:3]
    return (", ".join(first) + (f" and {len(names) - 3} more" if len(names) > 3 else "")) or "none"
