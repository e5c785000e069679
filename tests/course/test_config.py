from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
import torch
from torch import nn

from vit_course import PRESETS
from vit_course.config import ViTConfig
from vit_course.positions import sinusoidal_positions
from vit_course.vit import VisionTransformer

pytestmark = pytest.mark.usefixtures("seed_torch")


def count_parameters_by_building(config: ViTConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in VisionTransformer(config).parameters())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_size": 30}, "height 30 is not divisible by patch_size 4"),
        ({"image_size": (32, 18)}, "width 18 is not divisible by patch_size 4"),
        ({"image_size": 0}, "height must be at least 1, not 0"),
        ({"image_size": (32, -4)}, "width must be at least 1, not -4"),
        ({"image_size": (32, 32, 3)}, r"image_size must be one side or \(height, width\), not \(32, 32, 3\)"),
        ({"image_size": 32.0}, r"image_size must be one side or \(height, width\), not 32.0"),
        ({"image_size": "32"}, r"image_size must be one side or \(height, width\), not '32'"),
        ({"patch_size": 0}, "patch_size must be at least 1, not 0"),
        ({"in_channels": 0}, "in_channels must be at least 1, not 0"),
        ({"num_classes": -1}, "num_classes must be at least 1, not -1"),
        ({"embed_dim": 0}, "embed_dim must be at least 1, not 0"),
        ({"depth": -1}, "depth must be at least 0, not -1"),
        ({"num_heads": 0}, "num_heads must be at least 1, not 0"),
        ({"representation_size": 0}, "representation_size must be at least 1, not 0"),
        ({"embed_dim": 100}, "embed_dim 100 is not divisible by num_heads 3"),
        ({"mlp_ratio": 0.001}, "mlp_ratio 0.001 of embed_dim 192 leaves no hidden unit"),
        ({"embed_dim": 9, "positions": "sinusoidal"}, "embed_dim 9 is not divisible by 2"),
        ({"embed_dim": 9, "positions": "learned_from_sinusoidal"}, "embed_dim 9 is not divisible by 2"),
        ({"embed_dim": 6, "positions": "sinusoidal_2d"}, "embed_dim 6 is not divisible by 4"),
        ({"embedding_dropout": 1.0}, r"embedding_dropout must be in \[0, 1\), not 1.0"),
        ({"attention_dropout": -0.1}, r"attention_dropout must be in \[0, 1\), not -0.1"),
        ({"projection_dropout": 2}, r"projection_dropout must be in \[0, 1\), not 2"),
        ({"mlp_dropout": math.nan}, r"mlp_dropout must be in \[0, 1\), not nan"),
        ({"patch_embedding": "conv"}, "patch_embedding must be one of 'linear', 'convolution', not 'conv'"),
        ({"positions": None}, "positions must be one of 'none', 'sinusoidal', .*, not None"),
        ({"pooling": "max"}, "pooling must be one of 'class_token', 'mean', not 'max'"),
        ({"head_activation": "gelu"}, "head_activation must be one of 'tanh', 'relu', not 'gelu'"),
        ({"gelu": "none"}, "gelu must be one of 'exact', 'tanh', not 'none'"),
        ({"initialisation": "zeros"}, "initialisation must be one of 'paper', 'torchvision', .*, not 'zeros'"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_configs_are_refused_with_what_was_given(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ViTConfig(**change)


def test_odd_embed_dim_is_welcome_where_no_sines_are() -> None:
    assert ViTConfig(embed_dim=9, num_heads=3, positions="learned").head_dim == 3


def test_derived_sizes_of_a_tall_image() -> None:
    config = ViTConfig(image_size=(24, 16), patch_size=4, embed_dim=24, num_heads=4, mlp_ratio=2.5)
    assert (config.height, config.width) == (24, 16)
    assert config.grid_size == (6, 4)
    assert config.num_patches == 24
    assert config.num_tokens == 25
    assert replace(config, pooling="mean").num_tokens == 24
    assert config.head_dim == 6
    assert config.hidden_dim == 60


def test_one_side_becomes_height_and_width() -> None:
    assert ViTConfig(image_size=32).image_size == (32, 32)
    assert ViTConfig(image_size=32) == ViTConfig(image_size=(32, 32))


def test_hidden_dim_survives_the_division_by_embed_dim() -> None:
    # 100 * (29 / 100) is 28.999999999999996 in floating point
    assert ViTConfig(embed_dim=100, num_heads=4, mlp_ratio=29 / 100).hidden_dim == 29


@pytest.mark.parametrize("name", PRESETS)
def test_config_survives_json(name: str) -> None:
    assert ViTConfig(**json.loads(json.dumps(asdict(PRESETS[name])))) == PRESETS[name]


@pytest.mark.parametrize(
    ("preset", "expected"),
    [
        # torchvision's documentation of vit_b_16, vit_b_32 and vit_l_16: num_params
        ("vit_base_16", 86_567_656),
        ("vit_base_32", 88_224_232),
        ("vit_large_16", 304_326_632),
        # timm's results table for vit_tiny_patch16_224 (5.72 M) and vit_small_patch16_224 (22.05 M)
        ("vit_tiny_16", 5_717_416),
        ("vit_small_16", 22_050_664),
    ],
)
def test_presets_have_the_published_number_of_parameters(preset: str, expected: int) -> None:
    assert count_parameters_by_building(PRESETS[preset]) == expected


def test_lightning_presets_have_the_number_of_parameters_that_was_reported() -> None:
    # that notebook reports 3.4 M and 12.9 M; its head has 100 outputs on CIFAR-10 too
    with_its_head = replace(PRESETS["lightning_cifar10"], num_classes=100)
    assert round(count_parameters_by_building(with_its_head) / 1e6, 1) == 3.4
    assert round(count_parameters_by_building(PRESETS["lightning_cifar100"]) / 1e6, 1) == 12.9


# The ideas of five published notebooks: notebook and idea, config, what to see in the built model.
LAB, WALKTHROUGH = PRESETS["lab_cifar10"], PRESETS["walkthrough_mnist"]
LIGHTNING, LIGHTNING_100 = PRESETS["lightning_cifar10"], PRESETS["lightning_cifar100"]
CRITICAL, ANNOTATED = PRESETS["critical_cifar100"], PRESETS["annotated_cifar10"]
FEATURES: list[tuple[str, ViTConfig, Callable[[VisionTransformer], bool]]] = [
    ("lab: MNIST in 7 x 7 patches", PRESETS["lab_mnist"], lambda m: m.config.grid_size == (7, 7)),
    ("lab: dim 8, 2 heads, 2 blocks", PRESETS["lab_mnist"], lambda m: read_sizes(m) == (8, 2, 2, 32)),
    ("lab: CIFAR-10 in 8 x 8 patches", LAB, lambda m: m.config.grid_size == (8, 8)),
    ("lab: dim 16, 2 heads, 4 blocks", LAB, lambda m: read_sizes(m) == (16, 2, 4, 64)),
    ("lab: a fixed table of sines", LAB, lambda m: not isinstance(m.positions, nn.Parameter)),
    ("lab: class token, one Linear", LAB, lambda m: m.class_token is not None and type(m.head) is nn.Linear),
    ("walkthrough: strided convolution", WALKTHROUGH, lambda m: m.patch_embedding.projection.stride == (2, 2)),
    ("walkthrough: by fan-in", WALKTHROUGH, lambda m: 0.4 < m.patch_embedding.projection.weight.std() < 0.6),
    ("walkthrough: MLP biases of 1e-6", WALKTHROUGH, lambda m: 5e-7 < m.blocks[0].mlp.fc1.bias.std() < 2e-6),
    ("walkthrough: positions of 0.02", WALKTHROUGH, lambda m: 0.018 < m.positions.std() < 0.022),
    ("walkthrough: dim 64, 2 heads, 2 layers", WALKTHROUGH, lambda m: read_sizes(m) == (64, 2, 2, 256)),
    ("walkthrough: representation size 32", WALKTHROUGH, lambda m: m.head[0].out_features == 32),
    ("walkthrough: Linear + tanh + Linear", WALKTHROUGH, lambda m: isinstance(m.head[1], nn.Tanh)),
    ("walkthrough: Linear", replace(WALKTHROUGH, representation_size=None), lambda m: type(m.head) is nn.Linear),
    ("lightning: dim 256, MLP 512, 6 x 8", LIGHTNING, lambda m: read_sizes(m) == (256, 8, 6, 512)),
    ("lightning: patch 4", LIGHTNING, lambda m: m.config.grid_size == (8, 8)),
    ("lightning: dropout 0.2", LIGHTNING, lambda m: read_dropout_rates(m) == (0.2, 0.2, 0.0, 0.2)),
    ("lightning: two layers with ReLU", LIGHTNING, lambda m: isinstance(m.head[1], nn.ReLU)),
    ("lightning: 24 encoders", LIGHTNING_100, lambda m: read_sizes(m) == (256, 8, 24, 512)),
    ("lightning: 0.1", LIGHTNING_100, lambda m: read_dropout_rates(m) == (0.1, 0.1, 0.0, 0.1)),
    ("lightning: 100 classes", LIGHTNING_100, lambda m: m.head[2].out_features == 100),
    ("critical: dim 256, 8 heads, 4 layers", CRITICAL, lambda m: read_sizes(m) == (256, 8, 4, 1024)),
    ("critical: sines, then learned", CRITICAL, lambda m: isinstance(m.positions, nn.Parameter)),
    ("critical: starts from the sines", CRITICAL, lambda m: torch.equal(m.positions[0], sinusoidal_positions(65, 256))),
    ("critical: class token", CRITICAL, lambda m: m.class_token is not None),
    ("critical: global average", replace(CRITICAL, pooling="mean"), lambda m: m.class_token is None),
    ("critical: Linear, tanh, Linear", CRITICAL, lambda m: isinstance(m.head[1], nn.Tanh)),
    ("annotated: dim 48, 4 heads, 4 layers", ANNOTATED, lambda m: read_sizes(m) == (48, 4, 4, 192)),
    ("annotated: strided convolution", ANNOTATED, lambda m: m.patch_embedding.projection.stride == (4, 4)),
    ("annotated: learned class token and positions", ANNOTATED, lambda m: isinstance(m.positions, nn.Parameter)),
    (
        "annotated: dropout of embedding, weights, output and MLP",
        replace(ANNOTATED, embedding_dropout=0.1, attention_dropout=0.2, projection_dropout=0.3, mlp_dropout=0.4),
        lambda m: read_dropout_rates(m) == (0.1, 0.2, 0.3, 0.4),
    ),
    ("annotated: qkv_bias off", replace(ANNOTATED, qkv_bias=False), lambda m: m.blocks[0].attention.qkv.bias is None),
    ("annotated: tanh GELU", ANNOTATED, lambda m: m.blocks[0].mlp.activation.approximate == "tanh"),
    ("annotated: truncated normal of 0.02", ANNOTATED, lambda m: 0.01 < m.head.weight.abs().max() <= 0.04),
]


def read_sizes(model: VisionTransformer) -> tuple[int, int, int, int]:
    block = model.blocks[0]
    return (model.norm.normalized_shape[0], block.attention.num_heads, len(model.blocks), block.mlp.fc1.out_features)


def read_dropout_rates(model: VisionTransformer) -> tuple[float, float, float, float]:
    block = model.blocks[0]
    attention = block.attention
    return (
        model.embedding_dropout.p,
        attention.attention_dropout.p,
        attention.projection_dropout.p,
        block.mlp.dropout.p,
    )


@pytest.mark.parametrize(("config", "seen"), [row[1:] for row in FEATURES], ids=[row[0] for row in FEATURES])
def test_config_expresses(config: ViTConfig, seen: Callable[[VisionTransformer], bool]) -> None:
    assert seen(VisionTransformer(config))
