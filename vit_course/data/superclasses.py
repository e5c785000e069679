"""CIFAR-100's hundred classes in groups of five: its twenty superclasses (Krizhevsky 2009)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from vit_course.data.image_dataset import DatasetError, ImageDataset

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
