"""A start that looks trained: tokens attend to their like, positions make neighbors alike."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from vit_course.recipes import RECIPES
from vit_course.training.mimetic import initialise_mimetically

pytestmark = pytest.mark.usefixtures("seed_torch")


@pytest.fixture(params=["mean", "class_token"])
def model(request, tiny_model):
    model = tiny_model(image_size=16, patch_size=2, embed_dim=64, num_heads=4, pooling=request.param, position_std=0.5)
    initialise_mimetically(model)
    return model


def test_the_products_of_weights_have_their_diagonals(model) -> None:
    for block in model.blocks:
        queries, keys, values = block.attention.qkv.weight.chunk(3)
        scores = sum(query.T @ key for query, key in zip(queries.chunk(4), keys.chunk(4), strict=True))
        assert scores.diagonal().mean() > 5 * (scores - scores.diagonal().diag()).abs().mean()
        gains = (block.attention.projection.weight @ values).diagonal()
        assert gains.mean().item() == pytest.approx(-0.4, abs=0.03)


def test_neighbors_are_alike_and_far_patches_are_not(model) -> None:
    grid = model.positions[0, -64:].reshape(8, 8, 64)
    assert grid.square().mean().sqrt().item() == pytest.approx(0.5, rel=1e-3)
    below, right, far = (
        torch.cosine_similarity(grid[2, 2], each, dim=0) for each in (grid[3, 2], grid[2, 3], grid[7, 7])
    )
    assert min(below, right) > far + 0.15


def test_a_fixed_table_of_positions_stays(tiny_model) -> None:
    model = tiny_model(positions="sinusoidal")
    before = model.positions.clone()
    initialise_mimetically(model)
    assert torch.equal(model.positions, before)


def test_a_width_that_has_no_waves_is_refused(tiny_model) -> None:
    with pytest.raises(ValueError, match="divisible by 4"):
        initialise_mimetically(tiny_model(embed_dim=6, num_heads=2))


def test_a_recipe_may_start_so() -> None:
    recipe = RECIPES["cpu-coffee"]
    torch.manual_seed(0)
    plain, mimetic = (replace(recipe, mimetic=each).build(recipe.config).blocks[0].attention for each in (False, True))
    overlap = [
        (each.projection.weight @ each.qkv.weight.chunk(3)[2]).diagonal().mean().item() for each in (plain, mimetic)
    ]
    assert abs(overlap[0]) < 0.1
    assert overlap[1] < -0.3
