from __future__ import annotations

import builtins
from pathlib import Path

import numpy as np
import pytest
import torch

from vit_course.data import (
    ImageDataset,
    channel_statistics,
    digits,
    load_npz,
    photo,
    shapes,
    train_validation_split,
)
from vit_course.drawings import SHAPES, draw_shapes

AREAS = {  # by hand, in units of the radius squared
    "disc": 2.545,
    "ring": 1.810,
    "square": 2.25,
    "triangle": 1.299,
    "cross": 1.814,
    "star": 1.234,
    "crescent": 1.449,
    "bar": 1.04,
    "arrow": 1.225,
    "heart": 2.519,
}


def numbered(count: int = 20, channels: int = 3, num_classes: int = 4) -> ImageDataset:
    """Every image is filled with its own number."""
    images = torch.arange(count, dtype=torch.uint8)[:, None, None, None].expand(-1, channels, 5, 6)
    return ImageDataset(images, torch.arange(count) % num_classes, tuple("abcd"[:num_classes]), "numbered")


def write_npz(path: Path, **changes: object) -> Path:
    rng = np.random.default_rng(0)
    arrays = {
        "train_images": rng.integers(0, 256, (7, 4, 5, 3), dtype=np.uint8),
        "train_labels": np.arange(7, dtype=np.uint8) % 2,
        "classes": np.array(["cat", "dog"]),
    }
    np.savez(path, **{name: array for name, array in (arrays | changes).items() if array is not None})
    return path


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
            numbered().subset(slice(0))

    def test_normalised_images_have_mean_zero_and_deviation_one(self) -> None:
        dataset = shapes(100)
        images = dataset.normalize(dataset.images)
        assert images.dtype == torch.float32
        assert images.mean((0, 2, 3)).abs().max() < 1e-4
        assert (images.std((0, 2, 3)) - 1).abs().max() < 1e-3

    def test_a_subset_keeps_the_statistics(self) -> None:
        dataset = numbered()
        part = dataset.subset(torch.tensor([3, 1]))
        assert part.images[:, 0, 0, 0].tolist() == [3, 1]
        assert part.labels.tolist() == [3, 1]
        assert part.mean == dataset.mean

    def test_its_repr_is_short(self) -> None:
        assert repr(numbered()) == "ImageDataset(numbered: 20 images 3x5x6, 4 classes)"


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
        train, validation = train_validation_split(numbered(20), 6)
        assert (len(train), len(validation)) == (14, 6)
        both = torch.cat([train.images, validation.images])[:, 0, 0, 0]
        assert sorted(both.tolist()) == list(range(20))

    def test_the_seed_decides(self) -> None:
        first, again, other = (train_validation_split(numbered(), 5, seed)[1].images for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_the_statistics_are_those_of_the_training_part(self) -> None:
        train, validation = train_validation_split(numbered(), 5)
        assert (train.mean, train.std) == channel_statistics(train.images)
        assert (validation.mean, validation.std) == (train.mean, train.std)

    @pytest.mark.parametrize("num_validation", [0, -1, 20, 21])
    def test_no_part_is_empty(self, num_validation: int) -> None:
        with pytest.raises(ValueError, match=f"num_validation {num_validation} is not between 1 and 19"):
            train_validation_split(numbered(), num_validation)


class TestShapes:
    def test_a_seed_draws_the_same_pictures(self) -> None:
        first, again, other = shapes(600, seed=1), shapes(600, seed=1), shapes(600, seed=2)
        assert torch.equal(first.images, again.images)
        assert torch.equal(first.labels, again.labels)
        assert not torch.equal(first.images, other.images)

    def test_classes_are_balanced_and_shuffled(self) -> None:
        dataset = shapes(200)
        assert dataset.images.shape == (200, 3, 32, 32)
        assert torch.bincount(dataset.labels).tolist() == [20] * 10
        assert dataset.labels[:10].tolist() != list(range(10))

    def test_no_picture_is_empty_and_none_is_like_another(self) -> None:
        images = shapes(500).images.float()
        assert images.std((2, 3)).amax(1).min() > 15
        assert len({image.numpy().tobytes() for image in images}) == 500

    @pytest.mark.parametrize("name", SHAPES)
    def test_a_shape_covers_its_area(self, name: str) -> None:
        ticks = torch.linspace(-1.4985, 1.4985, 300)  # off the outlines
        distance = SHAPES[name](ticks.expand(300, -1), ticks[:, None].expand(-1, 300))
        area = (distance < 0).float().mean().item() * 3.0**2
        assert distance.isfinite().all()
        assert area == pytest.approx(AREAS[name], abs=0.03)  # an outline crosses a few hundred cells of 1e-4

    def test_another_size_can_be_drawn(self) -> None:
        assert draw_shapes(torch.tensor([3, 5]), torch.Generator(), 48).shape == (2, 3, 48, 48)


class TestDigits:
    def test_they_are_the_real_ones(self) -> None:
        pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
        dataset = digits()
        assert dataset.images.shape == (1797, 1, 8, 8)
        assert dataset.images.max() == 255
        assert dataset.labels[:10].tolist() == list(range(10))

    def test_without_scikit_learn_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        real_import = builtins.__import__

        def no_sklearn(name: str, *rest: object) -> object:
            if name.startswith("sklearn"):
                raise ImportError(name)
            return real_import(name, *rest)

        monkeypatch.setattr(builtins, "__import__", no_sklearn)
        with pytest.raises(ImportError, match=r"vit-course\[train\]"):
            digits()


class TestNpz:
    def test_images_become_channels_first(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "pets.npz")
        dataset = load_npz(path)
        with np.load(path) as arrays:
            assert dataset.images[2, :, 3, 1].tolist() == arrays["train_images"][2, 3, 1].tolist()
        assert dataset.labels.tolist() == [0, 1, 0, 1, 0, 1, 0]
        assert (dataset.name, dataset.classes) == ("pets", ("cat", "dog"))

    def test_grey_images_get_one_channel(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "grey.npz", train_images=np.zeros((7, 4, 5), dtype=np.uint8))
        assert load_npz(path).images.shape == (7, 1, 4, 5)

    def test_a_missing_file_says_what_was_expected(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"no file .*none\.npz: expected an \.npz with test_images"):
            load_npz(tmp_path / "none.npz", "test")

    def test_a_missing_array_is_named(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "half.npz", classes=None)
        with pytest.raises(ValueError, match="lacks classes; it holds train_images, train_labels"):
            load_npz(path)

    @pytest.mark.parametrize("keep", [0, 10, 300, -30])
    def test_a_damaged_file_says_so(self, tmp_path: Path, keep: int) -> None:
        path = write_npz(tmp_path / "cut.npz")
        path.write_bytes(path.read_bytes()[:keep])
        with pytest.raises(ValueError, match=r"cut\.npz is damaged or no \.npz file"):
            load_npz(path)

    def test_a_flipped_byte_is_seen(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "flipped.npz")
        content = bytearray(path.read_bytes())
        content[250] ^= 255  # inside the pixels
        path.write_bytes(content)
        with pytest.raises(ValueError, match="is damaged"):
            load_npz(path)

    def test_nothing_is_unpickled(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "pickle.npz", classes=np.array([{}, {}], dtype=object))
        with pytest.raises(ValueError, match="is damaged or no"):
            load_npz(path)

    @pytest.mark.parametrize("images", [np.zeros((7, 4, 5, 3)), np.zeros((7, 4), dtype=np.uint8)])
    def test_images_of_another_kind_are_refused(self, tmp_path: Path, images: np.ndarray) -> None:
        path = write_npz(tmp_path / "odd.npz", train_images=images)
        with pytest.raises(ValueError, match="train_images must be uint8"):
            load_npz(path)

    def test_too_few_labels_are_refused(self, tmp_path: Path) -> None:
        path = write_npz(tmp_path / "short.npz", train_labels=np.zeros(6, dtype=np.uint8))
        with pytest.raises(ValueError, match="one per image"):
            load_npz(path)


def test_the_photo_is_upright_and_in_colour() -> None:
    picture = photo()
    assert (picture.dtype, picture.shape) == (torch.uint8, (3, 600, 512))
    red, _, blue = picture[:, 20:120, 420:500].float().mean((1, 2))  # the wall behind her, top right
    assert blue > red + 40
