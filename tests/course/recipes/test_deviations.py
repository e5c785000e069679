"""The published deviations compute what the notebooks compute, and stay what they are while a model trains."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.config import ViTConfig
from vit_course.interpret import record
from vit_course.recipes import deviations
from vit_course.vit import VisionTransformer

CONFIG = ViTConfig(image_size=8, patch_size=4, in_channels=1, num_classes=5, embed_dim=12, depth=2, num_heads=3)
HEAD_OF_TWO = ViTConfig(**{**vars(CONFIG), "representation_size": 7})


def build_model_with(*applied: deviations.Deviation, config: ViTConfig = CONFIG) -> VisionTransformer:
    torch.manual_seed(0)
    model = VisionTransformer(config)
    nn.init.normal_((model.head if isinstance(model.head, nn.Linear) else model.head[2]).weight)  # it starts at zero
    for deviation in applied:
        deviation.apply(model)
    return model.eval()


def make_images(count: int = 4) -> Tensor:
    return torch.randn(count, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def copy_weights_to_right_model(model: VisionTransformer) -> VisionTransformer:
    right = VisionTransformer(model.config)
    right.load_state_dict(model.state_dict())
    return right.eval()


def train_few_steps(model: VisionTransformer, steps: int = 3) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05, weight_decay=0.1)
    model.train()
    for _ in range(steps):
        loss = F.cross_entropy(model(make_images()), torch.arange(4))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


@pytest.mark.parametrize("config", [CONFIG, HEAD_OF_TWO], ids=["one Linear", "head of two layers"])
def test_softmax_before_the_loss_gives_probabilities(config: ViTConfig) -> None:
    probabilities = build_model_with(deviations.SOFTMAX_BEFORE_LOSS, config=config)(make_images())
    torch.testing.assert_close(probabilities, build_model_with(config=config)(make_images()).softmax(-1))


def test_the_loss_on_probabilities_cannot_fall_below_1_46() -> None:
    certain = F.one_hot(torch.arange(10), 10).float()
    assert F.cross_entropy(certain, torch.arange(10)).item() == pytest.approx(math.log(math.e + 9) - 1)
    assert math.log(math.e + 9) - 1 == pytest.approx(1.46, abs=0.005)
    assert "1.46" in deviations.SOFTMAX_BEFORE_LOSS.sentence


@pytest.mark.parametrize("trained", [False, True])
def test_heads_on_slices_equals_small_maps_in_a_loop_over_heads(trained: bool) -> None:
    model = build_model_with(deviations.HEADS_ON_SLICES, deviations.NO_PROJECTION)
    if trained:
        train_few_steps(model)
    attention = model.blocks[0].attention
    x = torch.randn(2, 5, 12)
    outputs = []
    for head in range(3):
        own = slice(4 * head, 4 * head + 4)
        query, key, value = (
            F.linear(x[..., own], weight[own, own], bias[own])
            for weight, bias in zip(attention.qkv.weight.chunk(3), attention.qkv.bias.chunk(3), strict=True)
        )
        weights = (query @ key.transpose(-2, -1) / 2).softmax(-1)  # 2 = √head_dim
        outputs.append(weights @ value)
    torch.testing.assert_close(attention(x), torch.cat(outputs, dim=-1))


def test_what_is_zero_on_the_slices_stays_zero_and_the_rest_learns() -> None:
    model = build_model_with(deviations.HEADS_ON_SLICES)
    weight = model.blocks[1].attention.qkv.weight
    before = weight.detach().clone()
    train_few_steps(model)
    outside = before == 0
    assert outside.sum() == 3 * 12 * 12 - 3 * 3 * 4 * 4
    assert (weight[outside] == 0).all()
    assert (weight[~outside] != before[~outside]).all()


def test_no_projection_stays_the_identity() -> None:
    model = build_model_with(deviations.NO_PROJECTION)
    train_few_steps(model)
    projection = model.blocks[0].attention.projection
    assert torch.equal(projection.weight, torch.eye(12))
    assert torch.equal(projection.bias, torch.zeros(12))


def test_weights_of_the_lab_sheet_mean_the_same_in_the_right_model() -> None:
    model = build_model_with(
        deviations.TORCH_START, deviations.HEADS_ON_SLICES, deviations.NO_PROJECTION, deviations.SOFTMAX_BEFORE_LOSS
    )
    train_few_steps(model)
    logits = copy_weights_to_right_model(model)(make_images())
    torch.testing.assert_close(logits.softmax(-1), model(make_images()))


def test_gelu_after_the_mlp_is_one_more_gelu_in_each_block() -> None:
    wrong, right = build_model_with(deviations.GELU_AFTER_MLP).blocks[0], build_model_with().blocks[0]
    x = torch.randn(2, 5, 12)
    torch.testing.assert_close(wrong.mlp(x), F.gelu(right.mlp(x)))


def test_torchs_own_start_leaves_no_head_at_zero() -> None:
    torch.manual_seed(0)
    model = VisionTransformer(CONFIG)
    assert (model.head.weight == 0).all()
    deviations.TORCH_START.apply(model)
    assert (model.head.weight != 0).all()
    assert model.head.weight.abs().max() <= 12**-0.5


@pytest.mark.parametrize(
    "deviation", [value for value in vars(deviations).values() if isinstance(value, deviations.Deviation)]
)
def test_every_deviation_still_gives_every_intermediate(deviation: deviations.Deviation) -> None:
    model = build_model_with(deviation)
    stages = record(model, make_images())
    torch.testing.assert_close(stages["logits"], model(make_images()))
    assert stages["blocks.1.attention.weights"].shape == (4, 3, 5, 5)
