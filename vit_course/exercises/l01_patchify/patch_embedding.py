"""`PatchEmbedding`: patches into tokens, by a Linear.

The oracle is ``F.linear`` on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patchify import (
    ORDER,
    TOKEN,
    column_order,
    on_the_cpu,
    patches_of,
    strips_not_squares,
)

TOKEN_AXES = ("image", "token", "dimension")

PatchEmbedding = Exercise("PatchEmbedding", LESSON, is_class=True)


def _embedding(
    student: Student, probe: Probe, channels: int, patch_size: int
) -> tuple[StudentModule, dict[str, Tensor]]:
    module = student.build(channels, patch_size, 7)
    weights = probe.weights({"projection.weight": (7, channels * patch_size**2), "projection.bias": (7,)})
    module.load(weights)
    return module, weights


def _embedded(weights: dict[str, Tensor], images: Tensor, patch_size: int) -> Tensor:
    return F.linear(patches_of(images, patch_size), weights["projection.weight"], weights["projection.bias"])


@PatchEmbedding.check(guard=True)
def its_parameters_are_one_linear(student: Student, probe: Probe) -> None:
    """Its parameters are those of one Linear called projection."""
    for channels, patch_size in ((3, 4), (2, 3)):  # 2**patch_size is patch_size**2 for 2 and 4
        _embedding(student, probe, channels, patch_size)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def tokens_are_projected_patches(student: Student, probe: Probe) -> None:
    """A token is the projection of its patch, for tall and wide images alike."""
    for (height, width), channels, patch_size in ((TALL, 3, 4), (WIDE, 5, 2)):
        module, weights = _embedding(student, probe, channels, patch_size)
        images = probe.images(2, channels, height, width)
        expect_equal(module(images), _embedded(weights, images, patch_size), "the embedding", TOKEN_AXES)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches the weight and the bias of the projection."""
    module, _ = _embedding(student, probe, 3, 2)
    output = expect_tensor(module(probe.images(2, 3, 4, 6)), (2, 6, 7), "the embedding")
    if names := module.without_gradient(output):
        raise Failure(f"no gradient reaches {', '.join(names)}", "one for every parameter")


@PatchEmbedding.check(needs=tokens_are_projected_patches)
def one_embedding_takes_any_images(student: Student, probe: Probe) -> None:
    """One and the same embedding takes many images or one, of any size, and the same images twice."""
    module, weights = _embedding(student, probe, 3, 2)
    first = probe.images(3, 3, 4, 6)
    for images in (first, probe.images(2, 3, 8, 4), probe.images(1, 3, 4, 6), first):
        name = f"an embedding that is used several times, of images {shape(images)},"
        expect_equal(module(images), _embedded(weights, images, 2), name, TOKEN_AXES)


