"""Parts of LayerNorm: which numbers make a mean and a variance, what divides, and what weight and bias do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.layer_norm import layer_norm
from vit_course.exercises.misconceptions import layer_norm as wrong

Axes = tuple[int, ...]


def _made(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    eps: float,
    *,
    axes: Callable[[int], Axes] = lambda ndim: (-1,),
    correction: int = 0,
    variance: Callable[[Tensor, Tensor, Axes], Tensor] = lambda found, x, over: found,
    centred: bool = True,
    divisor: Callable[[Tensor, float], Tensor] = lambda variance, eps: (variance + eps).sqrt(),
    applied: Callable[[Tensor, Tensor, Tensor], Tensor] = lambda z, weight, bias: torch.addcmul(bias, z, weight),
    told: Callable[[Tensor, Tensor], Any] = lambda result, x: result,
) -> Any:
    over = axes(x.ndim)
    found, mean = torch.var_mean(x, over, correction=correction, keepdim=True)
    found = variance(found, x, over)
    return told(applied((x - mean if centred else x) / divisor(found, eps), weight, bias), x)


def _summed(found: Tensor, x: Tensor, over: Axes) -> Tensor:
    return found * math.prod(x.shape[axis] for axis in over)


declare(
    layer_norm,
    Parts(
        _made,
        {
            wrong.divided_by_one_less: {"correction": 1},
            wrong.divided_by_the_variance: {"divisor": lambda variance, eps: variance + eps},
            wrong.deviations_never_squared: {"variance": lambda found, x, over: 0 * found},
            wrong.divided_but_not_centred: {"centred": False},
            wrong.mean_left_in: {
                "centred": False,
                "variance": lambda found, x, over: x.square().mean(over, keepdim=True),
            },
            wrong.squares_summed_not_averaged: {"variance": _summed},
            wrong.weight_and_bias_never_used: {"applied": lambda z, weight, bias: z},
            wrong.bias_left_out: {"applied": lambda z, weight, bias: z * weight},
            wrong.weight_left_out: {"applied": lambda z, weight, bias: z + bias},
            wrong.bias_added_before_the_weight: {"applied": lambda z, weight, bias: (z + bias) * weight},
            wrong.eps_outside_the_root: {"divisor": lambda variance, eps: variance.sqrt() + eps},
            wrong.std_plus_eps: {"divisor": lambda variance, eps: variance.sqrt() + eps, "correction": 1},
            wrong.eps_left_out: {"divisor": lambda variance, eps: variance.sqrt()},
            wrong.statistics_over_the_tokens: {"axes": lambda ndim: (-2,)},
            wrong.statistics_over_the_first_axis: {"axes": lambda ndim: (0,)},
            wrong.one_mean_for_a_whole_image: {"axes": lambda ndim: tuple(range(1, ndim))},
            wrong.batch_norm: {"axes": lambda ndim: tuple(range(ndim - 1))},
            wrong.one_mean_for_everything: {"axes": lambda ndim: tuple(range(ndim))},
            wrong.axis_counted_from_the_front: {"axes": lambda ndim: (2,)},
            wrong.tokens_left_in_one_long_row: {"told": lambda result, x: result.flatten(0, -2)},
            wrong.float32_whatever_the_input: {"told": lambda result, x: result.float()},
            wrong.x_changed_in_place: {"told": lambda result, x: x.copy_(result)},
        },
        quick=True,
    ),
)
