"""Right variants of lesson 01."""

import einops
import torch
import torch.nn.functional as F
from torch import nn

from vit_course import patches as reference


def _refuse(images, patch_size):
    for side in images.shape[-2:]:
        if side % patch_size:
            raise ValueError(f"{side} pixels cannot be cut by patch_size {patch_size}")


def patchify_by_loops(images, patch_size):
    _refuse(images, patch_size)
    batch, channels, height, width = images.shape
    tokens = images.new_zeros(batch, height // patch_size * (width // patch_size), channels * patch_size**2)
    for b in range(batch):
        token = 0
        for row in range(0, height, patch_size):
            for column in range(0, width, patch_size):
                patch = images[b, :, row : row + patch_size, column : column + patch_size]
                tokens[b, token] = patch.reshape(-1)
                token += 1
    return tokens


def patchify_by_unfold_twice(images, patch_size):
    _refuse(images, patch_size)
    cut = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2)


def patchify_by_f_unfold(images, patch_size):
    _refuse(images, patch_size)
    return F.unfold(images.double(), patch_size, stride=patch_size).transpose(1, 2).to(images.dtype)


def patchify_by_einops(images, patch_size):
    _refuse(images, patch_size)
    return einops.rearrange(images, "b c (h p) (w q) -> b (h w) (c p q)", p=patch_size, q=patch_size)


def patchify_by_one_hot_convolution(images, patch_size):
    _refuse(images, patch_size)
    channels = images.shape[1]
    length = channels * patch_size**2
    identity = torch.eye(length, dtype=torch.float64, device=images.device)
    kernels = identity.reshape(length, channels, patch_size, patch_size)
    tokens = F.conv2d(images.double(), kernels, stride=patch_size)
    return tokens.flatten(2).transpose(1, 2).to(images.dtype)


def patchify_by_splitting(images, patch_size):
    _refuse(images, patch_size)
    strips = torch.stack(images.split(patch_size, dim=3), dim=1)
    squares = torch.stack(strips.split(patch_size, dim=3), dim=1)
    return squares.flatten(3).flatten(1, 2)


def unpatchify_by_loops(patches, patch_size, image_size):
    height, width = image_size
    channels = patches.shape[2] // patch_size**2
    images = patches.new_empty(len(patches), channels, height, width)
    columns = width // patch_size
    for token in range(patches.shape[1]):
        row, column = token // columns * patch_size, token % columns * patch_size
        square = patches[:, token].reshape(-1, channels, patch_size, patch_size)
        images[:, :, row : row + patch_size, column : column + patch_size] = square
    return images


def unpatchify_by_einops(patches, patch_size, image_size):
    rows = image_size[0] // patch_size
    return einops.rearrange(
        patches, "b (h w) (c p q) -> b c (h p) (w q)", h=rows, p=patch_size, q=patch_size
    ).contiguous()


def unpatchify_by_fold(patches, patch_size, image_size):
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)


class EmbeddingWithHelpers(nn.Module):
    """Extra attributes and helper methods are nobody's business."""

    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.size = patch_size
        self.note = "a helper"
        self.projection = nn.Linear(in_channels * patch_size * patch_size, embed_dim)

    def cut(self, images):
        return patchify_by_unfold_twice(images, self.size)

    def forward(self, images):
        return self.projection(self.cut(images))


class EmbeddingByConvolution(nn.Module):
    """A Linear's parameters, used as a convolution."""

    def __init__(self, in_channels, patch_size, embed_dim):
        super().__init__()
        self.shape = (embed_dim, in_channels, patch_size, patch_size)
        self.projection = nn.Linear(in_channels * patch_size**2, embed_dim)

    def forward(self, images):
        kernels = self.projection.weight.view(self.shape)
        return F.conv2d(images, kernels, self.projection.bias, stride=self.shape[-1]).flatten(2).mT


class EmbeddingImageByImage(EmbeddingWithHelpers):
    """A loop over the batch."""

    def forward(self, images):
        return torch.stack([self.projection(patches) for patches in self.cut(images)])


def conv_by_state_dict(projection, in_channels, patch_size):
    has_bias = projection.bias is not None
    made = nn.Conv2d(in_channels, projection.out_features, patch_size, patch_size, bias=has_bias)
    state = projection.state_dict()
    state["weight"] = state["weight"].view_as(made.weight)
    made.load_state_dict(state)
    return made


def conv_by_parameters(projection, in_channels, patch_size):
    made = nn.Conv2d(in_channels, projection.out_features, (patch_size, patch_size), stride=(patch_size, patch_size))
    made.weight = nn.Parameter(projection.weight.unflatten(1, (in_channels, patch_size, patch_size)).detach())
    made.bias = projection.bias
    return made


def conv_with_valid_padding(projection, in_channels, patch_size):
    size = (in_channels, projection.out_features, patch_size, patch_size)
    made = nn.Conv2d(*size, padding="valid", bias=projection.bias is not None)
    with torch.no_grad():
        made.weight[:] = projection.weight.reshape(made.weight.shape)
        if projection.bias is not None:
            made.bias[:] = projection.bias
    return made


def patchify_by_places_in_memory(images, patch_size):
    _refuse(images, patch_size)
    _, channels, height, width = images.shape
    places = torch.arange(channels * height * width, device=images.device).reshape(1, channels, height, width)
    rows = [part.flatten(1) for band in places.split(patch_size, 2) for part in band.split(patch_size, 3)]
    return images.flatten(1)[:, torch.cat(rows)]


_PATCHIFY = [
    patchify_by_loops,
    patchify_by_unfold_twice,
    patchify_by_f_unfold,
    patchify_by_einops,
    patchify_by_one_hot_convolution,
    patchify_by_splitting,
    patchify_by_places_in_memory,
]
RIGHT = {
    "patchify": [reference.patchify, *_PATCHIFY],
    "fix_patchify": _PATCHIFY,
    "unpatchify": [reference.unpatchify, unpatchify_by_loops, unpatchify_by_einops, unpatchify_by_fold],
    "PatchEmbedding": [reference.PatchEmbedding, EmbeddingWithHelpers, EmbeddingByConvolution, EmbeddingImageByImage],
    "conv_from_linear": [reference.conv_from_linear, conv_by_state_dict, conv_by_parameters, conv_with_valid_padding],
}
