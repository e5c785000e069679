"""Right and wrong attention for a student's ``is_attention`` to judge.

All of them take query (..., queries, head_dim), key (..., keys, head_dim) and value (..., keys, value_dim) and
give output and weights. They are made with torch's fused kernel or with loops, and every wrong one is wrong by
much more than rounding on numbers of order 1. Some wrong ones are known mistakes of the exercise before this one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    Pair,
    applied,
    output_of,
    scaled_dot_product_attention,
    scores_of,
    weights_of,
)

Attend = Callable[[Tensor, Tensor, Tensor], Pair]


def in_float64(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """computes in float64 and rounds at the end"""
    return output_of(query, key, value), weights_of(query, key)


def by_the_fused_kernel(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """calls torch's fused kernel"""
    return F.scaled_dot_product_attention(query, key, value), weights_of(query, key)


def scaled_beforehand(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """scales the query before it meets the key"""
    return F.scaled_dot_product_attention(query * query.shape[-1] ** -0.5, key, value, scale=1.0), weights_of(
        query, key
    )


def one_query_at_a_time(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """answers one query at a time, in a loop"""
    answers = [_attend_once(query[..., [place], :], key, value) for place in range(query.shape[-2])]
    output, weights = (torch.cat(each, dim=-2) for each in zip(*answers, strict=True))
    return output, weights


def _attend_once(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Attention of a single query, its softmax written out key by key with the largest score subtracted."""
    scores = [(query * key[..., [place], :]).sum(-1, keepdim=True) for place in range(key.shape[-2])]
    scaled = torch.cat(scores, dim=-1) / query.shape[-1] ** 0.5
    shares = torch.exp(scaled - scaled.amax(-1, keepdim=True))
    weights = shares / shares.sum(-1, keepdim=True)
    mixed = torch.zeros_like(value[..., :1, :])
    for place in range(key.shape[-2]):
        mixed = mixed + weights[..., [place]] * value[..., [place], :]
    return mixed, weights


def not_contiguous(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives tensors that are not contiguous in memory"""
    output, weights = in_float64(query, key, value)
    return output.mT.contiguous().mT, weights.mT.contiguous().mT


def weights_transposed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the weights as (…, keys, queries)"""
    output, weights = in_float64(query, key, value)
    return output, weights.mT


def output_transposed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the output as (…, value_dim, queries)"""
    output, weights = in_float64(query, key, value)
    return output.mT, weights


def softmax_over_everything(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """takes one softmax over queries and keys together"""
    scores = scores_of(query, key)
    return applied(scores.flatten(-2).softmax(-1).reshape(scores.shape), value)


def scaled_by_value_dim(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """divides the scores by the root of value_dim"""
    return applied(weights_of(query, key, scale=value.shape[-1] ** -0.5), value)


def _divided_by(divisor: int) -> Attend:
    def divided(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return applied(weights_of(query, key, scale=1 / divisor), value)

    divided.__name__ = f"divided_by_{divisor}"
    divided.__doc__ = f"divides the scores by {divisor}, whatever head_dim is"
    return divided


def last_number_left_out(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """leaves the last number of each query and key out of the scores"""
    return applied(weights_of(query[..., :-1], key[..., :-1], scale=query.shape[-1] ** -0.5), value)


def first_number_left_out(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """leaves the first number of each query and key out of the scores"""
    return applied(weights_of(query[..., 1:], key[..., 1:], scale=query.shape[-1] ** -0.5), value)


def keys_of_length_one(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """divides each key by its length"""
    return applied(weights_of(query, F.normalize(key, dim=-1)), value)


def values_of_the_neighbor(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives each key the value of its neighbor"""
    weights = weights_of(query, key)
    return weights @ value.roll(1, -2), weights


def mean_added(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """adds the mean of all values to its output"""
    weights = weights_of(query, key)
    return weights @ value + value.mean(dim=-2, keepdim=True), weights


def own_place_hidden(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """hides key number i from query number i"""
    diagonal = torch.eye(query.shape[-2], key.shape[-2]).bool()
    weights = weights_of(query, key).masked_fill(diagonal, 0)
    return applied(weights / weights.sum(-1, keepdim=True), value)


def even_weights_told(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the right output, but weights that are all the same"""
    return output_of(query, key, value), torch.full_like(weights_of(query, key), 1 / key.shape[-2])


def weights_in_reverse(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the right output, but each query's weights in the reverse order of the keys"""
    return output_of(query, key, value), weights_of(query, key).flip(-1)


def sharper_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the right weights, but an output made with sharper ones"""
    return weights_of(query, key, scale=1.0) @ value, weights_of(query, key)


def weights_of_the_mean_image(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """averages the weights over the batch"""
    weights = weights_of(query, key)
    return applied(weights if weights.ndim < 3 else weights.mean(0, keepdim=True).expand_as(weights), value)


def values_of_another_image(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives each image the values of another one in the batch"""
    weights = weights_of(query, key)
    return weights @ (value if value.ndim < 3 else value.roll(1, 0)), weights


def right_for_the_first_image(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives the first image its own values, but every other image those of another one"""
    weights = weights_of(query, key)
    return weights @ (value if value.ndim < 3 else torch.cat((value[:1], value[:-1]))), weights


def even(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives every query the plain mean of the values"""
    return applied(torch.full_like(weights_of(query, key), 1 / key.shape[-2]), value)


def deaf_to_the_query(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """asks every time with the mean of the queries"""
    same = query.mean(dim=-2, keepdim=True).expand_as(query)
    return applied(weights_of(same, key), value)


def winner_takes_all(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """gives all the weight to the key with the largest score"""
    weights = weights_of(query, key)
    return applied((weights == weights.amax(-1, keepdim=True)).to(weights.dtype), value)


def shares_of_sigmoids(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """puts a sigmoid where the exponential belongs, and divides by the sum"""
    shares = torch.sigmoid(scores_of(query, key))
    return applied(shares / shares.sum(-1, keepdim=True), value)


def scores_cut_off(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """cuts scores off at -2 and at 2"""
    return applied(scores_of(query, key).clamp(-2, 2).softmax(-1), value)


def _known(name: str) -> Attend:
    """The known mistake of that name in attention."""
    return scaled_dot_product_attention.mistake(name).objects[0]


def _mistake(wrong: Attend, described: str) -> Attend:
    """A known mistake of the exercise before this one, and what it does, as a clause."""

    @wraps(wrong)
    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return wrong(query, key, value)

    attend.__doc__ = described
    return attend


RIGHT = (in_float64, by_the_fused_kernel, scaled_beforehand, one_query_at_a_time, not_contiguous)
WRONG = {
    "shape": (weights_transposed, output_transposed),
    "axis": (
        _mistake(_known("softmax over the queries"), "takes its softmax over the queries"),
        softmax_over_everything,
        _mistake(_known("softmax forgotten"), "has no softmax"),
    ),
    "no scale": (_mistake(_known("scaling forgotten"), "does not scale the scores"),),
    "other scale": (
        _mistake(_known("divided by head dim without the root"), "divides the scores by head_dim, without the root"),
        _mistake(_known("root of the number of keys"), "divides the scores by the root of the number of keys"),
        scaled_by_value_dim,
        *map(_divided_by, (2, 3, 4, 8)),
    ),
    "altered": (last_number_left_out, first_number_left_out, keys_of_length_one),
    "values": (
        values_of_the_neighbor,
        _mistake(_known("values never used"), "mixes the keys and never reads the values"),
        mean_added,
    ),
    "mask": (
        _mistake(_known("causal mask"), "lets query number i see the keys up to number i only"),
        own_place_hidden,
    ),
    "belonging": (even_weights_told, weights_in_reverse, sharper_output),
    "batch": (weights_of_the_mean_image, values_of_another_image, right_for_the_first_image),
    "constant": (even, deaf_to_the_query),
    "not a softmax": (winner_takes_all, shares_of_sigmoids, scores_cut_off),
}
