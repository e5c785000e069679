"""Wrong attention for the hidden checks of ``is_attention``, in families, with settings that are drawn.

None of them stands in the public checks as it is here. Every one is wrong by much more than rounding on inputs of
order 1, as soon as there are two images and the numbers of queries and keys differ; on matrices alone some of them
are right, and should be.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.judging.attends import (
    Pair,
    Suspect,
    applied,
    giving,
    scores_of,
    telling,
    weights_of,
    with_scores,
    with_shares,
    with_weights,
)


def _of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the weights as (…, keys, queries)", telling(lambda weights: weights.mT)),
        Suspect("gives the output as (…, value_dim, queries)", giving(lambda weights, value: (weights @ value).mT)),
        Suspect(
            "gives the output with an axis more, of size 1", giving(lambda weights, value: (weights @ value)[None])
        ),
        Suspect(
            "gives the output as (…, queries · value_dim)", giving(lambda weights, value: (weights @ value).flatten(-2))
        ),
    ]


def _of_other_sums(probe: Probe) -> list[Suspect]:
    shrunk = float(probe.uniform(1, low=0.7, high=0.9))
    return [
        Suspect("takes its softmax over the queries", with_weights(lambda q, k: scores_of(q, k).softmax(dim=-2))),
        Suspect("takes its softmax over the first axis", with_weights(lambda q, k: scores_of(q, k).softmax(dim=0))),
        Suspect(
            "divides the weights of a query by the root of the sum of their squares",
            with_weights(lambda q, k: F.normalize(scores_of(q, k).exp(), dim=-1)),
        ),
        Suspect(f"gives weights that sum to {shrunk:.2f}", with_weights(lambda q, k: shrunk * weights_of(q, k))),
    ]


def _of_other_scale(probe: Probe) -> list[Suspect]:
    near = float(probe.choice((probe.uniform(1, low=0.8, high=0.92), probe.uniform(1, low=1.1, high=1.3))))
    return [
        Suspect("does not scale the scores", with_scores(lambda q, k: q @ k.mT)),
        Suspect("divides the scores by head_dim, without the root", with_scores(lambda q, k: q @ k.mT / q.shape[-1])),
        Suspect(
            "divides the scores by the root of the number of keys",
            with_scores(lambda q, k: q @ k.mT * k.shape[-2] ** -0.5),
        ),
        Suspect(
            "divides the scores by the root of the number of queries",
            with_scores(lambda q, k: q @ k.mT * q.shape[-2] ** -0.5),
        ),
        Suspect(f"divides the scores, once scaled, by {near:.2f}", with_scores(lambda q, k: scores_of(q, k) / near)),
    ]


def _of_other_values(probe: Probe) -> list[Suspect]:
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives each key the value of its neighbour",
            giving(lambda weights, value: weights @ value.roll(-1, dims=-2)),
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


def _of_places(probe: Probe) -> list[Suspect]:
    steepness = float(probe.uniform(1, low=0.3, high=0.6))
    return [
        Suspect("lets query number i see the keys up to number i only", with_scores(_causal)),
        Suspect("hides key number i from query number i", with_scores(_without_own_place)),
        Suspect(
            "prefers keys whose number is near that of the query",
            with_scores(lambda q, k: scores_of(q, k) - steepness * _distance(q, k)),
        ),
        Suspect("never sees the last key unless there are as many keys as queries", with_scores(_without_the_last_key)),
        Suspect("is right for all queries but the last one", with_scores(_last_query_undecided)),
    ]


def _distance(query: Tensor, key: Tensor) -> Tensor:
    """How far apart the numbers of query and key are, (queries, keys)."""
    return (torch.arange(query.shape[-2])[:, None] - torch.arange(key.shape[-2])).abs()


def _causal(query: Tensor, key: Tensor) -> Tensor:
    later = torch.ones(query.shape[-2], key.shape[-2]).triu(1).bool()
    return scores_of(query, key).masked_fill(later, float("-inf"))


def _without_own_place(query: Tensor, key: Tensor) -> Tensor:
    return scores_of(query, key).masked_fill(_distance(query, key) == 0, -1e4)


def _without_the_last_key(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    hidden = torch.arange(key.shape[-2]) == key.shape[-2] - 1
    return scores if scores.shape[-1] == scores.shape[-2] else scores.masked_fill(hidden, -1e4)


def _last_query_undecided(query: Tensor, key: Tensor) -> Tensor:
    last = torch.arange(query.shape[-2])[:, None] == query.shape[-2] - 1
    return scores_of(query, key).masked_fill(last, 0.0)


def _of_foreign_weights(probe: Probe) -> list[Suspect]:
    least = float(probe.uniform(1, low=0.1, high=0.16))
    sharper = float(probe.uniform(1, low=1.2, high=1.6))

    def sharper_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return (sharper * scores_of(query, key)).softmax(dim=-1) @ value, weights_of(query, key)

    return [
        Suspect("tells each query the weights of its neighbour", telling(lambda weights: weights.roll(1, dims=-2))),
        Suspect("tells each key the weight of its neighbour", telling(lambda weights: weights.roll(1, dims=-1))),
        Suspect(
            "tells each key the weight of its neighbour, in every image but the first",
            telling(lambda weights: _behind_first(weights, weights.roll(1, dims=-1))),
        ),
        Suspect(
            "tells even weights, whatever it used",
            telling(lambda weights: torch.full_like(weights, 1 / weights.shape[-1])),
        ),
        Suspect(
            f"tells weights below {least:.2f} as zero, but used them",
            telling(lambda weights: weights * (weights >= least)),
        ),
        Suspect("has the right weights, but makes its output with sharper ones", sharper_output),
    ]


def _of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives every image the weights of the first one", with_weights(lambda q, k: _first_copied(weights_of(q, k)))
        ),
        Suspect(
            "asks in every image for the keys of another one", lambda q, k, v: applied(weights_of(q, _next_image(k)), v)
        ),
        Suspect("takes the mean of the scores over the batch", with_scores(lambda q, k: _mean_image(scores_of(q, k)))),
        Suspect(
            "gives every image the values of another one", giving(lambda weights, value: weights @ _next_image(value))
        ),
        Suspect(
            "mixes the values of the other images in, in every image but the first",
            giving(lambda weights, value: weights @ _behind_first(value, _mean_image(value))),
        ),
        Suspect(
            "mixes the values of the other images in, in the first image",
            giving(lambda weights, value: weights @ _behind_first(_mean_image(value), value)),
        ),
    ]


def _first_copied(batch: Tensor) -> Tensor:
    return batch if batch.ndim < 3 else batch[:1].expand_as(batch)


def _behind_first(first: Tensor, others: Tensor) -> Tensor:
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def _mean_image(batch: Tensor) -> Tensor:
    return batch if batch.ndim < 3 else batch.mean(dim=0, keepdim=True).expand_as(batch)


def _next_image(batch: Tensor) -> Tensor:
    return batch if batch.ndim < 3 else batch.roll(1, dims=0)


def _of_no_softmax(probe: Probe) -> list[Suspect]:
    most = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect(
            "gives every key the same weight",
            with_weights(lambda q, k: torch.full_like(scores_of(q, k), 1 / k.shape[-2])),
        ),
        Suspect("puts a sigmoid where the exponential belongs", with_shares(torch.sigmoid)),
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


WRONG: dict[str, Callable[[Probe], list[Suspect]]] = {
    "shape": _of_other_shape,
    "sums": _of_other_sums,
    "scale": _of_other_scale,
    "values": _of_other_values,
    "places": _of_places,
    "belonging": _of_foreign_weights,
    "images": _of_mixed_images,
    "softmax": _of_no_softmax,
}
