"""CIFAR-100's superclasses: five classes each, and nothing but labels changes."""

from __future__ import annotations

import pytest
import torch

from vit_course.data import SUPERCLASSES, DatasetError, ImageDataset, grouped

KINDS = tuple(sorted(kind for kinds in SUPERCLASSES.values() for kind in kinds))


def make_hundred_classes() -> ImageDataset:
    """Two images of each of CIFAR-100's classes; an image's first pixel is its class."""
    labels = torch.arange(100).repeat(2)
    images = labels.to(torch.uint8).reshape(-1, 1, 1, 1).expand(-1, 3, 2, 2).contiguous()
    return ImageDataset(images, labels, KINDS, "cifar100", (0.5,) * 3, (0.25,) * 3)


def test_twenty_groups_of_five_hold_every_class_once() -> None:
    assert len(SUPERCLASSES) == 20
    assert {len(kinds) for kinds in SUPERCLASSES.values()} == {5}
    assert len(set(KINDS)) == 100


def test_images_of_the_named_groups_are_kept_in_order_with_the_groups_for_labels() -> None:
    found = grouped(make_hundred_classes(), ("trees", "fish"))
    kinds = [KINDS[int(image[0, 0, 0])] for image in found.images]
    assert kinds == [kind for kind in KINDS * 2 if kind in SUPERCLASSES["trees"] + SUPERCLASSES["fish"]]
    assert [found.classes[label] for label in found.labels] == [
        "trees" if kind in SUPERCLASSES["trees"] else "fish" for kind in kinds
    ]
    assert found.classes == ("trees", "fish")
    assert (found.mean, found.std) == ((0.5,) * 3, (0.25,) * 3)


def test_another_data_set_is_refused() -> None:
    other = ImageDataset(
        torch.zeros(1, 3, 2, 2, dtype=torch.uint8), torch.zeros(1, dtype=torch.int64), ("cat",), "cats"
    )
    with pytest.raises(DatasetError, match="cats has no class 'aquarium_fish'"):
        grouped(other, ("fish",))
