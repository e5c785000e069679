from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vit_course.data import Augmentation, folder_batches
from vit_course.training import TrainingSettings, fit
from vit_course.training.feeding import make_feed
from vit_course.training.hardware import Processes

SETTINGS = TrainingSettings(epochs=3, batch_size=8, learning_rate=0.01, augmentation=Augmentation(flip=True))


@pytest.fixture
def photo_folder(tmp_path: Path) -> Path:
    """Bright and dark images of several sizes: 11 to train and 4 to measure on."""
    rng = np.random.default_rng(0)
    for split, count in (("train", 11), ("val", 4)):
        for index in range(count):
            low = 128 * (index % 2)
            pixels = rng.integers(low, low + 128, (20 + index, 24, 3)).astype(np.uint8)
            path = tmp_path / "photos" / split / ("bright" if index % 2 else "dark") / f"{index}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(path)
    return tmp_path / "photos"


def test_large_images_are_read_while_it_trains(photo_folder: Path, tiny_model, tmp_path: Path) -> None:
    train, validation = folder_batches(photo_folder, 8, 8, SETTINGS.augmentation)
    model = tiny_model(in_channels=3, num_classes=2)
    history = fit(model, train, validation, SETTINGS, folder=tmp_path / "run", trackers=())
    assert history.validation_accuracy[-1] == 1.0
    assert history.train_accuracy[0] * 11 == pytest.approx(round(history.train_accuracy[0] * 11))


@pytest.mark.parametrize(
    ("changes", "keywords", "words"),
    [
        ({"batch_size": 4}, {}, "batch_size is 4 in the settings and 8 in the batches"),
        ({"augmentation": Augmentation()}, {}, "augmentation is not that of the batches"),
        ({}, {"rank": 1, "world_size": 2}, "process 0 of 1, and the batches are for 1 of 2"),
        ({"seed": 4}, {"seed": 3}, "seed is 4 in the settings and 3 in the batches"),
    ],
)
def test_batches_that_fit_other_settings_are_refused(
    changes: dict, keywords: dict, words: str, photo_folder: Path, tiny_model
) -> None:
    train, validation = folder_batches(photo_folder, 8, 8, SETTINGS.augmentation, **keywords)
    with pytest.raises(ValueError, match=words):
        fit(tiny_model(in_channels=3, num_classes=2), train, validation, replace(SETTINGS, **changes))


def test_they_go_where_the_model_is(photo_folder: Path) -> None:
    """On a GPU, too, where `folder_batches` would leave them on the CPU."""
    train, validation = folder_batches(photo_folder, 8, 8, SETTINGS.augmentation)
    fed = make_feed(train, validation, SETTINGS, Processes(torch.device("meta")))  # for want of a GPU
    for batches in (fed.train, fed.validation):
        images, labels = next(iter(batches))
        assert (images.device.type, labels.device.type) == ("meta", "meta")


def test_a_seed_of_their_own_is_fine_when_the_settings_say_so(photo_folder: Path, tiny_model) -> None:
    train, validation = folder_batches(photo_folder, 8, 8, SETTINGS.augmentation, seed=3)
    settings = replace(SETTINGS, epochs=1, seed=3)
    fit(tiny_model(in_channels=3, num_classes=2), train, validation, settings, trackers=())


def test_a_mixture_of_both_is_refused(photo_folder: Path, tiny_model, random_dataset) -> None:
    batches, _ = folder_batches(photo_folder, 8, 8)
    for pair in ((batches, random_dataset()), (random_dataset(), batches)):
        with pytest.raises(ValueError, match="both be an ImageDataset, or both come from folder_batches"):
            fit(tiny_model(), *pair, SETTINGS)
