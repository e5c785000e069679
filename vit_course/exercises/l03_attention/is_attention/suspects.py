"""The suspects of ``is_attention``: right and wrong attention for a student's test to judge.

All of them take query (..., queries, head_dim), key (..., keys, head_dim) and value (..., keys, value_dim) and give
output and weights. Every wrong one is wrong by much more than rounding on inputs of order 1, as soon as there are two
images and all sizes differ; on matrices alone some of them are right, and should be. Some are known mistakes of an
earlier exercise. ``check`` asks about these; grading draws their settings, and adds others.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    Pair,
    applied,
    output_of,
    scaled_dot_product_attention,
)
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import weights_of as weights_in_float64

Attend = Callable[[Tensor, Tensor, Tensor], Pair]


def scores_of(query: Tensor, key: Tensor) -> Tensor:
    """The scaled scores, (..., queries, keys)."""
    return query @ key.mT * query.shape[-1] ** -0.5


def weights_of(query: Tensor, key: Tensor) -> Tensor:
    """The right weights, (..., queries, keys)."""
    return scores_of(query, key).softmax(dim=-1)


def with_scores(scores: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``scores`` of query and key in place of the scaled ones."""
    return lambda query, key, value: applied(scores(query, key).softmax(dim=-1), value)


def with_shares(shares: Callable[[Tensor], Tensor]) -> Attend:
    """Attention with ``shares`` of the scores, divided by their sum, in place of the softmax."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        found = shares(scores_of(query, key))
        return applied(found / found.sum(dim=-1, keepdim=True), value)

    return attend


def with_weights(weights: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``weights`` of query and key, and the mean of the values under them."""
    return lambda query, key, value: applied(weights(query, key), value)


def reporting(transform: Callable[[Tensor], Tensor]) -> Attend:
    """Attention that uses the right weights and gives what ``transform`` makes of them."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return weights @ value, transform(weights)

    return attend


def giving(output: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention that gives the right weights, and what ``output`` makes of weights and value."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return output(weights, value), weights

    return attend


def behind_first(first: Tensor, others: Tensor) -> Tensor:
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def next_image(batch: Tensor) -> Tensor:
    """In the place of each image the one before it."""
    return batch if batch.ndim < 3 else batch.roll(1, dims=0)


def mean_image(batch: Tensor) -> Tensor:
    """In the place of each image the mean of all."""
    return batch if batch.ndim < 3 else batch.mean(dim=0, keepdim=True).expand_as(batch)


def distance(query: Tensor, key: Tensor) -> Tensor:
    """How far apart the numbers of query and key are, (queries, keys)."""
    numbers, others = (torch.arange(each.shape[-2], device=each.device) for each in (query, key))
    return (numbers[:, None] - others).abs()


def without(place: Callable[[int], int]) -> Attend:
    """Attention whose scaled scores take one number of each key for 0: the one at ``place`` of head_dim."""

    def scores(query: Tensor, key: Tensor) -> Tensor:
        kept = torch.arange(key.shape[-1], device=key.device) != place(key.shape[-1])
        return scores_of(query, key * kept)

    return with_scores(scores)


def in_float64(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Both by the oracle."""
    return output_of(query, key, value), weights_in_float64(query, key)


