"""Right variants of lesson 01."""

import einops
import torch
import torch.nn.functional as F
from torch import nn

from vit_course import patches as reference
from vit_course.pretrained import conv_from_linear


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


RIGHT = {
    "unpatchify": [reference.unpatchify, unpatchify_by_loops, unpatchify_by_einops, unpatchify_by_fold],
    "conv_from_linear": [conv_from_linear, conv_by_state_dict, conv_by_parameters, conv_with_valid_padding],
}
