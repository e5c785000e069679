"""Right and wrong attention for the hidden checks of ``is_attention``, with settings that are drawn.

The right ones are computed in ways of which a student may not have thought. None stands in the public checks as it
is here. Every wrong one is wrong by much more than rounding on inputs of order 1, as soon as there are two images
and the numbers of queries and keys differ; on matrices alone some of them are right, and should be.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises import impostors
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import Pair, applied

Attend = Callable[[Tensor, Tensor, Tensor], Pair]


class Suspect(impostors.Suspect):
    """An ``attend`` for a student's test to judge."""

    @property
    def attend(self) -> Attend:
        """The function, by the name that the hidden checks of earlier class folders ask for."""
        return self.function


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


def _keys_scaled(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return applied((query @ (key * key.shape[-1] ** -0.5).mT).softmax(dim=-1), value)


def _keys_shifted(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return applied(weights_of(query, key - key[..., -1:, :]), value)


def _fused(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return F.scaled_dot_product_attention(query, key, value), weights_of(query, key)


def _by_einsum(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _powers_of_two(scores: Tensor) -> Tensor:
    return torch.exp2((scores - scores.amax(dim=-1, keepdim=True)) / math.log(2))


def _in_portions(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    middle = key.shape[-2] // 2
    parts = [scores_of(query, part) for part in (key[..., :middle, :], key[..., middle:, :]) if part.shape[-2]]
    highest = torch.stack([part.amax(dim=-1, keepdim=True) for part in parts]).amax(dim=0)
    shares = [(part - highest).exp() for part in parts]
    total = torch.stack([part.sum(dim=-1, keepdim=True) for part in shares]).sum(dim=0)
    sizes = [part.shape[-1] for part in parts]
    mixed = [share @ part for share, part in zip(shares, value.split(sizes, dim=-2), strict=True)]
    return torch.stack(mixed).sum(dim=0) / total, torch.cat(shares, dim=-1) / total


def _backwards(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = applied(weights_of(query.flip(-2), key), value)
    return output.flip(-2), weights.flip(-2)


def _scattered(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = applied(weights_of(query, key), value)
    return torch.stack([output, output], dim=-1)[..., 0], weights.mT.contiguous().mT


RIGHT = (
    Suspect("is written with einsum", _by_einsum),
    Suspect("scales the keys beforehand", _keys_scaled),
    Suspect("takes its powers to the base 2", with_shares(_powers_of_two)),
    Suspect(
        "takes the exponentials of a log_softmax", with_weights(lambda q, k: scores_of(q, k).log_softmax(-1).exp())
    ),
    Suspect("reads the keys in two portions, as FlashAttention does", _in_portions),
    Suspect("takes the last key from all keys, which changes no softmax", _keys_shifted),
    Suspect("answers the queries backwards and turns the answer round", _backwards),
    Suspect("gives views that are not contiguous in memory", _scattered),
    Suspect("calls torch's fused kernel", _fused),
)


def _of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the weights as (…, keys, queries)", reporting(lambda weights: weights.mT)),
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
        *map(_divided_by, (2, 3, 4, 8)),
    ]


def _divided_by(divisor: int) -> Suspect:
    described = f"divides the scores by {divisor}, whatever head_dim is"
    return Suspect(described, with_scores(lambda q, k: q @ k.mT / divisor))


def _of_altered_vectors(probe: Probe) -> list[Suspect]:
    longer = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect("leaves the first number of each key out of the scores", with_scores(_without(lambda dim: 0))),
        Suspect("leaves the last number of each key out of the scores", with_scores(_without(lambda dim: dim - 1))),
        Suspect("leaves a number in the middle of each key out", with_scores(_without(lambda dim: dim // 2))),
        Suspect("divides each key by its length", with_scores(lambda q, k: scores_of(q, F.normalize(k, dim=-1)))),
        Suspect("divides each query by its length", with_scores(lambda q, k: scores_of(F.normalize(q, dim=-1), k))),
        Suspect(
            f"takes the last number of each query {longer:.2f} times",
            with_scores(lambda q, k: scores_of(torch.cat((q[..., :-1], longer * q[..., -1:]), dim=-1), k)),
        ),
    ]


def _without(place: Callable[[int], int]) -> Callable[[Tensor, Tensor], Tensor]:
    """The scaled scores, with one number of each key taken for 0."""

    def scores(query: Tensor, key: Tensor) -> Tensor:
        kept = torch.arange(key.shape[-1]) != place(key.shape[-1])
        return scores_of(query, key * kept)

    return scores


def _of_other_values(probe: Probe) -> list[Suspect]:
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives each key the value of its neighbor",
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
        Suspect("tells each query the weights of its neighbor", reporting(lambda weights: weights.roll(1, dims=-2))),
        Suspect("tells each key the weight of its neighbor", reporting(lambda weights: weights.roll(1, dims=-1))),
        Suspect(
            "tells each key the weight of its neighbor, in every image but the first",
            reporting(lambda weights: _behind_first(weights, weights.roll(1, dims=-1))),
        ),
        Suspect(
            "tells even weights, whatever it used",
            reporting(lambda weights: torch.full_like(weights, 1 / weights.shape[-1])),
        ),
        Suspect(
            f"tells weights below {least:.2f} as zero, but used them",
            reporting(lambda weights: weights * (weights >= least)),
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
    farthest = float(probe.uniform(1, low=1.5, high=2.0))
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
            f"cuts scores off at {-farthest:.2f} and at {farthest:.2f}",
            with_scores(lambda q, k: scores_of(q, k).clamp(-farthest, farthest)),
        ),
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
    "altered": _of_altered_vectors,
    "values": _of_other_values,
    "places": _of_places,
    "belonging": _of_foreign_weights,
    "images": _of_mixed_images,
    "softmax": _of_no_softmax,
}
