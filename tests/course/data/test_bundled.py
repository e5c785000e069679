from __future__ import annotations

import sys
from dataclasses import replace

import pytest
import torch

from vit_course.data import cat, cats, digits, photo, shapes
from vit_course.trained import trained_vit


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


class TestDigits:
    def test_they_are_the_real_ones(self) -> None:
        pytest.importorskip("sklearn", reason="the digits come with scikit-learn")
        dataset = digits()
        assert dataset.images.shape == (1797, 1, 8, 8)
        assert dataset.images.max() == 255
        assert dataset.labels[:10].tolist() == list(range(10))

    def test_without_scikit_learn_the_extra_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
        with pytest.raises(ImportError, match=r"vit-course\[train\]"):
            digits()


def test_the_photo_is_upright_and_in_color() -> None:
    picture = photo()
    assert (picture.dtype, picture.shape) == (torch.uint8, (3, 600, 512))
    red, _, blue = picture[:, 20:120, 420:500].float().mean((1, 2))  # the wall behind her, top right
    assert blue > red + 40


def test_cut_outs_of_the_cat_are_photos_that_a_trained_model_can_be_asked_about() -> None:
    saved = trained_vit()
    pictures = cats(saved.classes, 40)
    assert tuple(pictures.images.shape) == (40, 3, 32, 32)
    assert len(pictures.images.unique(dim=0)) > 30
    assert {pictures.classes[each] for each in pictures.labels} == {"cat"}
    with torch.no_grad():
        answers = saved.model(replace(pictures, mean=saved.mean, std=saved.std).normalize(pictures.images)).argmax(1)
    assert (answers == pictures.labels).float().mean() > 0.3


def test_the_cat_is_upright_and_in_color() -> None:
    picture = cat()
    assert (picture.dtype, picture.shape) == (torch.uint8, (3, 128, 128))
    red, green, blue = picture[:, 98:110, 65:75].float().mean((1, 2))  # its nose
    assert red > green + 40 > blue + 40
