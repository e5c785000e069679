"""Right answers in other styles: what no check may refuse."""

import torch
from torch import nn

from vit_course.pretrained import conv_from_linear


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


RIGHT = {"conv_from_linear": [conv_from_linear, conv_by_state_dict, conv_by_parameters, conv_with_valid_padding]}
