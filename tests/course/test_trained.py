"""The trained model that comes with the course: whole, small, its own each time, and right on photos."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from vit_course import trained
from vit_course.data import Batches, holds_dataset, load_dataset
from vit_course.trained import trained_vit
from vit_course.training import evaluate
from vit_course.vit import VisionTransformer


def test_it_is_a_vit_of_ten_classes_in_evaluation_mode() -> None:
    saved = trained_vit()
    assert isinstance(saved.model, VisionTransformer)
    assert saved.classes[0] == "airplane"
    assert len(saved.classes) == saved.config.num_classes == 10
    assert not saved.model.training
    assert {each.dtype for each in saved.model.parameters()} == {torch.float32}


def test_each_call_gives_a_model_of_its_own() -> None:
    one, other = trained_vit().model, trained_vit().model
    with torch.no_grad():
        one.head.weight.zero_()
    assert other.head.weight.abs().sum() > 0


def test_the_file_is_small() -> None:
    assert trained.WEIGHTS.stat().st_size < 1_500_000


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    damaged = tmp_path / "vit_cifar10.safetensors"
    damaged.write_bytes(trained.WEIGHTS.read_bytes()[:-1])
    monkeypatch.setattr(trained, "WEIGHTS", damaged)
    with pytest.raises(ValueError, match="not the file that came with this release"):
        trained_vit()


def test_it_is_right_on_photos_as_its_log_says() -> None:
    if not holds_dataset("cifar10"):
        pytest.skip("needs CIFAR-10 in the folder that VIT_COURSE_DATA names")
    saved = trained_vit()
    _, test = load_dataset("cifar10")
    some = replace(test.subset(slice(1000)), mean=saved.mean, std=saved.std)
    assert evaluate(saved.model, Batches(some, 500), "cpu")[1] > 0.79


def test_it_normalizes_images_by_its_own_statistics() -> None:
    vit = trained_vit()
    gray = torch.tensor(vit.mean)[None, :, None, None].expand(2, -1, 4, 6)
    assert torch.equal(vit.normalize(gray), torch.zeros(2, 3, 4, 6))
    step = torch.tensor(vit.std)[:, None, None]
    assert torch.allclose(vit.normalize(gray + step), torch.ones(2, 3, 4, 6), atol=1e-6)
