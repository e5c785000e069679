"""How a VisionTransformer's weights start, by the statistics of seeded draws."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from vit_course.config import ViTConfig
from vit_course.positions import sinusoidal_positions
from vit_course.pretrained import from_torchvision
from vit_course.vit import VisionTransformer

pytestmark = pytest.mark.usefixtures("seed_torch")
# A standard deviation of n values is known to 1 / √(2n): 6 % of 128, 0.6 % of 16,384.
WIDE = ViTConfig(
    image_size=32, patch_size=8, embed_dim=128, depth=2, num_heads=4, num_classes=7, representation_size=96
)


def build_seeded_vit(**changes: Any) -> VisionTransformer:
    torch.manual_seed(0)
    return VisionTransformer(replace(WIDE, **changes))


def assert_uniform(tensor: Tensor, bound: float) -> None:
    assert 0.98 * bound < tensor.abs().max() <= bound
    assert tensor.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.02)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_paper_initialisation(kind: Any) -> None:
    model = build_seeded_vit(initialisation="paper", patch_embedding=kind)
    for block in model.blocks:
        for part in (*block.attention.qkv.weight.chunk(3), block.attention.projection.weight):
            assert_uniform(part, math.sqrt(6 / (128 + 128)))
        for linear in (block.mlp.fc1, block.mlp.fc2):
            assert_uniform(linear.weight, math.sqrt(6 / (128 + 512)))
        assert block.mlp.fc1.bias.std().item() == pytest.approx(1e-6, rel=0.2)
        assert 0 < block.mlp.fc2.bias.abs().max() < 1e-5
        assert not block.attention.qkv.bias.any()
        assert not block.attention.projection.bias.any()
    projection = model.patch_embedding.projection
    assert projection.weight.std().item() == pytest.approx(math.sqrt(1 / 192), rel=0.03)
    assert not projection.bias.any()
    assert model.head[0].weight.std().item() == pytest.approx(math.sqrt(1 / 128), rel=0.03)
    for zero in (model.head[0].bias, model.head[2].weight, model.head[2].bias, model.class_token):
        assert not zero.any()
    assert model.positions.std().item() == pytest.approx(0.02, rel=0.1)


def test_a_head_of_one_linear_starts_at_zero() -> None:
    head = build_seeded_vit(representation_size=None).head
    assert not head.weight.any()
    assert not head.bias.any()


def test_torchvision_initialisation_is_that_of_torchvision() -> None:
    from torchvision.models import VisionTransformer as TorchvisionTransformer

    torch.manual_seed(1)
    theirs = TorchvisionTransformer(32, 8, 2, 4, 128, 512, num_classes=7, representation_size=96)
    expected = from_torchvision(theirs.state_dict())
    ours = build_seeded_vit(initialisation="torchvision", patch_embedding="convolution").state_dict()
    assert ours.keys() == expected.keys()
    for name, tensor in ours.items():
        std = expected[name].std().item()
        # four sigma of the difference of two samples; a constant group has to be equal
        assert tensor.std().item() == pytest.approx(std, rel=4 / math.sqrt(tensor.numel())), name
        assert tensor.mean().item() == pytest.approx(expected[name].mean().item(), abs=std / 2), name


def test_torchvision_initialisation_has_the_bounds_of_torchvision() -> None:
    for block in build_seeded_vit(initialisation="torchvision").blocks:
        assert_uniform(block.attention.qkv.weight, math.sqrt(6 / (128 + 3 * 128)))
        assert_uniform(block.attention.projection.weight, math.sqrt(1 / 128))
        assert not block.attention.projection.bias.any()


def test_truncated_normal_initialisation() -> None:
    model = build_seeded_vit(initialisation="truncated_normal", patch_embedding="convolution")
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            assert not parameter.any(), name
        elif "norm" in name:
            assert bool((parameter == 1).all()), name
        else:
            assert parameter.abs().max() <= 0.04, name
            # a normal cut at two sigma keeps 0.88 of its standard deviation
            assert parameter.std().item() == pytest.approx(0.88 * 0.02, rel=0.2), name


@pytest.mark.parametrize("initialisation", ["paper", "torchvision", "truncated_normal"])
def test_position_std_is_heeded_and_tables_of_sines_are_kept(initialisation: Any) -> None:
    positions = build_seeded_vit(initialisation=initialisation, position_std=0.5).positions
    assert 0.4 < positions.std() < 0.55
    started = build_seeded_vit(initialisation=initialisation, positions="learned_from_sinusoidal").positions
    assert torch.equal(started[0], sinusoidal_positions(17, 128))


@pytest.mark.parametrize("initialisation", ["paper", "torchvision", "truncated_normal"])
def test_initialisations_do_without_biases_and_positions(initialisation: Any) -> None:
    model = build_seeded_vit(initialisation=initialisation, qkv_bias=False, positions="none", pooling="mean")
    assert bool(model.blocks[0].attention.qkv.weight.any())
