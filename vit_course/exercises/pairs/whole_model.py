"""Parts of a model's number of parameters, of a convolution made from a Linear, and of loading somebody's weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.config import ViTConfig
from vit_course.exercises.checks.embedding import conv_from_linear
from vit_course.exercises.checks.parameters import count_parameters, number_of_parameters
from vit_course.exercises.checks.weights import StateDict, load_torchvision
from vit_course.exercises.misconceptions import embedding, parameters, weights

Count = Callable[[ViTConfig], int]

_COUNTS = (
    parameters.one_vector_forgotten,
    parameters.positions_forgotten,
    parameters.biases_forgotten,
    parameters.norms_forgotten,
    parameters.norms_without_shift,
    parameters.final_norm_forgotten,
    parameters.qkv_counted_as_one_map,
    parameters.qkv_counted_for_every_head,
    parameters.attention_projection_forgotten,
    parameters.head_forgotten,
    parameters.patch_size_not_squared,
    parameters.channels_forgotten,
    parameters.square_image_counted,
    parameters.four_times_whatever_the_ratio,
    parameters.qkv_bias_always_counted,
)


def _counted(config: ViTConfig, *, told: Callable[[int], Any] = int, **counts: Count) -> Any:
    """What each of ``counts`` misses is missing, and what it counts too much is too much."""
    right = number_of_parameters(config)
    return told(right + sum(count(config) - right for count in counts.values()))


declare(
    count_parameters,
    Parts(
        _counted,
        {**{each: {each.__name__: each} for each in _COUNTS}, parameters.a_float_came_out: {"told": float}},
        quick=True,
    ),
)


def _convolved(
    projection: nn.Linear,
    in_channels: int,
    patch_size: int,
    *,
    weight: Callable[[Tensor], Tensor] = lambda weight: weight,
    kernels: Callable[[Tensor, int, int], Tensor] = lambda rows, c, p: rows.reshape(-1, c, p, p),
    stride: int = 0,
    with_bias: bool = True,
) -> nn.Conv2d:
    found = kernels(weight(projection.weight), in_channels, patch_size)
    made = nn.Conv2d(in_channels, projection.out_features, patch_size, stride=stride or patch_size)
    made.weight = nn.Parameter(found.detach().clone())
    if with_bias:
        made.bias = None if projection.bias is None else nn.Parameter(projection.bias.detach().clone())
    return made


declare(
    conv_from_linear,
    Parts(
        _convolved,
        {
            embedding.stride_forgotten: {"stride": 1},
            embedding.kernels_with_channels_last: {
                "kernels": lambda rows, c, p: rows.reshape(-1, p, p, c).permute(0, 3, 1, 2)
            },
            embedding.kernels_transposed: {"kernels": lambda rows, c, p: rows.reshape(-1, c, p, p).mT},
            embedding.bias_left_random: {"with_bias": False},
            embedding.weight_read_the_wrong_way: {"weight": torch.Tensor.t},
        },
    ),
)

Load = Callable[[nn.Module, StateDict], Any]
_LOADS = (
    weights.kernels_unrolled_channels_last,
    weights.kernels_on_their_side,
    weights.keys_before_queries,
    weights.rows_sorted_by_head,
    weights.norms_swapped,
    weights.class_row_of_the_positions_dropped,
    weights.class_token_left_out,
    weights.head_left_out,
)


def _loaded(
    model: nn.Module,
    state_dict: StateDict,
    *,
    error: Callable[[ValueError], Exception] = lambda error: error,
    told: Callable[[nn.Module], Any] = lambda model: model,
    **loads: Load,
) -> Any:
    """Every parameter as the one of ``loads`` has it that does not load it as the others do."""
    try:
        right = weights._translated(model, state_dict)
    except ValueError as misfit:
        raise error(misfit) from None
    own = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    found = dict(right)
    for load in loads.values():
        for name, parameter in load(weights._fill(model, own), state_dict).named_parameters():
            if not torch.equal(parameter, right[name]):
                found[name] = parameter.detach().clone()
    return told(weights._fill(model, found))


declare(
    load_torchvision,
    Parts(
        _loaded,
        {
            **{each: {each.__name__: each} for each in _LOADS},
            weights.error_of_torch_passed_on: {"error": lambda misfit: RuntimeError(str(misfit))},
            weights.error_without_a_name: {"error": lambda misfit: ValueError("the weights do not fit")},
            weights.nothing_returned: {"told": lambda model: None},
        },
        slow=True,
    ),
)
