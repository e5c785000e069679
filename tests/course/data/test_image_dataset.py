from __future__ import annotations

import pytest
import torch

from tests.course.data.conftest import make_numbered_dataset
from vit_course.data import ImageDataset, channel_statistics, shapes, train_validation_split


class TestImageDataset:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"images": torch.zeros(4, 3, 2, 2)}, "images must be uint8"),
            ({"images": torch.zeros(4, 2, 2, dtype=torch.uint8)}, "images must be uint8"),
            ({"labels": torch.zeros(4, dtype=torch.int32)}, "labels must be int64"),
            ({"labels": torch.zeros(3, dtype=torch.int64)}, r"labels must be int64 \(4,\)"),
            ({"labels": torch.tensor([0, 1, 2, 5])}, "labels run from 0 to 5, but 2 classes"),
            ({"labels": torch.tensor([0, -1, 0, 0])}, "labels run from -1"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, change: dict[str, torch.Tensor], message: str) -> None:
        parts = {"images": torch.zeros(4, 3, 2, 2, dtype=torch.uint8), "labels": torch.zeros(4, dtype=torch.int64)}
        with pytest.raises(ValueError, match=message):
            ImageDataset(**(parts | change), classes=("a", "b"), name="bad")

    def test_an_empty_one_is_refused(self) -> None:
        with pytest.raises(ValueError, match="holds no image"):
            make_numbered_dataset().subset(slice(0))

    def test_normalized_images_have_mean_zero_and_deviation_one(self) -> None:
        dataset = shapes(100)
        images = dataset.normalize(dataset.images)
        assert images.dtype == torch.float32
        assert images.mean((0, 2, 3)).abs().max() < 1e-4
        assert (images.std((0, 2, 3)) - 1).abs().max() < 1e-3

    def test_a_subset_keeps_the_statistics(self) -> None:
        dataset = make_numbered_dataset()
        part = dataset.subset(torch.tensor([3, 1]))
        assert part.images[:, 0, 0, 0].tolist() == [3, 1]
        assert part.labels.tolist() == [3, 1]
        assert part.mean == dataset.mean


class TestStatistics:
    def test_they_are_those_of_the_pixels(self) -> None:
        images = torch.randint(0, 256, (11, 2, 7, 5), dtype=torch.uint8)
        mean, std = channel_statistics(images)
        pixels = images.double() / 255
        assert mean == pytest.approx(pixels.mean((0, 2, 3)).tolist(), abs=1e-12)
        assert std == pytest.approx(pixels.std((0, 2, 3), correction=0).tolist(), abs=1e-12)

    def test_a_constant_channel_divides_harmlessly(self) -> None:
        assert channel_statistics(torch.full((2, 1, 3, 3), 51, dtype=torch.uint8)) == (
            (pytest.approx(0.2),),
            (1.0,),
        )


class TestSplit:
    def test_each_image_is_in_one_part(self) -> None:
        train, validation = train_validation_split(make_numbered_dataset(20), 6)
        assert (len(train), len(validation)) == (14, 6)
        both = torch.cat([train.images, validation.images])[:, 0, 0, 0]
        assert sorted(both.tolist()) == list(range(20))

    def test_the_training_part_is_shuffled_too(self) -> None:
        train = train_validation_split(make_numbered_dataset(), 6)[0].images[:, 0, 0, 0].tolist()
        assert train != sorted(train)

    def test_the_seed_decides(self) -> None:
        first, again, other = (train_validation_split(make_numbered_dataset(), 5, seed)[1].images for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_the_statistics_are_those_of_the_training_part(self) -> None:
        train, validation = train_validation_split(make_numbered_dataset(), 5)
        assert (train.mean, train.std) == channel_statistics(train.images)
        assert (validation.mean, validation.std) == (train.mean, train.std)
