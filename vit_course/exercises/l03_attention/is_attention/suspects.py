"""The suspects of ``is_attention``: right and wrong attention for a student's test to judge.

Every wrong one is wrong by much more than rounding on inputs of order 1, as soon as there are two images and all sizes
differ; on matrices alone some of them are right, and should be. Some are known mistakes of an earlier exercise.
``check`` asks about the first of each family; grading draws their settings, and asks about the others too.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn, family
from vit_course.exercises.l03_attention.is_attention.right_suspects import (
    MORE_RIGHT,
    RIGHT,
    behind_first,
    distance,
    giving,
    mean_image,
    next_image,
    reporting,
    scores_of,
    weights_of,
    with_scores,
    with_shares,
    with_weights,
    without,
)
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    Pair,
    applied,
    scaled_dot_product_attention,
)


def _known(name: str, described: str) -> Suspect:
    """A known mistake in attention."""
    return Suspect(described, scaled_dot_product_attention.mistake(name).objects[0])


def _make_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the weights as (…, keys, queries)", reporting(lambda weights: weights.mT)),
        Suspect("gives the output as (…, value_dim, queries)", giving(lambda weights, value: (weights @ value).mT)),
    ]


def _make_more_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the output with an axis more, of size 1", giving(lambda weights, value: (weights @ value)[None])
        ),
        Suspect(
            "gives the output as (…, queries · value_dim)", giving(lambda weights, value: (weights @ value).flatten(-2))
        ),
    ]


def _make_suspects_of_another_axis(probe: Probe) -> list[Suspect]:
    return [
        _known("softmax over the queries", "takes its softmax over the queries"),
        Suspect("takes one softmax over queries and keys together", with_weights(_softmax_over_everything)),
        _known("softmax forgotten", "has no softmax"),
    ]


def _softmax_over_everything(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    return scores.flatten(-2).softmax(-1).reshape(scores.shape)


def _make_suspects_of_other_sums(probe: Probe) -> list[Suspect]:
    shrunk = float(probe.uniform(1, low=0.7, high=0.9))
    return [
        Suspect("takes its softmax over the first axis", with_weights(lambda q, k: scores_of(q, k).softmax(dim=0))),
        Suspect(
            "divides the weights of a query by the root of the sum of their squares",
            with_weights(lambda q, k: F.normalize(scores_of(q, k).exp(), dim=-1)),
        ),
        Suspect(f"gives weights that sum to {shrunk:.2f}", with_weights(lambda q, k: shrunk * weights_of(q, k))),
    ]


def _make_suspects_of_no_scale(probe: Probe) -> list[Suspect]:
    return [_known("scaling forgotten", "does not scale the scores")]


def _make_suspects_of_other_scale(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_other_scale(probe: Probe) -> list[Suspect]:
    near = float(probe.choice((probe.uniform(1, low=0.8, high=0.92), probe.uniform(1, low=1.1, high=1.3))))
    return [
        Suspect(
            "divides the scores by the root of the number of queries",
            with_scores(lambda q, k: q @ k.mT * q.shape[-2] ** -0.5),
        ),
        Suspect(f"divides the scores, once scaled, by {near:.2f}", with_scores(lambda q, k: scores_of(q, k) / near)),
    ]


def _make_suspects_of_altered_vectors(probe: Probe) -> list[Suspect]:
    return [
        Suspect("leaves the last number of each query and key out of the scores", without(lambda dim: dim - 1)),
        Suspect("leaves the first number of each query and key out of the scores", without(lambda dim: 0)),
        Suspect("divides each key by its length", with_scores(lambda q, k: scores_of(q, F.normalize(k, dim=-1)))),
    ]


def _make_more_suspects_of_altered_vectors(probe: Probe) -> list[Suspect]:
    longer = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect("leaves a number in the middle of each key out", without(lambda dim: dim // 2)),
        Suspect("divides each query by its length", with_scores(lambda q, k: scores_of(F.normalize(q, dim=-1), k))),
        Suspect(
            f"takes the last number of each query {longer:.2f} times",
            with_scores(lambda q, k: scores_of(torch.cat((q[..., :-1], longer * q[..., -1:]), dim=-1), k)),
        ),
    ]


def _make_suspects_of_other_values(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives each key the value of its neighbor", giving(lambda weights, value: weights @ value.roll(1, -2))),
        _known("values never used", "mixes the keys and never reads the values"),
        Suspect(
            "adds the mean of all values to its output",
            giving(lambda weights, value: weights @ value + value.mean(dim=-2, keepdim=True)),
        ),
    ]


def _make_more_suspects_of_other_values(probe: Probe) -> list[Suspect]:
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives each key the value of its other neighbor",
            giving(lambda weights, value: weights @ value.roll(-1, -2)),
        ),
        Suspect(
            "adds the first value to its output", giving(lambda weights, value: weights @ value + value[..., :1, :])
        ),
        Suspect(
            "makes its output of the values without their signs", giving(lambda weights, value: weights @ value.abs())
        ),
        Suspect(
            "adds noise of one hundredth to its output", giving(lambda weights, value: _noisy(weights @ value, seed))
        ),
    ]


def _noisy(output: Tensor, seed: int) -> Tensor:
    noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed))
    return output + 0.01 * noise.to(output)


def _make_suspects_of_a_mask(probe: Probe) -> list[Suspect]:
    return [
        _known("causal mask", "lets query number i see the keys up to number i only"),
        Suspect("hides key number i from query number i", with_scores(_without_own_place)),
    ]


def _without_own_place(query: Tensor, key: Tensor) -> Tensor:
    return scores_of(query, key).masked_fill(distance(query, key) == 0, -1e4)


def _make_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    steepness = float(probe.uniform(1, low=0.3, high=0.6))
    return [
        Suspect(
            "prefers keys whose number is near that of the query",
            with_scores(lambda q, k: scores_of(q, k) - steepness * distance(q, k)),
        ),
        Suspect("never sees the last key unless there are as many keys as queries", with_scores(_without_the_last_key)),
        Suspect("is right for all queries but the last one", with_scores(_last_query_undecided)),
    ]


def _without_the_last_key(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    return scores if scores.shape[-1] == scores.shape[-2] else _filled(scores, -1, -1e4)


def _last_query_undecided(query: Tensor, key: Tensor) -> Tensor:
    return _filled(scores_of(query, key), -2, 0.0)


def _filled(scores: Tensor, axis: int, number: float) -> Tensor:
    """The scores with ``number`` at the last place of an axis."""
    last = torch.tensor([scores.shape[axis] - 1], device=scores.device)
    return scores.index_fill(axis, last, number)


def _make_suspects_of_foreign_weights(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_foreign_weights(probe: Probe) -> list[Suspect]:
    least = float(probe.uniform(1, low=0.1, high=0.16))
    return [
        Suspect("tells each query the weights of its neighbor", reporting(lambda weights: weights.roll(1, dims=-2))),
        Suspect("tells each key the weight of its neighbor", reporting(lambda weights: weights.roll(1, dims=-1))),
        Suspect(
            "tells each key the weight of its neighbor, in every image but the first",
            reporting(lambda weights: behind_first(weights, weights.roll(1, dims=-1))),
        ),
        Suspect(
            f"tells weights below {least:.2f} as zero, but used them",
            reporting(lambda weights: weights * (weights >= least)),
        ),
    ]


def _make_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives every image the weights of the first one", with_weights(lambda q, k: _first_copied(weights_of(q, k)))
        ),
        Suspect(
            "asks in every image for the keys of another one", with_weights(lambda q, k: weights_of(q, next_image(k)))
        ),
        Suspect("takes the mean of the scores over the batch", with_scores(lambda q, k: mean_image(scores_of(q, k)))),
        Suspect(
            "mixes the values of the other images in, in every image but the first",
            giving(lambda weights, value: weights @ behind_first(value, mean_image(value))),
        ),
        Suspect(
            "mixes the values of the other images in, in the first image",
            giving(lambda weights, value: weights @ behind_first(mean_image(value), value)),
        ),
    ]


def _first_copied(batch: Tensor) -> Tensor:
    return batch if batch.ndim < 3 else batch[:1].expand_as(batch)


def _make_suspects_of_constant_output(probe: Probe) -> list[Suspect]:
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


def _make_suspects_of_no_softmax(probe: Probe) -> list[Suspect]:
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


def _make_more_suspects_of_no_softmax(probe: Probe) -> list[Suspect]:
    most = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect("is a linear attention, with elu + 1 of query and key in place of the exponential", _linear),
        Suspect("reads the better half of the keys only", with_scores(_better_half)),
        Suspect(f"cuts scores off at {most:.2f}", with_scores(lambda q, k: scores_of(q, k).clamp(max=most))),
        Suspect(
            "compares query and key by their distance",
            with_scores(lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).norm(dim=-1) * q.shape[-1] ** -0.5),
        ),
    ]


def _linear(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    shares = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
    return applied(shares / shares.sum(dim=-1, keepdim=True), value)


def _better_half(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    kept = scores.topk(max(1, key.shape[-2] // 2), dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kept, float("-inf"))


WRONG: dict[str, Family] = {
    "shape": family(_make_suspects_of_other_shape, _make_more_suspects_of_other_shape),
    "axis": family(_make_suspects_of_another_axis, _make_suspects_of_other_sums),
    "no scale": _make_suspects_of_no_scale,
    "other scale": family(_make_suspects_of_other_scale, _make_more_suspects_of_other_scale),
    "altered": family(_make_suspects_of_altered_vectors, _make_more_suspects_of_altered_vectors),
    "values": family(_make_suspects_of_other_values, _make_more_suspects_of_other_values),
    "mask": family(_make_suspects_of_a_mask, _make_suspects_of_other_places),
    "belonging": family(_make_suspects_of_foreign_weights, _make_more_suspects_of_foreign_weights),
    "batch": family(_make_suspects_of_mixed_images, _make_more_suspects_of_mixed_images),
    "constant": _make_suspects_of_constant_output,
    "not a softmax": family(_make_suspects_of_no_softmax, _make_more_suspects_of_no_softmax),
}


def _unnamed(attend: Candidate) -> Candidate:
    return lambda query, key, value: attend(query, key, value)


LINE_UP = LineUp("an attend", "your own attention", RIGHT, MORE_RIGHT, WRONG, _unnamed)
