"""benchmarks/attention_distance.py: what the figure of receptive fields is drawn from."""

import pytest
import torch
from attention_distance import center_patch, everywhere_alike, flow_to, measure

from vit_course.config import ViTConfig
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig((8, 12), 2, embed_dim=12, depth=3, num_heads=3)


def test_the_center_patch_lies_right_below_and_beside_the_middle():
    assert center_patch(CONFIG) == 2 * 6 + 3


def test_every_layer_and_head_has_a_distance():
    found = measure(VisionTransformer(CONFIG).eval(), torch.randn(2, 3, 8, 12))
    assert [len(layer) for layer in found["distances"]] == [3, 3, 3]
    assert [len(shares) for shares in found["flow"]] == [24, 24, 24]
    assert all(sum(shares) == pytest.approx(1, abs=1e-3) for shares in found["flow"])


def test_a_token_that_attends_to_itself_stays_itself():
    itself = torch.eye(25).expand(2, 3, 25, 25)
    shares = flow_to(4, [itself, itself], CONFIG)[-1]
    assert shares[4] == 1


def test_even_attention_looks_the_mean_distance_far():
    assert everywhere_alike(ViTConfig((2, 4), 2, embed_dim=12, num_heads=3)) == pytest.approx(1.0)
