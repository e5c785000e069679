from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_course.data import Augmentation, DatasetError, FolderBatches, folder_batches

CHANGES = Augmentation(flip=True, erase=8, randaugment=True)


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """Class folders of noise in many sizes, some gray, larger than what lies in memory."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 12), ("test", 5)):
        for number in range(count):
            shape = (*rng.integers(70, 120, 2), 3)[: 2 + number % 2]
            folder = tmp_path / "photos" / split / ("cat", "dog", "owl")[number % 3]
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(rng.integers(0, 256, shape, dtype=np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "photos"


def has_same_batches(first: FolderBatches, second: FolderBatches) -> bool:
    return all(
        torch.equal(images, others) and torch.equal(labels, other_labels)
        for (images, labels), (others, other_labels) in zip(first, second, strict=True)
    )


def test_batches_have_the_protocol_of_the_small_ones(photo_folder: Path) -> None:
    train, test = folder_batches(photo_folder, 32, 5, CHANGES)
    assert (len(train), len(test)) == (3, 1)
    pairs = list(train)
    assert [len(labels) for _, labels in pairs] == [5, 5, 2]
    assert all(images.shape[1:] == (3, 32, 32) and images.dtype == torch.float32 for images, _ in pairs)
    assert sorted(torch.cat([labels for _, labels in pairs]).tolist()) == sorted([0, 1, 2] * 4)
    assert (train.classes, train.name, train.epoch) == (("cat", "dog", "owl"), "photos", 1)
    assert (test.mean, test.std) == (train.mean, train.std)


def test_statistics_are_those_of_the_images_that_the_model_sees(photo_folder: Path) -> None:
    train, _ = folder_batches(photo_folder, 32, 12, min_crop=1.0)
    images, _ = next(iter(train))
    assert images.mean((0, 2, 3)).abs().max() < 1e-4
    assert (images.std((0, 2, 3)) - 1).abs().max() < 1e-3


def test_test_images_are_always_the_same(photo_folder: Path) -> None:
    _, test = folder_batches(photo_folder, 32, 2, CHANGES)
    assert has_same_batches(test, test)
    assert torch.cat([labels for _, labels in test]).tolist() == sorted([0, 1, 2, 0, 1])


def test_the_seed_and_the_pass_decide(photo_folder: Path) -> None:
    train, _ = folder_batches(photo_folder, 32, 5, CHANGES, seed=3)
    list(train)
    again, _ = folder_batches(photo_folder, 32, 5, CHANGES, seed=3)
    again.epoch = 1
    train.epoch = 1
    assert has_same_batches(train, again)
    again.epoch = 0
    assert not has_same_batches(train, again)


def test_workers_change_nothing(photo_folder: Path) -> None:
    alone, _ = folder_batches(photo_folder, 32, 5, CHANGES)
    helped, _ = folder_batches(photo_folder, 32, 5, CHANGES, num_workers=1)
    assert has_same_batches(alone, helped)


def test_every_image_has_its_own_crop_in_every_pass(photo_folder: Path) -> None:
    paths = sorted((photo_folder / "train").rglob("*.png"))
    for path in paths[1:]:
        path.write_bytes(paths[0].read_bytes())
    train, _ = folder_batches(photo_folder, 32, 12, min_crop=0.2)
    crops = torch.cat([images for images, _ in [*train, *train]])
    assert len({crop.numpy().tobytes() for crop in crops}) == 24


def test_several_processes_see_together_what_one_sees(photo_folder: Path) -> None:
    alone, _ = folder_batches(photo_folder, 32, 5, CHANGES)
    shares = [folder_batches(photo_folder, 32, 5, CHANGES, rank=rank, world_size=2)[0] for rank in (0, 1)]
    for (images, labels), *parts in zip(alone, *shares, strict=True):
        for rank, (part, part_labels) in enumerate(parts):
            assert torch.equal(part, images[rank::2])
            assert torch.equal(part_labels, labels[rank::2])


@pytest.mark.parametrize("augmentation", [CHANGES, Augmentation(mixup=0.8, cutmix=1.0)])
def test_the_share_of_a_short_batch_may_be_empty(photo_folder: Path, augmentation: Augmentation) -> None:
    train, test = folder_batches(photo_folder, 32, 4, augmentation, rank=1, world_size=2)
    assert [len(images) for images, _ in test] == [2, 0]
    assert len(test) == 2
    train, _ = folder_batches(photo_folder, 32, 11, augmentation, rank=1, world_size=2)
    images, labels = list(train)[-1]
    assert images.shape == (0, 3, 32, 32)
    assert len(labels) == 0


def test_mixing_gives_targets(photo_folder: Path) -> None:
    train, _ = folder_batches(photo_folder, 32, 6, Augmentation(mixup=0.8, cutmix=1.0))
    for images, targets in train:
        assert (images.shape, targets.shape) == ((6, 3, 32, 32), (6, 3))
        torch.testing.assert_close(targets.sum(1), torch.ones(6))


def test_they_go_to_another_device(photo_folder: Path) -> None:
    train, _ = folder_batches(photo_folder, 32, 5, CHANGES)
    train.epoch = 2
    moved = train.to("meta")  # shapes without numbers, for want of a GPU
    images, labels = next(iter(moved))
    assert (images.device.type, labels.device.type) == ("meta", "meta")
    assert (images.shape, moved.epoch) == ((5, 3, 32, 32), 3)
    assert (train.device, train.epoch) == ("cpu", 2)


def test_a_broken_file_is_named_when_its_turn_comes(photo_folder: Path) -> None:
    train, test = folder_batches(photo_folder, 32, 5)
    next((photo_folder / "test" / "owl").iterdir()).write_bytes(b"no image")
    list(train)
    with pytest.raises(DatasetError, match=r"test/owl/2\.png cannot be read"):
        list(test)


@pytest.mark.parametrize("wrong", [{"image_size": 0}, {"batch_size": 0}, {"min_crop": 0.0}, {"min_crop": 1.5}])
def test_numbers_out_of_range_are_refused(photo_folder: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be at least 1, and min_crop above 0"):
        folder_batches(photo_folder, **({"image_size": 32, "batch_size": 5} | wrong))
