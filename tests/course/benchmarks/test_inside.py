"""benchmarks/inside.py: what lesson 08 quotes, measured with the lesson's own functions."""

import pytest
import torch
from inside import covering, distances, lesson_functions

from vit_course.config import ViTConfig
from vit_course.data import shapes
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(image_size=32, patch_size=8, embed_dim=12, depth=2, num_heads=3)


@pytest.fixture
def lesson():
    torch.manual_seed(0)
    return lesson_functions(VisionTransformer(CONFIG), shapes(20))


def test_covering_has_a_number_for_every_map(lesson):
    found = covering(lesson, VisionTransformer(CONFIG).eval(), lesson["pictures"].images[:10])
    assert len(found.pop("random")) == 10
    assert found.pop("nothing") == lesson["right"](lesson["pictures"].images[:10])
    assert list(found) == ["last block", "rollout", "fresh model", "gradient"]
    assert all(0 <= share <= 1 for each in found.values() for share in each.values())


def test_a_head_that_every_query_shares_lies_at_its_control(lesson):
    for block in lesson["model"].blocks:
        block.attention.qkv.weight.data.zero_()  # all scores are alike, so all attention is even
    assert torch.tensor(distances(lesson, lesson["pictures"].images[:4])).abs().max() < 1e-4


def test_the_gradient_map_names_the_patch_that_the_answer_hangs_on(lesson):
    lesson["model"].forward = lambda images: images[:, :, 8:16, 24:].sum(dim=(2, 3))  # row 1, column 3 of patches
    assert lesson["gradient_map"](lesson["pictures"].images[:3]).argmax(dim=1).tolist() == [7, 7, 7]
