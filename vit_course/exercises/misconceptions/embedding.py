"""Known mistakes of lesson 01 on the way from patches to tokens."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.embedding import PatchEmbedding, conv_from_linear
from vit_course.exercises.checks.patches import patches_of
from vit_course.exercises.misconceptions.patches import ORDER, TOKEN, column_order, on_the_cpu, strips_not_squares

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
    """Axes of length 1 are squeezed away, so a batch of one image is a batch no more."""

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


def _conv(projection: nn.Linear, in_channels: int, patch_size: int, kernels: Tensor, stride: int = 0) -> nn.Conv2d:
    made = nn.Conv2d(in_channels, projection.out_features, patch_size, stride=stride or patch_size)
    made.weight = nn.Parameter(kernels.detach().clone())
    made.bias = None if projection.bias is None else nn.Parameter(projection.bias.detach().clone())
    return made


@conv_from_linear.misconception("How far does the kernel move from one token to the next?", CONVOLUTION)
def stride_forgotten(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The kernel moves by one pixel at a time, so there are far too many tokens."""
    kernels = projection.weight.reshape(-1, in_channels, patch_size, patch_size)
    return _conv(projection, in_channels, patch_size, kernels, stride=1)


@conv_from_linear.misconception("In which order does patchify lay out a patch?", CONVOLUTION)
def kernels_with_channels_last(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """A row of the Linear's weight is read as row, column, channel."""
    kernels = projection.weight.reshape(-1, patch_size, patch_size, in_channels).permute(0, 3, 1, 2)
    return _conv(projection, in_channels, patch_size, kernels)


@conv_from_linear.misconception("Is a kernel indexed by row and column, or by column and row?", CONVOLUTION)
def kernels_transposed(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """Every kernel lies on its side."""
    kernels = projection.weight.reshape(-1, in_channels, patch_size, patch_size).transpose(2, 3)
    return _conv(projection, in_channels, patch_size, kernels)


@conv_from_linear.misconception("What else does a Linear have besides its weight?", CONVOLUTION)
def bias_left_random(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The weight is copied, the bias is not, so the convolution keeps its own random one."""
    made = nn.Conv2d(in_channels, projection.out_features, patch_size, stride=patch_size)
    made.weight = nn.Parameter(projection.weight.detach().reshape(made.weight.shape).clone())
    return made


@conv_from_linear.misconception("Does the new convolution know the Linear's numbers yet?", CONVOLUTION)
def weights_never_copied(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """A convolution of the right shape, with its own random weights."""
    return nn.Conv2d(in_channels, projection.out_features, patch_size, stride=patch_size)


@conv_from_linear.misconception("Which axis of nn.Linear's weight counts the outputs?", CONVOLUTION)
def weight_read_the_wrong_way(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The weight is transposed first, as if its rows were inputs."""
    kernels = projection.weight.T.reshape(-1, in_channels, patch_size, patch_size)
    return _conv(projection, in_channels, patch_size, kernels)


@conv_from_linear.misconception("Which shape has the weight of an nn.Conv2d, and which that of a Linear?", CONVOLUTION)
def weight_not_reshaped(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The convolution is given the Linear's weight as it is, with each kernel as one long row."""
    return _conv(projection, in_channels, patch_size, projection.weight)


@conv_from_linear.misconception("What does the exercise say about copying weights?", CONVOLUTION)
def copied_while_gradients_are_recorded(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """Numbers are written into a parameter while torch records gradients, which it refuses."""
    made = nn.Conv2d(in_channels, projection.out_features, patch_size, stride=patch_size)
    made.weight.copy_(projection.weight.reshape(made.weight.shape))  # raises
    return made


@conv_from_linear.misconception("Where could the number of channels come from?", CONVOLUTION)
def three_channels_hard_coded(projection: nn.Linear, in_channels: int, patch_size: int) -> nn.Conv2d:
    """The convolution is made for 3 channels, whatever in_channels is."""
    kernels = projection.weight.unflatten(1, (in_channels, patch_size, patch_size))
    made = _conv(projection, 3, patch_size, kernels)
    return made
