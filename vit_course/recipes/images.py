"""Which images a run uses: the recipe's own data set, or the reader's; and which of them are kept back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vit_course.data import ImageDataset, load_dataset, train_validation_split
from vit_course.data.folder import is_class_folder
from vit_course.data.sources import holds_dataset
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
        DatasetError: the images are missing, damaged, or cannot be downloaded.
    """
    if data is not None and (data.suffix == ".npz" or (is_class_folder(data) and not holds_dataset(name, data))):
        return load_dataset(data, image_size=image_size)
    return load_dataset(name, data, image_size=image_size)


def keep_back(recipe: Recipe, train: ImageDataset) -> tuple[ImageDataset, ImageDataset]:
    """Cut off the validation images: as many as the recipe says, but of a small set a tenth at most."""
    num_validation = min(recipe.num_validation, max(1, len(train) // 10))
    return train_validation_split(train, num_validation, SPLIT_SEED)
