"""Images that grow: the model sees fewer patches at first, with its positions resized, and learns all the same."""

from __future__ import annotations

import pytest
import torch

from vit_course.training import TrainingSettings, fit
from vit_course.training.growing import Growing
from vit_course.training.hardware import wrap_in_precision

GROWTH = ((0.4, 0.25), (0.7, 0.5))
IMAGES = torch.randn(3, 1, 16, 16)


@pytest.fixture(params=["mean", "class_token"])
def model(request, tiny_model):
    return tiny_model(image_size=16, patch_size=4, pooling=request.param)


@pytest.mark.parametrize(("share", "patches"), [(0.0, 1), (0.39, 1), (0.4, 4), (0.7, 16), (1.0, 16)])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_young_run_sees_few_patches(model, share: float, patches: int, precision: str) -> None:
    growing = Growing(model, GROWTH)
    growing.grow(share)
    seen = []
    for block in (model, *(each for (each,) in growing.smaller.values())):
        block.patch_embedding.register_forward_hook(lambda module, inputs, output: seen.append(output.shape[1]))
    logits = wrap_in_precision(growing, precision, torch.device("cpu"))(IMAGES)
    assert seen == [patches]
    logits.sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())


def test_grown_up_it_is_the_model(model) -> None:
    growing = Growing(model, GROWTH)
    growing.grow(0.9)
    assert torch.equal(growing(IMAGES), model(IMAGES))


def test_a_smaller_image_has_the_positions_of_its_places(model) -> None:
    """Positions that say how far down a patch lies say so in the smaller grid too."""
    rows = torch.arange(4.0).repeat_interleave(4)[None, :, None].expand(1, 16, model.config.embed_dim)
    with torch.no_grad():
        model.positions[:, -16:] = rows
        growing, seen = Growing(model, GROWTH), []
        growing.grow(0.5)
        (half,) = growing.smaller[0.5]
        half.embedding_dropout.register_forward_hook(lambda module, inputs, output: seen.append(output[:, -4:]))
        model.patch_embedding.projection.weight.zero_()
        model.patch_embedding.projection.bias.zero_()
        growing(IMAGES)
    up, _, down, _ = seen[0][0, :, 0].tolist()
    assert up < 1 < 2 < down


def test_patches_have_to_fit(tiny_model) -> None:
    with pytest.raises(ValueError, match=r"images cannot grow from 2 x 2 pixels"):
        Growing(tiny_model(image_size=8, patch_size=4), ((0.5, 0.25),))


def test_another_kind_of_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not for Linear: set growth to \(\)"):
        Growing(torch.nn.Linear(2, 2), GROWTH)


@pytest.mark.parametrize("growth", [((0.5, 0.5), (0.2, 0.75)), ((0.5, 2.0),), ((1.0, 0.5),)], ids=str)
def test_what_makes_no_sense_is_refused(growth: tuple) -> None:
    with pytest.raises(ValueError, match="growth has rising shares and scales between 0 and 1"):
        TrainingSettings(growth=growth)


def test_a_run_grows_by_its_steps(random_dataset, tiny_model, monkeypatch) -> None:
    shares = []
    grow = Growing.grow
    monkeypatch.setattr(Growing, "grow", lambda self, share: shares.append(share) or grow(self, share))
    settings = TrainingSettings(epochs=2, batch_size=8, growth=((0.5, 0.5),))
    fit(tiny_model(), random_dataset(), random_dataset(), settings)
    assert shares.pop(0) == 0  # made for the first step
    assert shares == sorted(shares)
    assert shares[0] == 0
    assert 0.5 <= shares[-1] < 1
