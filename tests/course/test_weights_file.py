"""Weights files are read as what a stranger has made; what is right loads into the reference, whatever its choices."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from exercise_kit.conventions import MOST_BYTES
from exercise_kit.engine import check
from exercise_kit.engine.probes import Probe
from vit_course import PRESETS
from vit_course.config import ViTConfig
from vit_course.exercises.l07_experiments.vit_cifar.claims import SMALL, describe_model
from vit_course.exercises.l07_experiments.weights_file import (
    MOST_OPERATIONS,
    Refused,
    check_and_make_model,
    count_numbers_in_state,
    expect_affordable_model,
    list_state_shapes,
    make_weights_file,
    read_config,
    read_weights,
)
from vit_course.metrics import operations_of
from vit_course.vit import VisionTransformer

CHOICES = [
    {},
    {"patch_embedding": "convolution", "pooling": "mean"},
    {"positions": "none"},
    {"positions": "sinusoidal", "qkv_bias": False},
    {"positions": "sinusoidal_2d", "pooling": "mean", "representation_size": 6},
    {"positions": "learned_from_sinusoidal", "mlp_ratio": 1.5, "depth": 0},
]


def write_weights_file(config, **tensors):
    weights = Probe("weights").weights(list_state_shapes(config)) | tensors
    return make_weights_file(weights, describe_model(config))


@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_shapes_are_those_of_the_reference(choices):
    config = replace(SMALL, **choices)
    right = {name: tuple(each.shape) for name, each in VisionTransformer(config).state_dict().items()}
    assert list_state_shapes(config) == right
    model = check_and_make_model(read_weights(write_weights_file(config)))
    assert model.config == config
    assert (model.mean, model.std) == ((0.5,) * 3, (0.25,) * 3)


def test_what_the_course_saves_is_read(tmp_path):
    from vit_course.data import shapes
    from vit_course.training import save_model

    images = shapes(20)
    reference = VisionTransformer(SMALL)
    save_model(tmp_path / "vit_cifar.safetensors", reference, images)
    model = check_and_make_model(read_weights((tmp_path / "vit_cifar.safetensors").read_bytes()))
    assert model.config == SMALL
    assert model.mean == pytest.approx(images.mean)
    assert all(torch.equal(model.weights[name], each) for name, each in reference.state_dict().items())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_read_as_float32(tmp_path, dtype):
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    weights = {name: each.to(dtype) for name, each in Probe("w").weights(list_state_shapes(SMALL)).items()}
    content = safetensors.save(weights, {"vit_course": json.dumps(describe_model(SMALL))})
    for name, tensor in check_and_make_model(read_weights(content)).weights.items():
        assert torch.equal(tensor, weights[name].float())


def test_the_description_may_lie_beside(tmp_path):
    content = make_weights_file(Probe("w").weights(list_state_shapes(SMALL)), None)
    assert check_and_make_model(read_weights(content, json.dumps(describe_model(SMALL)).encode())).config == SMALL
    with pytest.raises(Refused, match="says nothing about its model") as refused:
        check_and_make_model(read_weights(content))
    assert refused.value.kind == "no config"


@pytest.mark.parametrize(
    "sizes",
    [
        {"embed_dim": 1 << 19, "num_heads": 1},
        {"depth": 90, "embed_dim": 384},
        {"patch_size": 1, "depth": 60, "embed_dim": 64},
    ],
    ids=["wide", "deep", "slow"],
)
def test_what_costs_too_much_is_refused_before_it_is_made(sizes):
    with pytest.raises(Refused) as refused:
        expect_affordable_model(replace(SMALL, **sizes))
    assert refused.value.kind == "size"


@pytest.mark.parametrize("config", [ViTConfig(), replace(ViTConfig(), embed_dim=384, depth=5, num_heads=6)])
def test_a_model_of_the_allowed_size_is_affordable(config):
    expect_affordable_model(config)
    assert count_numbers_in_state(config) == sum(
        each.numel() for each in VisionTransformer(config).state_dict().values()
    )
    assert operations_of(config) < MOST_OPERATIONS


def test_a_model_for_other_images_is_refused():
    for other in (replace(SMALL, image_size=48), replace(SMALL, in_channels=1), replace(SMALL, num_classes=100)):
        with pytest.raises(Refused, match="its model takes") as refused:
            read_config(read_weights(make_weights_file({}, describe_model(other))))
        assert refused.value.expected == "one for 3 x 32 x 32 images of 10 classes"


def test_every_field_of_a_config_is_read():
    for preset in PRESETS.values():
        config = replace(preset, image_size=32, patch_size=4, in_channels=3, num_classes=10)
        assert read_config(read_weights(make_weights_file({}, {"version": 1, "model": asdict(config)}))) == config


def test_the_public_check_reads_a_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "vit_cifar.safetensors").write_bytes(write_weights_file(SMALL))
    for path in ("vit_cifar.safetensors", tmp_path / "vit_cifar.safetensors"):
        report = check("vit_cifar", path, points=8)
        assert [each.verdict for each in report.results] == ["pass"] * 4 + ["undecided"] * 5
        assert report.score == 1
        assert "the judge measures it" in str(report)
    missing = check("vit_cifar", "other.safetensors", points=8)
    assert missing.score == 0
    assert "there is no file other.safetensors" in str(missing)
    text = str(check("vit_cifar", 3))
    assert "The name of a file is asked for" in text
    assert 'check("vit_cifar", "vit_cifar.safetensors")' in text


def test_a_file_earns_nothing_before_all_is_well_with_it(tmp_path):
    path = tmp_path / "vit_cifar.safetensors"
    weights = {
        name: torch.full_like(each, torch.nan) for name, each in read_weights(write_weights_file(SMALL)).tensors.items()
    }
    path.write_bytes(make_weights_file(weights, describe_model(SMALL)))
    report = check("vit_cifar", path, points=8)
    assert [each.verdict for each in report.results[:4]] == ["pass"] * 3 + ["fail"]
    assert report.score == 0


def test_a_file_that_is_too_large_is_reported_the_limits(tmp_path):
    path = tmp_path / "vit_cifar.safetensors"
    path.write_bytes(bytes(MOST_BYTES + 2))
    (result, *_) = check("vit_cifar", path).results
    assert result.seen == "the file has more than 48 MB"
    assert result.expected == "48 MB at most, room for 10,000,000 parameters in float32"
