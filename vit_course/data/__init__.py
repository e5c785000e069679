"""Labeled images, where they come from, and how they reach a model.

The names below are loaded on demand, so that `import vit_course.data` imports torch and nothing heavier.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vit_course.data.augmentation import Augmentation, augment, mix
    from vit_course.data.bundled import SHAPES, cat, cats, digits, draw_shapes, photo, shapes
    from vit_course.data.decoding import own_picture
    from vit_course.data.folder import FolderBatches, find_images, folder_batches, is_class_folder, load_folder
    from vit_course.data.image_dataset import (
        Batches,
        DatasetError,
        ImageDataset,
        MissingDatasetError,
        channel_statistics,
        train_validation_split,
    )
    from vit_course.data.sources import data_folder, holds_dataset, load_dataset, load_npz
    from vit_course.data.splits import split_indices
    from vit_course.data.torchvision_sets import SUPERCLASSES, grouped

_HOME = {
    "augmentation": ("Augmentation", "augment", "mix"),
    "bundled": ("SHAPES", "cat", "cats", "digits", "draw_shapes", "photo", "shapes"),
    "decoding": ("own_picture",),
    "folder": ("FolderBatches", "find_images", "folder_batches", "is_class_folder", "load_folder"),
    "image_dataset": (
        *("Batches", "DatasetError", "ImageDataset", "MissingDatasetError"),
        *("channel_statistics", "train_validation_split"),
    ),
    "sources": ("data_folder", "holds_dataset", "load_dataset", "load_npz"),
    "splits": ("split_indices",),
    "torchvision_sets": ("SUPERCLASSES", "grouped"),
}

__all__ = [
    "SHAPES",
    "SUPERCLASSES",
    "Augmentation",
    "Batches",
    "DatasetError",
    "FolderBatches",
    "ImageDataset",
    "MissingDatasetError",
    "augment",
    "cat",
    "cats",
    "channel_statistics",
    "data_folder",
    "digits",
    "draw_shapes",
    "find_images",
    "folder_batches",
    "grouped",
    "holds_dataset",
    "is_class_folder",
    "load_dataset",
    "load_folder",
    "load_npz",
    "mix",
    "own_picture",
    "photo",
    "shapes",
    "split_indices",
    "train_validation_split",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOME.items():
        if name in names:
            return getattr(import_module(f"vit_course.data.{module}"), name)
    raise AttributeError(f"module 'vit_course.data' has no attribute {name!r}")
