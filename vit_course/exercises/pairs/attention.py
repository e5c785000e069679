"""Parts of scaled dot-product attention: the scale, the softmax, what is mixed, and what is given back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.attention import scaled_dot_product_attention, weights_of
from vit_course.exercises.misconceptions import attention as wrong

Tensors = tuple[Tensor, ...]


def _scores(query: Tensor, key: Tensor, scale: float) -> Tensor:
    """One query at a time."""
    rows = [(key * query[..., [index], :]).sum(-1) for index in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) * scale


def _made(
    *given: Tensor,
    scale: Callable[[Tensor, Tensor], float] = lambda query, key: query.shape[-1] ** -0.5,
    turned: Callable[[Tensor], Tensor] = lambda key: key,
    weigh: Callable[[Tensor, Tensor, float], Tensor] = weights_of,
    rescaled: Callable[[Tensor, Tensor], Tensor] = lambda weights, query: weights,
    cut: Callable[[Tensor], Tensor] = lambda weights: weights,
    mixed: int = 2,
    told: Callable[[Tensor, Tensor, Tensor], Any] = lambda output, weights, scores: (output, weights),
    taken: Callable[[Tensors], Tensors] = lambda inputs: inputs,
) -> Any:
    query, key, value = taken(given)
    factor, turned_key = scale(query, key), turned(key)
    weights = cut(rescaled(weigh(query, turned_key, factor), query))
    output = torch.einsum("...qk,...kv->...qv", weights, (query, key, value)[mixed])
    return told(output, weights, _scores(query, turned_key, factor))


def _without_dim(query: Tensor, key: Tensor, scale: float) -> Tensor:
    scores = _scores(query, key, scale)
    return scores.softmax(0 if scores.ndim in (1, 3) else 1)


def _over_everything(query: Tensor, key: Tensor, scale: float) -> Tensor:
    scores = _scores(query, key, scale)
    return scores.flatten().softmax(0).reshape(scores.shape)


def _overflowing(query: Tensor, key: Tensor, scale: float) -> Tensor:
    exponentials = torch.exp(_scores(query, key, scale))
    return exponentials / exponentials.sum(-1, keepdim=True)


def _reshaped(key: Tensor) -> Tensor:
    return key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]).mT


def _shrunk(inputs: Tensors) -> Tensors:
    query, key, value = inputs
    before = query.clone()
    query /= query.shape[-1] ** 0.5
    return before, key, value


declare(
    scaled_dot_product_attention,
    Parts(
        _made,
        {
            wrong.scaling_forgotten: {"scale": lambda query, key: 1.0},
            wrong.divided_by_head_dim_without_the_root: {"scale": lambda query, key: 1 / query.shape[-1]},
            wrong.multiplied_by_the_root: {"scale": lambda query, key: query.shape[-1] ** 0.5},
            wrong.root_cut_to_a_whole_number: {"scale": lambda query, key: 1 / math.isqrt(query.shape[-1])},
            wrong.root_of_the_number_of_keys: {"scale": lambda query, key: key.shape[-2] ** -0.5},
            wrong.scaled_after_the_softmax: {
                "scale": lambda query, key: 1.0,
                "rescaled": lambda weights, query: weights * query.shape[-1] ** -0.5,
            },
            wrong.softmax_over_the_queries: {"weigh": lambda query, key, scale: weights_of(key, query, scale).mT},
            wrong.softmax_without_a_dim: {"weigh": _without_dim},
            wrong.one_softmax_for_everything: {"weigh": _over_everything},
            wrong.softmax_forgotten: {"weigh": _scores},
            wrong.softmax_that_overflows: {"weigh": _overflowing},
            wrong.causal_mask: {"weigh": lambda query, key, scale: weights_of(query, key, scale, causal=True)},
            wrong.key_reshaped_where_transposed: {"turned": _reshaped},
            wrong.values_never_used: {"mixed": 1},
            wrong.weights_before_output: {"told": lambda output, weights, scores: (weights, output)},
            wrong.output_alone: {"told": lambda output, weights, scores: output},
            wrong.scores_returned_as_weights: {"told": lambda output, weights, scores: (output, scores)},
            wrong.query_scaled_in_place: {"taken": _shrunk},
            wrong.weights_out_of_the_graph: {"cut": torch.Tensor.detach},
            wrong.left_in_float32: {"taken": lambda inputs: tuple(each.float() for each in inputs)},
        },
        quick=True,
    ),
)
