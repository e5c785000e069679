"""Lesson 07's experiments train the student's own ViT of lesson 05, which answers as the course's does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from exercise_kit.engine.lesson_answers import load_right_objects
from vit_course import VisionTransformer, ViTConfig

ROOT = Path(__file__).parents[2]
BASE = ViTConfig(patch_size=8, embed_dim=32, depth=2, num_heads=4, position_std=0.5)
CONFIGS = {
    "learned": BASE,
    "small": replace(BASE, position_std=0.02),
    "sine": replace(BASE, positions="sinusoidal"),
    "none": replace(BASE, positions="none"),
}


def run_lessons_build(model_class: type[torch.nn.Module]):
    """Lesson 07's `build`, with the class that `own` gave."""
    (build,) = load_right_objects(ROOT / "solutions" / "07_experiments.py", ("build",), "vit_course")
    build.__globals__["MyViT"] = model_class
    return build


@pytest.fixture(scope="module")
def vit_of_lesson_05() -> type[torch.nn.Module]:
    """The class that lesson 05's solution writes."""
    (made,) = load_right_objects(ROOT / "solutions" / "05_vit.py", ("VisionTransformer",), "vit_course")
    assert not issubclass(made, VisionTransformer)
    return made


@pytest.mark.parametrize("name", CONFIGS)
def test_the_experiments_train_the_student_s_own_class(vit_of_lesson_05, name):
    torch.manual_seed(0)
    mine = run_lessons_build(vit_of_lesson_05)(CONFIGS[name]).eval()
    assert type(mine) is vit_of_lesson_05
    theirs = VisionTransformer(CONFIGS[name]).eval()
    theirs.load_state_dict(mine.state_dict())
    images = torch.randn(2, 3, 32, 32)
    for model in (mine, theirs):
        model.head.weight.data.fill_(0.1).mul_(torch.arange(32))  # it starts at zero, where all logits are alike
    torch.testing.assert_close(mine(images), theirs(images))
    assert [each.shape for each in mine.parameters()] == [each.shape for each in theirs.parameters()]
    if name in ("learned", "small"):
        assert mine.positions.std().item() == pytest.approx(CONFIGS[name].position_std, rel=0.1)


@pytest.mark.parametrize("changes", [{"pooling": "mean"}, {"positions": "sinusoidal_2d"}])
def test_an_option_that_it_lacks_is_the_course_s(vit_of_lesson_05, changes):
    assert type(run_lessons_build(vit_of_lesson_05)(replace(BASE, **changes))) is VisionTransformer


def test_where_none_is_kept_the_course_s_is_trained():
    assert type(run_lessons_build(VisionTransformer)(CONFIGS["none"])) is VisionTransformer