def by_the_fused_kernel(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output by torch's fused kernel."""
    return F.scaled_dot_product_attention(query, key, value), weights_of(query, key)


def _queries_scaled(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    scaled = query * query.shape[-1] ** -0.5
    return F.scaled_dot_product_attention(scaled, key, value, scale=1.0), weights_of(query, key)


def _one_query_at_a_time(query: Tensor, key: Tensor, value: Tensor) -> Pair:
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


def _scattered(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = in_float64(query, key, value)
    return torch.stack([output, output], dim=-1)[..., 0], weights.mT.contiguous().mT


RIGHT = (
    Suspect("computes in float64 and rounds at the end", in_float64),
    Suspect("calls torch's fused kernel", by_the_fused_kernel),
    Suspect("scales the query before it meets the key", _queries_scaled),
    Suspect("answers one query at a time, in a loop", _one_query_at_a_time),
    Suspect("gives tensors that are not contiguous in memory", _scattered),
)


def _known(name: str, described: str) -> Suspect:
    """A known mistake in attention."""
    return Suspect(described, scaled_dot_product_attention.mistake(name).objects[0])


def _of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the weights as (…, keys, queries)", reporting(lambda weights: weights.mT)),
        Suspect("gives the output as (…, value_dim, queries)", giving(lambda weights, value: (weights @ value).mT)),
    ]


def _of_another_axis(probe: Probe) -> list[Suspect]:
    return [
        _known("softmax over the queries", "takes its softmax over the queries"),
        Suspect("takes one softmax over queries and keys together", with_weights(_softmax_over_everything)),
        _known("softmax forgotten", "has no softmax"),
    ]


def _softmax_over_everything(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    return scores.flatten(-2).softmax(-1).reshape(scores.shape)


def _of_no_scale(probe: Probe) -> list[Suspect]:
    return [_known("scaling forgotten", "does not scale the scores")]


def _of_other_scale(probe: Probe) -> list[Suspect]:
    return [
        _known("divided by head dim without the root", "divides the scores by head_dim, without the root"),
        _known("root of the number of keys", "divides the scores by the root of the number of keys"),
        Suspect("divides the scores by the root of value_dim", _scaled_by_value_dim),
        *map(_divided_by, (2, 3, 4, 8)),
    ]


def _scaled_by_value_dim(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return applied((query @ key.mT * value.shape[-1] ** -0.5).softmax(dim=-1), value)


def _divided_by(divisor: int) -> Suspect:
    described = f"divides the scores by {divisor}, whatever head_dim is"
    return Suspect(described, with_scores(lambda q, k: q @ k.mT / divisor))


def _of_altered_vectors(probe: Probe) -> list[Suspect]:
    return [
        Suspect("leaves the last number of each query and key out of the scores", without(lambda dim: dim - 1)),
        Suspect("leaves the first number of each query and key out of the scores", without(lambda dim: 0)),
        Suspect("divides each key by its length", with_scores(lambda q, k: scores_of(q, F.normalize(k, dim=-1)))),
    ]


def _of_other_values(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives each key the value of its neighbor", giving(lambda weights, value: weights @ value.roll(1, -2))),
        _known("values never used", "mixes the keys and never reads the values"),
        Suspect(
            "adds the mean of all values to its output",
            giving(lambda weights, value: weights @ value + value.mean(dim=-2, keepdim=True)),
        ),
    ]


def _of_a_mask(probe: Probe) -> list[Suspect]:
    return [
        _known("causal mask", "lets query number i see the keys up to number i only"),
        Suspect("hides key number i from query number i", with_scores(_without_own_place)),
    ]


def _without_own_place(query: Tensor, key: Tensor) -> Tensor:
    return scores_of(query, key).masked_fill(distance(query, key) == 0, -1e4)


def _of_foreign_weights(probe: Probe) -> list[Suspect]:
    sharper = drawn(probe, 1.2, 1.6, shown=2.4)

    def sharper_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return (sharper * scores_of(query, key)).softmax(dim=-1) @ value, weights_of(query, key)

    return [
        Suspect(
            "gives the right output, but weights that are all the same",
            reporting(lambda weights: torch.full_like(weights, 1 / weights.shape[-1])),
        ),
        Suspect(
            "gives the right output, but each query's weights in the reverse order of the keys",
            reporting(lambda weights: weights.flip(-1)),
        ),
        Suspect("gives the right weights, but an output made with sharper ones", sharper_output),
    ]


def _of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect("averages the weights over the batch", with_weights(lambda q, k: mean_image(weights_of(q, k)))),
        Suspect(
            "gives each image the values of another one in the batch",
            giving(lambda weights, value: weights @ next_image(value)),
        ),
        Suspect(
            "gives the first image its own values, but every other image those of another one",
            giving(lambda weights, value: weights @ behind_first(value, next_image(value))),
        ),
    ]


def _of_constant_output(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives every query the plain mean of the values",
            with_weights(lambda q, k: torch.full_like(scores_of(q, k), 1 / k.shape[-2])),
        ),
        Suspect(
            "asks every time with the mean of the queries",
            with_weights(lambda q, k: weights_of(q.mean(dim=-2, keepdim=True).expand_as(q), k)),
        ),
    ]


def _of_no_softmax(probe: Probe) -> list[Suspect]:
    farthest = drawn(probe, 1.5, 2.0, shown=2.0)
    return [
        Suspect("gives all the weight to the key with the largest score", with_weights(_winner_takes_all)),
        Suspect("puts a sigmoid where the exponential belongs, and divides by the sum", with_shares(torch.sigmoid)),
        Suspect(
            f"cuts scores off at {-farthest:.3g} and at {farthest:.3g}",
            with_scores(lambda q, k: scores_of(q, k).clamp(-farthest, farthest)),
        ),
    ]


def _winner_takes_all(query: Tensor, key: Tensor) -> Tensor:
    weights = weights_of(query, key)
    return (weights == weights.amax(-1, keepdim=True)).to(weights.dtype)


WRONG: dict[str, Family] = {
    "shape": _of_other_shape,
    "axis": _of_another_axis,
    "no scale": _of_no_scale,
    "other scale": _of_other_scale,
    "altered": _of_altered_vectors,
    "values": _of_other_values,
    "mask": _of_a_mask,
    "belonging": _of_foreign_weights,
    "batch": _of_mixed_images,
    "constant": _of_constant_output,
    "not a softmax": _of_no_softmax,
}


def _unnamed(attend: Candidate) -> Candidate:
    return lambda query, key, value: attend(query, key, value)


LINE_UP = LineUp("an attend", "your own attention", RIGHT, WRONG, _unnamed)
