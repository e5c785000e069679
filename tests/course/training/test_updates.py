from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.training import TrainingSettings
from vit_course.training.settings import Precision
from vit_course.training.updates import Updates

CPU = torch.device("cpu")
SETTINGS = TrainingSettings(learning_rate=0.01, muon_learning_rate=0.02, warmup=0.0, ema_decay=0.5)


def compute_loss(model: torch.nn.Module) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(8, 1, 8, 8, generator=generator)
    return F.cross_entropy(model(images), torch.arange(8))


def make_step(updates: Updates, loss: Tensor) -> None:
    updates.begin_step()
    updates.differentiate_and_update(loss)


def make_steps(model: torch.nn.Module, steps: int, precision: Precision = "fp32", **changes: object) -> Updates:
    updates = Updates(model, replace(SETTINGS, **changes), 10, CPU, precision)
    for _ in range(steps):
        make_step(updates, compute_loss(model))
    return updates


def test_the_scale_of_float16_gradients_changes_nothing(tiny_model) -> None:
    plain, scaled = tiny_model(), tiny_model()
    make_steps(plain, 3)
    make_steps(scaled, 3, "fp16")
    for one, other in zip(plain.parameters(), scaled.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)  # a power of two, but for Adam's epsilon


@pytest.mark.parametrize("name", ["patch_embedding.projection.weight", "blocks.0.mlp.fc1.weight"])
@pytest.mark.parametrize("factor", [math.inf, math.nan])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_where_one_optimizers_gradient_overflows_the_other_one_waits_too(
    tiny_model, name: str, factor: float, clip: float | None
) -> None:
    model = tiny_model()
    overflow = model.get_parameter(name).register_hook(lambda gradient: gradient * factor)
    before = {name: parameter.clone() for name, parameter in model.named_parameters()}
    updates = Updates(model, replace(SETTINGS, gradient_clip=clip), 10, CPU, "fp16")
    assert len(updates.optimizers) == 2  # AdamW has the patch embedding, Muon the blocks' matrices
    make_step(updates, compute_loss(model))
    assert all(torch.equal(before[name], parameter) for name, parameter in model.named_parameters())
    assert updates.scaler.get_scale() < 65536
    overflow.remove()
    make_step(updates, compute_loss(model))
    assert not torch.equal(before["head.weight"], model.head.weight)


def test_gradients_are_clipped_to_the_norm(tiny_model) -> None:
    model = tiny_model()
    updates = Updates(model, replace(SETTINGS, gradient_clip=0.01), 10, CPU, "fp32")
    make_step(updates, compute_loss(model))
    norm = math.sqrt(sum(float(parameter.grad.square().sum()) for parameter in model.parameters()))
    assert math.isclose(norm, 0.01, rel_tol=1e-3)


def test_the_average_moves_by_its_share(tiny_model) -> None:
    model = tiny_model()
    updates = make_steps(model, 1)
    first = model.head.weight.detach().clone()
    assert torch.equal(updates.model_to_measure.head.weight, first)
    make_step(updates, compute_loss(model))
    torch.testing.assert_close(updates.model_to_measure.head.weight, (first + model.head.weight) / 2)


def test_everything_comes_back_by_tensors_and_json(tiny_model) -> None:
    model, other = tiny_model(), tiny_model(seed=1)
    updates = make_steps(model, 3, "fp16")
    tensors = {name: tensor.clone() for name, tensor in updates.collect_state_tensors().items()}
    restored = Updates(other, SETTINGS, 10, CPU, "fp16")
    restored.load_state(tensors, json.loads(json.dumps(updates.collect_state_numbers())))
    for each, its in ((updates, model), (restored, other)):
        make_step(each, compute_loss(its))
        make_step(each, compute_loss(its))
    assert restored.steps == 5
    assert restored.learning_rate == updates.learning_rate
    for mine, theirs in zip(
        updates.collect_state_tensors().values(), restored.collect_state_tensors().values(), strict=True
    ):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize(("precision", "products"), [("bf16", torch.bfloat16), ("fp32", None)])
def test_on_a_cpu_muon_multiplies_in_the_precision_of_the_training(precision, products, tiny_model) -> None:
    updates = Updates(tiny_model(), SETTINGS, 10, CPU, precision)
    _, muon = updates.optimizers
    assert muon.products == products
