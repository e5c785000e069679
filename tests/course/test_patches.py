from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from vit_course.config import PatchEmbeddingKind
from vit_course.patches import PatchEmbedding, patchify, unpatchify
from vit_course.pretrained import conv_from_linear

pytestmark = pytest.mark.usefixtures("seed_torch")


def test_patches_share_no_memory_with_the_images() -> None:
    images = torch.randn(2, 8, 12, 3).permute(0, 3, 1, 2)
    kept = images.clone()
    patchify(images, 4).zero_()
    assert torch.equal(images, kept)


def test_an_empty_batch_passes() -> None:
    assert patchify(torch.randn(0, 3, 8, 4), 4).shape == (0, 2, 48)


def embed(kind: PatchEmbeddingKind, *shape: int) -> Tensor:
    return PatchEmbedding(3, 4, 7, kind)(torch.zeros(shape))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: patchify(torch.zeros(3, 32, 32), 4),
            r"images must be \(batch, channels, height, width\), not \(3, 32, 32\)",
        ),
        (lambda: unpatchify(torch.zeros(2, 5, 48), 4, (8, 12)), "5 tokens cannot fill a grid of 2 x 3 patches"),
        (
            lambda: unpatchify(torch.zeros(2, 6, 50), 4, (8, 12)),
            r"patch_dim 50 is not divisible by patch_size\*\*2 = 16",
        ),
        (lambda: unpatchify(torch.zeros(2, 6, 48), 4, (9, 12)), "height 9 is not divisible by patch_size 4"),
        (
            lambda: unpatchify(torch.zeros(6, 48), 4, (8, 12)),
            r"patches must be \(batch, tokens, patch_dim\), not \(6, 48\)",
        ),
        (lambda: embed("linear", 2, 1, 8, 8), r"images must be \(batch, 3, height, width\), not \(2, 1, 8, 8\)"),
        (lambda: embed("linear", 3, 8, 8), r"images must be \(batch, 3, height, width\), not \(3, 8, 8\)"),
        (lambda: embed("convolution", 2, 3, 10, 8), "height 10 is not divisible by patch_size 4"),
        (lambda: embed("convolution", 2, 3, 8, 10), "width 10 is not divisible by patch_size 4"),
        (
            lambda: conv_from_linear(nn.Linear(48, 7), 3, 3),
            r"takes 48 features, not in_channels \* patch_size\*\*2 = 27",
        ),
    ],
)
def test_sizes_that_do_not_fit_are_refused_with_both_numbers(call: Callable[[], Tensor], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_convolution_from_linear_copies_the_weights_in_their_dtype() -> None:
    projection = nn.Linear(12, 7).double()
    convolution = conv_from_linear(projection, 3, 2)
    kept = projection.weight.clone()
    with torch.no_grad():
        convolution.weight.zero_()
    assert torch.equal(projection.weight, kept)
    assert convolution.weight.dtype == torch.float64
    assert convolution.weight.is_leaf
    assert convolution.weight.requires_grad
