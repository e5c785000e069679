from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine.probes import Probe
from vit_course.config import ViTConfig
from vit_course.exercises.l05_vit.load_torchvision.claims import draw_torchvision_weights
from vit_course.pretrained import (
    from_timm,
    from_torchvision,
    from_transformers,
    load_torchvision,
    load_weights,
    to_torchvision,
)
from vit_course.vit import VisionTransformer

Model = TypeVar("Model", bound=nn.Module)
SMALL = ViTConfig(image_size=16, patch_size=4, num_classes=7, embed_dim=24, depth=3, num_heads=3, mlp_ratio=2.0)


@torch.no_grad()
def randomize_parameters(model: Model) -> Model:
    torch.manual_seed(3)
    for parameter in model.parameters():
        parameter.normal_(std=0.2)
    return model.eval()


def make_random_vit(**changes: Any) -> VisionTransformer:
    return randomize_parameters(VisionTransformer(replace(SMALL, **changes)))


def make_torchvision_vit(representation_size: int | None = None) -> nn.Module:
    from torchvision.models import VisionTransformer as TorchvisionTransformer

    return TorchvisionTransformer(16, 4, 3, 3, 24, 48, num_classes=7, representation_size=representation_size)


def make_random_timm_vit(**choices: Any) -> nn.Module:
    from timm.models.vision_transformer import VisionTransformer as TimmTransformer

    sizes = {"img_size": (16, 8), "patch_size": 4, "num_classes": 7, "embed_dim": 24, "depth": 3, "num_heads": 3}
    return randomize_parameters(TimmTransformer(**sizes, mlp_ratio=2, **choices))


def make_random_transformers_vit() -> nn.Module:
    from transformers import ViTConfig as TransformersConfig
    from transformers import ViTForImageClassification

    config = TransformersConfig(
        image_size=(8, 16),
        patch_size=4,
        num_labels=7,
        hidden_size=24,
        num_hidden_layers=3,
        num_attention_heads=3,
        intermediate_size=48,
    )
    return randomize_parameters(ViTForImageClassification(config))


@torch.no_grad()
def assert_same_logits(ours: VisionTransformer, theirs: nn.Module) -> None:
    ours.eval()
    images = torch.randn(4, 3, ours.config.height, ours.config.width)
    expected = theirs(images)
    expected = expected if isinstance(expected, Tensor) else expected.logits
    assert expected.std() > 0.1  # logits of order 1, so that 1e-5 means something
    torch.testing.assert_close(ours(images), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("representation_size", [None, 10])
def test_torchvision_weights_give_torchvision_logits(kind: Any, representation_size: int | None) -> None:
    theirs = randomize_parameters(make_torchvision_vit(representation_size))
    ours = VisionTransformer(replace(SMALL, patch_embedding=kind, representation_size=representation_size))
    assert load_torchvision(ours, theirs.state_dict()) is ours
    assert_same_logits(ours, theirs)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("representation_size", [None, 10])
def test_our_weights_give_our_logits_in_torchvision(kind: Any, representation_size: int | None) -> None:
    ours = make_random_vit(patch_embedding=kind, representation_size=representation_size)
    theirs = make_torchvision_vit(representation_size)
    theirs.load_state_dict(to_torchvision(ours))
    assert_same_logits(ours, theirs.eval())


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_2d", "learned_from_sinusoidal"])
def test_tables_of_sines_go_to_torchvision_too(positions: Any) -> None:
    ours = make_random_vit(positions=positions)
    theirs = make_torchvision_vit()
    theirs.load_state_dict(to_torchvision(ours))
    assert_same_logits(ours, theirs.eval())


def test_names_survive_the_way_there_and_back() -> None:
    ours = make_random_vit(patch_embedding="convolution", representation_size=10).state_dict()
    there = to_torchvision(make_random_vit(patch_embedding="convolution", representation_size=10))
    back = from_torchvision(there)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[name], ours[name]) for name in ours)


def test_what_the_check_of_load_torchvision_draws_has_torchvision_s_names_and_shapes() -> None:
    drawn, _ = draw_torchvision_weights(Probe(0), SMALL)
    make_torchvision_vit().load_state_dict(drawn)


def test_names_of_older_torchvision_files() -> None:
    theirs = randomize_parameters(make_torchvision_vit())
    old = {
        name.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): tensor
        for name, tensor in theirs.state_dict().items()
    }
    assert "encoder.layers.encoder_layer_2.mlp.linear_2.bias" in old
    ours = VisionTransformer(SMALL)
    load_torchvision(ours, old)
    assert_same_logits(ours, theirs)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pooling": "mean"}, "this model has pooling='mean' and positions='learned'"),
        ({"positions": "none"}, "this model has pooling='class_token' and positions='none'"),
        ({"qkv_bias": False}, "this model has qkv_bias=False and gelu='exact'"),
        ({"gelu": "tanh"}, "this model has qkv_bias=True and gelu='tanh'"),
        ({"representation_size": 10, "head_activation": "relu"}, "has a tanh, this model's a relu"),
    ],
)
def test_what_torchvision_cannot_hold_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_torchvision(VisionTransformer(replace(SMALL, **changes)))


def test_a_relu_that_is_not_there_does_not_matter() -> None:
    assert "heads.head.weight" in to_torchvision(make_random_vit(head_activation="relu"))


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("qkv_bias", [True, False])
def test_timm_weights_give_timm_logits(kind: Any, qkv_bias: bool) -> None:
    theirs = make_random_timm_vit(qkv_bias=qkv_bias)
    ours = VisionTransformer(replace(SMALL, image_size=(16, 8), patch_embedding=kind, qkv_bias=qkv_bias))
    load_weights(ours, from_timm(theirs.state_dict()))
    assert_same_logits(ours, theirs)


