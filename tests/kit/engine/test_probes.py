"""Draws depend on their seed and on nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from exercise_kit.engine.probes import TALL, Probe

SHAPES = {"norm.weight": (64,), "norm.bias": (64,), "fc.weight": (48, 100), "fc.bias": (48,), "positions": (1, 9, 64)}
DRAWS: dict[str, Callable[[Probe], Tensor]] = {
    "normal": lambda probe: probe.normal(3, 5),
    "uniform": lambda probe: probe.uniform(3, 5, low=-1, high=2),
    "integers": lambda probe: probe.integers(3, 5, high=7),
    "every digit": lambda probe: probe.every_digit(3, 5, dtype=torch.bfloat16),
    "permutation": lambda probe: probe.permutation(9),
    "images": lambda probe: probe.images(2, 3, 4, 6),
    "weights": lambda probe: torch.cat([each.flatten() for each in probe.weights(SHAPES).values()]),
}
each_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)


@each_draw
def test_one_seed_gives_one_draw(draw: Callable[[Probe], Tensor]) -> None:
    first, second = draw(Probe("tokens_run_row_by_row")), draw(Probe("tokens_run_row_by_row"))
    assert torch.equal(first, second)
    assert not torch.equal(first, draw(Probe("another_check")))


@each_draw
def test_global_settings_do_not_matter(draw: Callable[[Probe], Tensor]) -> None:
    before = draw(Probe(3))
    torch.manual_seed(7)
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    try:
        after = draw(Probe(3))
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
    assert after.device.type == "cpu"
    assert after.dtype == before.dtype
    assert torch.equal(before, after)


def test_drawing_leaves_the_global_random_state_alone() -> None:
    before = torch.get_rng_state()
    for draw in DRAWS.values():
        draw(Probe(0))
    assert torch.equal(before, torch.get_rng_state())


def test_a_probe_goes_on_from_draw_to_draw() -> None:
    probe = Probe(0)
    assert not torch.equal(probe.normal(5), probe.normal(5))


def test_draws_stay_in_their_range() -> None:
    probe = Probe(0)
    uniform, integers = probe.uniform(1000, low=-1, high=2), probe.integers(1000, high=7)
    assert uniform.min() >= -1
    assert uniform.max() < 2
    assert set(integers.tolist()) == set(range(7))
    assert probe.normal(1000, scale=3).std() == pytest.approx(3, rel=0.1)


@pytest.mark.parametrize("length", [2, 3])
def test_a_permutation_is_never_the_given_order(length: int) -> None:
    for seed in range(50):
        order = Probe(seed).permutation(length).tolist()
        assert sorted(order) == list(range(length))
        assert order != list(range(length))


def test_numbered_images_hold_every_number_once() -> None:
    images = Probe(0).numbered_images(2, 3, *TALL)
    assert torch.equal(images.flatten(), torch.arange(2.0 * 3 * 12 * 8))


def test_weights_tell_answers_apart() -> None:
    weights = Probe(0).weights(SHAPES)
    assert {name: tuple(tensor.shape) for name, tensor in weights.items()} == SHAPES
    assert weights["fc.weight"].std() == pytest.approx(0.1, rel=0.1)  # 1 / sqrt(100): activations keep their order
    assert weights["norm.weight"].mean() == pytest.approx(1, abs=0.15)
    assert weights["norm.weight"].std() > 0.2
    assert min(weights[name].std() for name in ("norm.bias", "fc.bias", "positions")) > 0.3


def test_sizes_differ_and_none_is_one() -> None:
    for seed in range(50):
        sizes = Probe(seed).sizes(4, low=1, high=5)
        assert sorted(sizes) == [2, 3, 4, 5]
    assert len({Probe(seed).sizes(2) for seed in range(50)}) > 20
    with pytest.raises(ValueError, match="no 3 different sizes from 1 to 3"):
        Probe(0).sizes(3, low=1, high=3)


def test_every_choice_is_made_sometimes() -> None:
    assert {Probe(seed).choice("abc") for seed in range(50)} == set("abc")