@PatchEmbedding.check(needs=tokens_are_projected_patches, worth=0.5, guard=True)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives tokens that lie there."""
    expect_device_of_input(student, probe.images(2, 3, 4, 6), arguments=(3, 2, 7))


@PatchEmbedding.check(needs=its_parameters_are_one_linear, guard=True)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it embeds float64 images."""
    module, weights = _embedding(student, probe, 3, 2)
    module.double()
    images = probe.images(2, 3, 4, 6, dtype=torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    expect_equal(module(images), _embedded(doubled, images, 2), "the embedding in float64", TOKEN_AXES)


PatchEmbedding.example("""
>>> tuple(PatchEmbedding(3, 4, 10)(torch.zeros(2, 3, 8, 12)).shape)
(2, 6, 10)
""")


EMBED = "01_patchify, From pixels to tokens"
CONVOLUTION = "01_patchify, A convolution in disguise"


class _Embedding(nn.Module):
    """What the wrong embeddings have in common: the right parameters, and a right step wherever none is overridden."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def cut(self, images: Tensor) -> Tensor:
        return patches_of(images, self.patch_size)

    def end(self, tokens: Tensor) -> Tensor:
        return tokens

    def forward(self, images: Tensor) -> Tensor:
        return self.end(self.projection(self.cut(images)))


@PatchEmbedding.misconception("What does a plain reshape make of a square?", TOKEN)
class EmbeddingOfStrips(_Embedding):
    """The patches are cut by a plain reshape, so the projection sees strips."""

    def cut(self, images: Tensor) -> Tensor:
        return strips_not_squares(images, self.patch_size)


@PatchEmbedding.misconception("Which grid axis varies fastest in your tokens?", ORDER)
class EmbeddingInColumnOrder(_Embedding):
    """The tokens run down the columns of the grid."""

    def cut(self, images: Tensor) -> Tensor:
        return column_order(images, self.patch_size)


@PatchEmbedding.misconception("Which axis should the embed_dim numbers of a token lie along?", EMBED)
class DimensionsBeforeTokens(_Embedding):
    """The embedding is left as (batch, embed_dim, tokens), as a convolution gives it."""

    def end(self, tokens: Tensor) -> Tensor:
        return super().end(tokens).transpose(1, 2)


@PatchEmbedding.misconception("To go from (batch, embed_dim, tokens) to tokens: reshape, or transpose?", EMBED)
class ReshapedWhereTransposed(_Embedding):
    """(batch, embed_dim, tokens) is reshaped into (batch, tokens, embed_dim), which mixes up the tokens."""

    def end(self, tokens: Tensor) -> Tensor:
        embedded = super().end(tokens)
        return embedded.transpose(1, 2).reshape(embedded.shape)


@PatchEmbedding.misconception("Is the embedding asked to be linear?", EMBED)
class ActivationAfterTheProjection(_Embedding):
    """An activation follows the projection; the patch embedding is a linear map and nothing else."""

    def end(self, tokens: Tensor) -> Tensor:
        return F.gelu(super().end(tokens))


@PatchEmbedding.misconception(
    "What becomes of a black patch, all zeros, in your projection, and could that be learned?", EMBED
)
class ProjectionWithoutBias(_Embedding):
    """The projection has no bias."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__(in_channels, patch_size, embed_dim)
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim, bias=False)


@PatchEmbedding.misconception("How many pixels has a square of 4 x 4?", EMBED)
class PatchSizeDoubled(_Embedding):
    """The Linear expects patch_size * 2 numbers for each channel, which is right for a patch_size of 2 only."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__(in_channels, patch_size, embed_dim)
        self.projection = nn.Linear(in_channels * patch_size * 2, embed_dim)


@PatchEmbedding.misconception("How many numbers has one pixel?", EMBED)
class ChannelsNotCounted(_Embedding):
    """The Linear expects one number for each pixel of a patch, where each pixel has in_channels of them."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__(in_channels, patch_size, embed_dim)
        self.projection = nn.Linear(patch_size**2, embed_dim)


@PatchEmbedding.misconception("Which module did the exercise ask for, a Linear or a convolution?", CONVOLUTION)
class ConvolutionForTheLinear(nn.Module):
    """The projection is a convolution; that is right in itself, but here a Linear was asked for."""

    def __init__(self, in_channels: int, patch_size: int, embed_dim: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(in_channels, embed_dim, patch_size, stride=patch_size)


@PatchEmbedding.misconception(
    "On which device does a tensor lie that forward makes, and where are the images?", EMBED, InTraining.UNSEEN
)
class TokensMadeOnTheCpu(_Embedding):
    """The tokens are filled into a new tensor on the CPU, wherever module and images are."""

    def end(self, tokens: Tensor) -> Tensor:
        return on_the_cpu(super().end(tokens))


@PatchEmbedding.misconception("How many axes has a batch of one image?", EMBED, InTraining.UNSEEN)
class BatchOfOneSqueezed(_Embedding):
    """Axes of length 1 are squeezed away, so a batch of one image loses its first axis."""

    def end(self, tokens: Tensor) -> Tensor:
        return super().end(tokens).squeeze()


@PatchEmbedding.misconception(
    "Which attribute of self is written in forward, and when again?", EMBED, InTraining.UNSEEN
)
class SizeOfTheFirstImagesKept(_Embedding):
    """The number of patches is kept from the first images, so the next ones have to be of the same size."""

    def end(self, tokens: Tensor) -> Tensor:
        self.num_patches = getattr(self, "num_patches", tokens.shape[1])
        return super().end(tokens).reshape(len(tokens), self.num_patches, -1)