def test_timm_mean_pooling_before_the_norm_fits() -> None:
    theirs = make_random_timm_vit(global_pool="avg", class_token=False, fc_norm=False)
    ours = VisionTransformer(replace(SMALL, image_size=(16, 8), pooling="mean"))
    load_weights(ours, from_timm(theirs.state_dict()))
    assert_same_logits(ours, theirs)


def test_timm_norm_after_pooling_is_refused() -> None:
    theirs = make_random_timm_vit(global_pool="avg", class_token=False)
    with pytest.raises(ValueError, match="fc_norm=False"):
        from_timm(theirs.state_dict())


def test_timm_layers_that_we_lack_are_named() -> None:
    ours = VisionTransformer(replace(SMALL, image_size=(16, 8)))
    with pytest.raises(ValueError, match=r"unexpected blocks\.0\.ls1\.gamma"):
        load_weights(ours, from_timm(make_random_timm_vit(init_values=0.1).state_dict()))


TRANSFORMERS_5_TO_4 = {
    r"^vit\.layers\.": "vit.encoder.layer.",
    r"\.attention\.q_proj\.": ".attention.attention.query.",
    r"\.attention\.k_proj\.": ".attention.attention.key.",
    r"\.attention\.v_proj\.": ".attention.attention.value.",
    r"\.attention\.o_proj\.": ".attention.output.dense.",
    r"\.mlp\.fc1\.": ".intermediate.dense.",
    r"\.mlp\.fc2\.": ".output.dense.",
}


@pytest.mark.parametrize("older_names", [False, True])
@pytest.mark.parametrize("kind", ["linear", "convolution"])
def test_transformers_weights_give_transformers_logits(older_names: bool, kind: Any) -> None:
    theirs = make_random_transformers_vit()
    state = theirs.state_dict()
    if older_names:
        for new, old in TRANSFORMERS_5_TO_4.items():
            state = {re.sub(new, old, name): tensor for name, tensor in state.items()}
        assert "vit.encoder.layer.2.attention.attention.query.bias" in state
        assert "vit.encoder.layer.0.output.dense.weight" in state
    ours = VisionTransformer(
        replace(SMALL, image_size=(8, 16), patch_embedding=kind, layer_norm_eps=theirs.config.layer_norm_eps)
    )
    load_weights(ours, from_transformers(state))
    assert_same_logits(ours, theirs)


def test_a_missing_part_of_the_transformers_attention_is_named() -> None:
    state = make_random_transformers_vit().state_dict()
    key = next(name for name in state if re.search(r"layers?\.1\..*(k_proj|key)\.weight", name))
    del state[key]
    ours = VisionTransformer(replace(SMALL, image_size=(8, 16)))
    with pytest.raises(ValueError, match=r"missing blocks\.1\.attention\.qkv\.weight"):
        load_weights(ours, from_transformers(state))


def test_a_name_that_nobody_knows_stays_as_it_is() -> None:
    strangers = {name: torch.zeros(1) for name in ("conv_projection.weight", "encoder.ln_post.bias", "mask_token")}
    assert from_torchvision(strangers).keys() == strangers.keys()
    assert from_timm({"cls_tokens": torch.zeros(1)}).keys() == {"cls_tokens"}


def drop_tensor(state: dict[str, Tensor], name: str) -> dict[str, Tensor]:
    return {key: tensor for key, tensor in state.items() if key != name}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda state: drop_tensor(state, "norm.bias"), "missing norm.bias"),
        (lambda state: state | {"extra": torch.zeros(1)}, "unexpected extra"),
        (lambda state: state | {"norm.bias": torch.zeros(5)}, r"norm.bias is \(5,\), the model has \(24,\)"),
        (
            lambda state: state | {"positions": torch.zeros(1, 26, 24)},
            r"positions is \(1, 26, 24\), the model has \(1, 17, 24\)",
        ),
        (
            lambda state: state | {"patch_embedding.projection.weight": torch.zeros(24, 1, 4, 4)},
            r"weight is \(24, 1, 4, 4\), the model has \(24, 48\)",
        ),
        (
            lambda state: state | {"head.weight": torch.zeros(7, 24, 1, 1)},
            r"head.weight is \(7, 24, 1, 1\), the model has \(7, 24\)",
        ),
        (lambda state: {}, r"missing .*; missing .*; missing .*; missing .* and 40 more"),
    ],
    ids=["missing", "unexpected", "shape", "positions", "channels", "axes", "empty"],
)
def test_weights_that_do_not_fit_are_refused_and_change_nothing(
    spoil: Callable[[dict[str, Tensor]], dict[str, Tensor]], message: str
) -> None:
    model = make_random_vit()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    other = {name: tensor + 1 for name, tensor in before.items()}
    with pytest.raises(ValueError, match=message):
        load_weights(model, spoil(other))
    after = model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


@pytest.mark.parametrize(("saved", "wanted"), [("linear", "convolution"), ("convolution", "linear")])
def test_a_patch_embedding_of_either_kind_fits_the_other(saved: Any, wanted: Any) -> None:
    theirs, ours = make_random_vit(patch_embedding=saved), VisionTransformer(replace(SMALL, patch_embedding=wanted))
    load_weights(ours, theirs.state_dict())
    assert_same_logits(ours, theirs)


def test_any_module_of_our_names_can_be_loaded() -> None:
    class Student(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.LayerNorm(4)
            self.register_buffer("steps", torch.tensor(0))

    weights = {"norm.weight": torch.full((4,), 2.0), "norm.bias": torch.zeros(4), "steps": torch.tensor(7)}
    student = load_weights(Student(), weights)
    assert bool((student.norm.weight == 2).all())
    assert student.steps == 7
