from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
import torch
from torch import Tensor, nn
from torchinfo import summary

from vit_course import PRESETS
from vit_course.config import PositionKind, ViTConfig
from vit_course.interpret import record
from vit_course.patches import patchify, unpatchify
from vit_course.positions import sinusoidal_positions, sinusoidal_positions_2d
from vit_course.vit import VisionTransformer

pytestmark = pytest.mark.usefixtures("seed_torch")
TALL = ViTConfig(image_size=(12, 8), patch_size=4, in_channels=2, num_classes=5, embed_dim=12, depth=2, num_heads=3)
POSITIONS = get_args(PositionKind)


@torch.no_grad()
def make_random_model(config: ViTConfig = TALL, **changes: Any) -> VisionTransformer:
    model = VisionTransformer(replace(config, **changes))
    for parameter in model.parameters():
        parameter.normal_(std=0.4)
    return model


def make_random_images(config: ViTConfig = TALL, batch: int = 3) -> Tensor:
    return torch.randn(batch, config.in_channels, config.height, config.width)


@pytest.mark.parametrize(("size", "grid"), [((12, 8), (3, 2)), ((8, 12), (2, 3)), ((4, 4), (1, 1))])
@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_forward_is_the_figure_of_the_paper(size: tuple[int, int], grid: tuple[int, int], kind: Any) -> None:
    model = make_random_model(image_size=size, patch_embedding=kind).double()
    images = make_random_images(model.config).double()
    projection = model.patch_embedding.projection
    tokens = patchify(images, 4) @ projection.weight.flatten(1).T + projection.bias
    tokens = torch.cat([model.class_token.repeat(3, 1, 1), tokens], dim=1)
    assert tokens.shape == (3, 1 + grid[0] * grid[1], 12)
    for block in model.blocks:
        if block is model.blocks[0]:
            tokens = tokens + model.positions
        tokens = tokens + block.attention(block.norm1(tokens))
        tokens = tokens + block.mlp(block.norm2(tokens))
    torch.testing.assert_close(model(images), model.head(model.norm(tokens)[:, 0]))


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_every_tensor_follows_the_model_to_another_dtype(positions: Any, dtype: torch.dtype) -> None:
    model = make_random_model(positions=positions).to(dtype).eval()
    with torch.no_grad():
        stages = record(model, make_random_images().to(dtype))
        assert model(make_random_images().to(dtype)).dtype == dtype
    assert {stage.dtype for stage in stages.values()} == {dtype}
    assert bool(stages["logits"].isfinite().all())


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3, 2, 8, 12), r"images must be \(batch, 2, 12, 8\), not \(3, 2, 8, 12\)"),
        ((3, 3, 12, 8), r"images must be \(batch, 2, 12, 8\), not \(3, 3, 12, 8\)"),
        ((2, 12, 8), r"images must be \(batch, 2, 12, 8\), not \(2, 12, 8\)"),
    ],
)
def test_images_of_another_size_are_refused_with_both_shapes(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VisionTransformer(TALL)(torch.zeros(shape))


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_positions_are_those_of_the_kind(positions: Any, pooling: Any) -> None:
    model = VisionTransformer(replace(TALL, positions=positions, pooling=pooling))
    tokens = 7 if pooling == "class_token" else 6
    if positions == "none":
        assert model.positions is None
        assert "positions" not in model.state_dict()
        return
    assert model.positions.shape == (1, tokens, 12)
    assert isinstance(model.positions, nn.Parameter) == positions.startswith("learned")
    assert "positions" in model.state_dict()
    if positions in ("sinusoidal", "learned_from_sinusoidal"):
        assert torch.equal(model.positions[0], sinusoidal_positions(tokens, 12))
    elif positions == "sinusoidal_2d":
        assert torch.equal(model.positions[0, -6:], sinusoidal_positions_2d((3, 2), 12))
        assert not model.positions[0, :-6].any()


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
@pytest.mark.parametrize("positions", POSITIONS)
def test_only_a_model_without_positions_is_blind_to_the_order_of_patches(positions: Any, pooling: Any) -> None:
    model = make_random_model(positions=positions, pooling=pooling).double()
    images = make_random_images().double()
    order = torch.tensor([3, 0, 5, 1, 2, 4])
    shuffled = unpatchify(patchify(images, 4)[:, order], 4, (12, 8))
    assert torch.allclose(model(images), model(shuffled)) == (positions == "none")


def test_poolings_read_the_first_token_or_the_mean() -> None:
    for pooling in ("class_token", "mean"):
        model = make_random_model(pooling=pooling).double()
        stages = record(model, make_random_images().double())
        normed = stages["norm"]
        expected = normed[:, 0] if pooling == "class_token" else normed.mean(1)
        assert torch.equal(stages["pooled"], expected)
        assert ("class_token" in model.state_dict()) == (pooling == "class_token")
        assert stages["class_token"].shape[1] == (7 if pooling == "class_token" else 6)


@pytest.mark.parametrize(("activation", "function"), [("tanh", torch.tanh), ("relu", torch.relu)])
def test_heads_of_two_linears(activation: Any, function: Callable[[Tensor], Tensor]) -> None:
    model = make_random_model(representation_size=9, head_activation=activation)
    stages = record(model, make_random_images())
    first, last = model.head[0], model.head[2]
    assert first.weight.shape == (9, 12)
    assert last.weight.shape == (5, 9)
    torch.testing.assert_close(stages["logits"], last(function(first(stages["pooled"]))))
    names = ["head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"]
    assert [name for name in model.state_dict() if name.startswith("head")] == names


RATES = ("embedding_dropout", "attention_dropout", "projection_dropout", "mlp_dropout")


@pytest.mark.parametrize("name", RATES)
def test_dropout_is_active_in_training_and_off_in_evaluation(name: str) -> None:
    model, images = make_random_model(**{name: 0.5}), make_random_images()
    without = VisionTransformer(TALL)
    without.load_state_dict(model.state_dict())
    assert not torch.allclose(model(images), model(images))
    assert torch.equal(model.eval()(images), without(images))


def test_embedding_dropout_comes_after_the_positions() -> None:
    model = make_random_model(embedding_dropout=0.5)
    stages = record(model, make_random_images(batch=20))
    undropped = stages["class_token"] + model.positions
    dropped = stages["embedding"] == 0
    assert 0.4 < dropped.float().mean() < 0.6
    torch.testing.assert_close(stages["embedding"][~dropped], 2 * undropped[~dropped])


def test_choices_reach_every_block() -> None:
    model = VisionTransformer(replace(TALL, qkv_bias=False, gelu="tanh", layer_norm_eps=1e-3, mlp_ratio=2))
    for block in model.blocks:
        assert block.attention.qkv.bias is None
        assert block.mlp.activation.approximate == "tanh"
        assert block.mlp.fc1.out_features == 24
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {1e-3}


@pytest.mark.parametrize("pooling", ["class_token", "mean"])
def test_intermediates_have_the_documented_names_order_and_shapes(pooling: Any) -> None:
    model, images = make_random_model(pooling=pooling), make_random_images()
    stages = record(model, images)
    tokens = 7 if pooling == "class_token" else 6
    expected = {"patch_embedding": (3, 6, 12), "class_token": (3, tokens, 12), "embedding": (3, tokens, 12)}
    for number in (0, 1):
        expected[f"blocks.{number}.attention.weights"] = (3, 3, tokens, tokens)
        for name in ("attention", "mlp", "output"):
            expected[f"blocks.{number}.{name}"] = (3, tokens, 12)
    expected |= {"norm": (3, tokens, 12), "pooled": (3, 12), "logits": (3, 5)}
    assert [(name, tuple(stage.shape)) for name, stage in stages.items()] == list(expected.items())


def test_intermediates_around_the_blocks_belong_together_and_change_no_logit() -> None:
    model, images = make_random_model().double(), make_random_images().double()
    stages = record(model, images)
    torch.testing.assert_close(model(images), stages["logits"])
    assert torch.equal(stages["patch_embedding"], model.patch_embedding(images))
    assert torch.equal(stages["class_token"][:, 1:], stages["patch_embedding"])
    assert torch.equal(stages["embedding"], stages["class_token"] + model.positions)
    assert torch.equal(stages["norm"], model.norm(stages["blocks.1.output"]))


@pytest.mark.parametrize("name", [name for name in PRESETS if not name.startswith(("vit_", "walkthrough_512"))])
def test_small_presets_run_and_show_every_layer_and_head(name: str) -> None:
    config = PRESETS[name]
    model = VisionTransformer(config).eval()
    with torch.no_grad():
        stages = record(model, make_random_images(config, batch=1))
    assert stages["logits"].shape == (1, config.num_classes)
    weights = [stage for stage_name, stage in stages.items() if stage_name.endswith("attention.weights")]
    assert len(weights) == config.depth
    assert weights[-1].shape == (1, config.num_heads, config.num_tokens, config.num_tokens)


def test_torchinfo_summarises_the_512_preset() -> None:
    config = replace(PRESETS["walkthrough_512"], depth=1)
    assert (PRESETS["walkthrough_512"].depth, config.grid_size, config.embed_dim) == (6, (32, 32), 768)
    model = VisionTransformer(config)
    report = summary(model, input_size=(1, 3, 512, 512), depth=4, verbose=0)
    assert report.total_params == sum(p.numel() for p in model.parameters())
    text = str(report)
    for layer in ("PatchEmbedding", "Encoder", "EncoderBlock", "MultiHeadSelfAttention", "Mlp", "LayerNorm"):
        assert layer in text
    assert "[1, 1025, 768]" in text
    assert "[1, 1000]" in text
