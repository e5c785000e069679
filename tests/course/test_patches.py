from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

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


@pytest.mark.parametrize(
    ("shape", "patch_size", "message"),
    [
        ((2, 3, 30, 32), 4, "height 30 is not divisible by patch_size 4"),
        ((2, 3, 32, 30), 4, "width 30 is not divisible by patch_size 4"),
        ((3, 32, 32), 4, r"images must be \(batch, channels, height, width\), not \(3, 32, 32\)"),
        ((2, 3, 32, 32), 0, "patch_size must be at least 1, not 0"),
    ],
)
def test_patchify_refuses_with_both_numbers(shape: tuple[int, ...], patch_size: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        patchify(torch.zeros(shape), patch_size)


@pytest.mark.parametrize(
    ("shape", "image_size", "message"),
    [
        ((2, 5, 48), (8, 12), "5 tokens cannot fill a grid of 2 x 3 patches"),
        ((2, 6, 50), (8, 12), r"patch_dim 50 is not divisible by patch_size\*\*2 = 16"),
        ((2, 6, 48), (9, 12), "height 9 is not divisible by patch_size 4"),
        ((6, 48), (8, 12), r"patches must be \(batch, tokens, patch_dim\), not \(6, 48\)"),
    ],
)
def test_unpatchify_refuses_with_both_numbers(
    shape: tuple[int, ...], image_size: tuple[int, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        unpatchify(torch.zeros(shape), 4, image_size)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize("size", [(8, 12), (12, 4)])
def test_embedding_is_the_projection_of_every_patch(kind: str, size: tuple[int, int]) -> None:
    embedding = PatchEmbedding(3, 4, 7, kind)
    images = torch.randn(2, 3, *size)
    weight, bias = embedding.projection.weight.flatten(1), embedding.projection.bias
    # float32, 48 products in a sum
    torch.testing.assert_close(embedding(images), patchify(images, 4) @ weight.T + bias, atol=1e-6, rtol=1e-5)


def test_embedding_kinds_have_the_layer_that_they_name() -> None:
    assert list(PatchEmbedding(3, 4, 7).state_dict()) == ["projection.weight", "projection.bias"]
    assert PatchEmbedding(3, 4, 7).projection.weight.shape == (7, 48)
    assert PatchEmbedding(3, 4, 7, "convolution").projection.weight.shape == (7, 3, 4, 4)


@pytest.mark.parametrize("kind", ["linear", "convolution"])
@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((2, 1, 8, 8), r"images must be \(batch, 3, height, width\), not \(2, 1, 8, 8\)"),
        ((3, 8, 8), r"images must be \(batch, 3, height, width\), not \(3, 8, 8\)"),
        ((2, 3, 10, 8), "height 10 is not divisible by patch_size 4"),
        ((2, 3, 8, 10), "width 10 is not divisible by patch_size 4"),
    ],
)
def test_embedding_refuses_with_both_numbers(kind: str, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PatchEmbedding(3, 4, 7, kind)(torch.zeros(shape))


@pytest.mark.parametrize("bias", [True, False])
def test_convolution_from_linear_computes_the_same_tokens(bias: bool) -> None:
    projection = nn.Linear(5 * 9, 7, bias=bias).double()
    images = torch.randn(2, 5, 6, 9, dtype=torch.float64)
    convolution = conv_from_linear(projection, 5, 3)
    tokens: Tensor = convolution(images).flatten(2).transpose(1, 2)
    torch.testing.assert_close(tokens, projection(patchify(images, 3)), atol=1e-12, rtol=0)
    assert (convolution.bias is not None) == bias


def test_convolution_from_linear_copies_the_weights() -> None:
    projection = nn.Linear(12, 7)
    convolution = conv_from_linear(projection, 3, 2)
    kept = projection.weight.clone()
    with torch.no_grad():
        convolution.weight.zero_()
    assert torch.equal(projection.weight, kept)
    assert convolution.weight.is_leaf
    assert convolution.weight.requires_grad


def test_convolution_from_linear_refuses_with_both_numbers() -> None:
    with pytest.raises(ValueError, match=r"takes 48 features, not in_channels \* patch_size\*\*2 = 27"):
        conv_from_linear(nn.Linear(48, 7), 3, 3)
