"""A patch embedding that starts as a whitening of the patches it will see."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from vit_course.data import load_dataset
from vit_course.recipes import RECIPES
from vit_course.training.whitening import FLOOR, initialise_whitened

pytestmark = pytest.mark.usefixtures("seed_torch")
SIZES = {"image_size": 32, "patch_size": 4, "in_channels": 3, "num_heads": 4}


@pytest.fixture
def normalized_images() -> Tensor:
    data = load_dataset("shapes")[0]
    return data.normalize(data.images)


def compute_token_covariance(model, images: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cov(model.patch_embedding(images).flatten(0, 1).T)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("width", [48, 96, 60])
def test_numbers_of_a_token_are_uncorrelated_and_of_equal_size(tiny_model, normalized_images, kind, width) -> None:
    model = tiny_model(**SIZES, embed_dim=width, patch_embedding=kind)
    initialise_whitened(model, normalized_images)
    first = compute_token_covariance(model, normalized_images)[:48, :48]
    assert (first - first.diagonal().diag()).abs().max() < 0.02
    assert first.diagonal()[0] > 0.95, "of the direction that varies most"
    assert (first.diagonal() <= 1.01).all()


def test_the_finest_patterns_stay_small(tiny_model, normalized_images) -> None:
    model = tiny_model(**SIZES, embed_dim=48)
    initialise_whitened(model, normalized_images)
    sizes = compute_token_covariance(model, normalized_images).diagonal()
    assert (sizes.diff() <= 1e-3).all()
    assert sizes[-1] < 0.5


def test_a_narrow_token_keeps_the_directions_that_vary_most(tiny_model, normalized_images) -> None:
    wide, narrow = (tiny_model(**SIZES, embed_dim=width) for width in (48, 8))
    initialise_whitened(wide, normalized_images)
    initialise_whitened(narrow, normalized_images)
    assert torch.allclose(narrow.patch_embedding.projection.weight, wide.patch_embedding.projection.weight[:8])


def test_patches_that_never_vary_break_nothing(tiny_model) -> None:
    model = tiny_model(**SIZES, embed_dim=48)
    initialise_whitened(model, torch.zeros(16, 3, 32, 32))
    weight = model.patch_embedding.projection.weight
    assert weight.isfinite().all()
    assert weight.norm(dim=1).max().item() == pytest.approx(FLOOR**-0.5, rel=1e-4)


def test_images_of_other_channels_are_refused(tiny_model) -> None:
    with pytest.raises(ValueError, match="3 channels, and the model takes 1"):
        initialise_whitened(tiny_model(in_channels=1), torch.zeros(2, 3, 8, 8))


def test_a_recipe_may_start_so() -> None:
    data = load_dataset("shapes")[0]
    recipe = RECIPES["cpu-coffee"]
    plain, whitened = (
        recipe.build(recipe.config_for(data), each).patch_embedding.projection.weight for each in (None, data)
    )
    assert not torch.equal(plain, whitened)
    assert (whitened[:48] @ whitened[:48].T).diagonal().diff().min() >= -1e-3, "finer directions weigh more"
