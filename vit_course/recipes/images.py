"""Which images a run uses: the recipe's own data set, or the reader's; and which of them are kept back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vit_course.data import DatasetError, ImageDataset, load_dataset, train_validation_split
from vit_course.data.folder import is_class_folder
from vit_course.data.sources import EMBEDDED, data_folder, holds_dataset
from vit_course.recipes.recipe import Recipe

SPLIT_SEED = 0  # one split for all seeds, so that their validation figures compare


@dataclass(frozen=True)
class Images:
    """The three parts of a run's images, all with the statistics of the first."""

    train: ImageDataset
    validation: ImageDataset
    test: ImageDataset

    def counts(self) -> dict[str, str | int]:
        """The name of the data set, how many images each part has, and how many classes there are."""
        return {
            "name": self.train.name,
            "train_images": len(self.train),
            "validation_images": len(self.validation),
            "test_images": len(self.test),
            "classes": len(self.train.classes),
        }


def load_images(
    name: str, data: Path | None = None, image_size: int | None = None
) -> tuple[ImageDataset, ImageDataset]:
    """The training and the test images.

    Args:
        name: of the data set that is used unless `data` is one itself.
        data: an .npz file or class folders, which are used in place of that data set; or a folder in which it is
            looked for, and into which it is downloaded. None for the usual places.
        image_size: in pixels, to which the images of class folders are scaled and cropped.

    Raises:
        DatasetError: the images are missing, damaged, or cannot be downloaded; or `image_size` is given and they
            are no class folders.
    """
    if data is not None and not data.exists():
        raise DatasetError(
            f"there is nothing at {data}: --data names images of yours (.npz or class folders), or a folder that is "
            "there, to look for known data sets in"
        )
    if image_size is not None and not _are_class_folders(name, data):
        own = data if data is not None and _replaces_dataset(name, data) else name
        raise DatasetError(f"--image-size scales the images of class folders, and {own} has its size; leave it out")
    if data is not None and _replaces_dataset(name, data):
        return load_dataset(data, image_size=image_size)
    return load_dataset(name, data, image_size=image_size)


def name_images_unread(name: str, data: Path | None) -> str:
    """Return what `load_images` would call the images, which it does not look at."""
    if data is None or not _replaces_dataset(name, data):
        return name
    return data.stem if data.suffix == ".npz" else data.name


def _replaces_dataset(name: str, data: Path) -> bool:
    """Say whether `data` is used in place of the data set of that name, and not searched for it."""
    return data.suffix == ".npz" or (is_class_folder(data) and not holds_dataset(name, data))


def _are_class_folders(name: str, data: Path | None) -> bool:
    if data is not None and _replaces_dataset(name, data):
        return data.is_dir()
    return name not in EMBEDDED and is_class_folder(data_folder(data) / name)


def split_validation(recipe: Recipe, train: ImageDataset) -> tuple[ImageDataset, ImageDataset]:
    """Cut off the validation images: as many as the recipe says, but of a small set a tenth at most.

    Raises:
        DatasetError: there is one image, which cannot be in both parts.
    """
    if len(train) < 2:
        raise DatasetError(f"{train.name} has one training image; it takes two, one of which is kept back to judge by")
    num_validation = min(recipe.num_validation, max(1, len(train) // 10))
    return train_validation_split(train, num_validation, SPLIT_SEED)
