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
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, add_graded_suspects, draw_setting
from vit_course.exercises.l03_attention.is_attention.right_suspects import (
    MORE_RIGHT,
    RIGHT,
    compute_distances_of_places,
    make_attention_reporting_other_weights,
    make_attention_with_output,
    make_attention_with_scores,
    make_attention_with_shares,
    make_attention_with_weights,
    make_attention_without_key_number,
    replace_all_but_first_image,
    replace_images_by_mean,
    scores_of,
    shift_images_by_one,
    weights_of,
)
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    Pair,
    apply_weights,
    scaled_dot_product_attention,
)


def _make_suspect_of_known_mistake(name: str, described: str) -> Suspect:
    """A known mistake in attention."""
    return Suspect(described, scaled_dot_product_attention.mistake(name).objects[0])


def _make_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the weights as (…, keys, queries)",
            make_attention_reporting_other_weights(lambda weights: weights.mT),
        ),
        Suspect(
            "gives the output as (…, value_dim, queries)",
            make_attention_with_output(lambda weights, value: (weights @ value).mT),
        ),
    ]


def _make_more_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the output with an axis more, of size 1",
            make_attention_with_output(lambda weights, value: (weights @ value)[None]),
        ),
        Suspect(
            "gives the output as (…, queries · value_dim)",
            make_attention_with_output(lambda weights, value: (weights @ value).flatten(-2)),
        ),
    ]


def _make_suspects_of_another_axis(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("softmax over the queries", "takes its softmax over the queries"),
        Suspect(
            "takes one softmax over queries and keys together",
            make_attention_with_weights(_weigh_by_softmax_over_everything),
        ),
        _make_suspect_of_known_mistake("softmax forgotten", "has no softmax"),
    ]


def _weigh_by_softmax_over_everything(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    return scores.flatten(-2).softmax(-1).reshape(scores.shape)


def _make_suspects_of_other_sums(probe: Probe) -> list[Suspect]:
    shrunk = float(probe.uniform(1, low=0.7, high=0.9))
    return [
        Suspect(
            "takes its softmax over the first axis",
            make_attention_with_weights(lambda q, k: scores_of(q, k).softmax(dim=0)),
        ),
        Suspect(
            "divides the weights of a query by the root of the sum of their squares",
            make_attention_with_weights(lambda q, k: F.normalize(scores_of(q, k).exp(), dim=-1)),
        ),
        Suspect(
            f"gives weights that sum to {shrunk:.2f}",
            make_attention_with_weights(lambda q, k: shrunk * weights_of(q, k)),
        ),
    ]


def _make_suspects_of_no_scale(probe: Probe) -> list[Suspect]:
    return [_make_suspect_of_known_mistake("scaling forgotten", "does not scale the scores")]


def _make_suspects_of_other_scale(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake(
            "divided by head dim without the root", "divides the scores by head_dim, without the root"
        ),
        _make_suspect_of_known_mistake(
            "root of the number of keys", "divides the scores by the root of the number of keys"
        ),
        Suspect("divides the scores by the root of value_dim", _attend_scaled_by_value_dim),
        *map(_make_suspect_dividing_scores_by, (2, 3, 4, 8)),
    ]


def _attend_scaled_by_value_dim(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return apply_weights((query @ key.mT * value.shape[-1] ** -0.5).softmax(dim=-1), value)


def _make_suspect_dividing_scores_by(divisor: int) -> Suspect:
    described = f"divides the scores by {divisor}, whatever head_dim is"
    return Suspect(described, make_attention_with_scores(lambda q, k: q @ k.mT / divisor))


def _make_more_suspects_of_other_scale(probe: Probe) -> list[Suspect]:
    near = float(probe.choice((probe.uniform(1, low=0.8, high=0.92), probe.uniform(1, low=1.1, high=1.3))))
    return [
        Suspect(
            "divides the scores by the root of the number of queries",
            make_attention_with_scores(lambda q, k: q @ k.mT * q.shape[-2] ** -0.5),
        ),
        Suspect(
            f"divides the scores, once scaled, by {near:.2f}",
            make_attention_with_scores(lambda q, k: scores_of(q, k) / near),
        ),
    ]


def _make_suspects_of_altered_vectors(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "leaves the last number of each query and key out of the scores",
            make_attention_without_key_number(lambda dim: dim - 1),
        ),
        Suspect(
            "leaves the first number of each query and key out of the scores",
            make_attention_without_key_number(lambda dim: 0),
        ),
        Suspect(
            "divides each key by its length",
            make_attention_with_scores(lambda q, k: scores_of(q, F.normalize(k, dim=-1))),
        ),
    ]


def _make_more_suspects_of_altered_vectors(probe: Probe) -> list[Suspect]:
    longer = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect(
            "leaves a number in the middle of each key out", make_attention_without_key_number(lambda dim: dim // 2)
        ),
        Suspect(
            "divides each query by its length",
            make_attention_with_scores(lambda q, k: scores_of(F.normalize(q, dim=-1), k)),
        ),
        Suspect(
            f"takes the last number of each query {longer:.2f} times",
            make_attention_with_scores(
                lambda q, k: scores_of(torch.cat((q[..., :-1], longer * q[..., -1:]), dim=-1), k)
            ),
        ),
    ]


def _make_suspects_of_other_values(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives each key the value of its neighbor",
            make_attention_with_output(lambda weights, value: weights @ value.roll(1, -2)),
        ),
        _make_suspect_of_known_mistake("values never used", "mixes the keys and never reads the values"),
        Suspect(
            "adds the mean of all values to its output",
            make_attention_with_output(lambda weights, value: weights @ value + value.mean(dim=-2, keepdim=True)),
        ),
    ]


def _make_more_suspects_of_other_values(probe: Probe) -> list[Suspect]:
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives each key the value of its other neighbor",
            make_attention_with_output(lambda weights, value: weights @ value.roll(-1, -2)),
        ),
        Suspect(
            "adds the first value to its output",
            make_attention_with_output(lambda weights, value: weights @ value + value[..., :1, :]),
        ),
        Suspect(
            "makes its output of the values without their signs",
            make_attention_with_output(lambda weights, value: weights @ value.abs()),
        ),
        Suspect(
            "adds noise of one hundredth to its output",
            make_attention_with_output(lambda weights, value: _add_noise(weights @ value, seed)),
        ),
    ]


def _add_noise(output: Tensor, seed: int) -> Tensor:
    noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed))
    return output + 0.01 * noise.to(output)


def _make_suspects_of_a_mask(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("causal mask", "lets query number i see the keys up to number i only"),
        Suspect("hides key number i from query number i", make_attention_with_scores(_score_without_own_place)),
    ]


def _score_without_own_place(query: Tensor, key: Tensor) -> Tensor:
    return scores_of(query, key).masked_fill(compute_distances_of_places(query, key) == 0, -1e4)


def _make_suspects_of_other_places(probe: Probe) -> list[Suspect]:
    steepness = float(probe.uniform(1, low=0.3, high=0.6))
    return [
        Suspect(
            "prefers keys whose number is near that of the query",
            make_attention_with_scores(lambda q, k: scores_of(q, k) - steepness * compute_distances_of_places(q, k)),
        ),
        Suspect(
            "never sees the last key unless there are as many keys as queries",
            make_attention_with_scores(_score_without_last_key),
        ),
        Suspect(
            "is right for all queries but the last one", make_attention_with_scores(_score_with_undecided_last_query)
        ),
    ]


def _score_without_last_key(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    return scores if scores.shape[-1] == scores.shape[-2] else _fill_last_place(scores, -1, -1e4)


def _score_with_undecided_last_query(query: Tensor, key: Tensor) -> Tensor:
    return _fill_last_place(scores_of(query, key), -2, 0.0)


def _fill_last_place(scores: Tensor, axis: int, number: float) -> Tensor:
    """The scores with ``number`` at the last place of an axis."""
    last = torch.tensor([scores.shape[axis] - 1], device=scores.device)
    return scores.index_fill(axis, last, number)


def _make_suspects_of_foreign_weights(probe: Probe) -> list[Suspect]:
    sharper = draw_setting(probe, 1.2, 1.6, shown=2.4)

    def attend_with_sharper_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return (sharper * scores_of(query, key)).softmax(dim=-1) @ value, weights_of(query, key)

    return [
        Suspect(
            "gives the right output, but weights that are all the same",
            make_attention_reporting_other_weights(lambda weights: torch.full_like(weights, 1 / weights.shape[-1])),
        ),
        Suspect(
            "gives the right output, but each query's weights in the reverse order of the keys",
            make_attention_reporting_other_weights(lambda weights: weights.flip(-1)),
        ),
        Suspect("gives the right weights, but an output made with sharper ones", attend_with_sharper_output),
    ]


def _make_more_suspects_of_foreign_weights(probe: Probe) -> list[Suspect]:
    least = float(probe.uniform(1, low=0.1, high=0.16))
    return [
        Suspect(
            "tells each query the weights of its neighbor",
            make_attention_reporting_other_weights(lambda weights: weights.roll(1, dims=-2)),
        ),
        Suspect(
            "tells each key the weight of its neighbor",
            make_attention_reporting_other_weights(lambda weights: weights.roll(1, dims=-1)),
        ),
        Suspect(
            "tells each key the weight of its neighbor, in every image but the first",
            make_attention_reporting_other_weights(
                lambda weights: replace_all_but_first_image(weights, weights.roll(1, dims=-1))
            ),
        ),
        Suspect(
            f"tells weights below {least:.2f} as zero, but used them",
            make_attention_reporting_other_weights(lambda weights: weights * (weights >= least)),
        ),
    ]


def _make_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "averages the weights over the batch",
            make_attention_with_weights(lambda q, k: replace_images_by_mean(weights_of(q, k))),
        ),
        Suspect(
            "gives each image the values of another one in the batch",
            make_attention_with_output(lambda weights, value: weights @ shift_images_by_one(value)),
        ),
        Suspect(
            "gives the first image its own values, but every other image those of another one",
            make_attention_with_output(
                lambda weights, value: weights @ replace_all_but_first_image(value, shift_images_by_one(value))
            ),
        ),
    ]


def _make_more_suspects_of_mixed_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives every image the weights of the first one",
            make_attention_with_weights(lambda q, k: _replace_images_by_first(weights_of(q, k))),
        ),
        Suspect(
            "asks in every image for the keys of another one",
            make_attention_with_weights(lambda q, k: weights_of(q, shift_images_by_one(k))),
        ),
        Suspect(
            "takes the mean of the scores over the batch",
            make_attention_with_scores(lambda q, k: replace_images_by_mean(scores_of(q, k))),
        ),
        Suspect(
            "mixes the values of the other images in, in every image but the first",
            make_attention_with_output(
                lambda weights, value: weights @ replace_all_but_first_image(value, replace_images_by_mean(value))
            ),
        ),
        Suspect(
            "mixes the values of the other images in, in the first image",
            make_attention_with_output(
                lambda weights, value: weights @ replace_all_but_first_image(replace_images_by_mean(value), value)
            ),
        ),
    ]


def _replace_images_by_first(batch: Tensor) -> Tensor:
    return batch if batch.ndim < 3 else batch[:1].expand_as(batch)


def _make_suspects_of_constant_output(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives every query the plain mean of the values",
            make_attention_with_weights(lambda q, k: torch.full_like(scores_of(q, k), 1 / k.shape[-2])),
        ),
        Suspect(
            "asks every time with the mean of the queries",
            make_attention_with_weights(lambda q, k: weights_of(q.mean(dim=-2, keepdim=True).expand_as(q), k)),
        ),
    ]


def _make_suspects_of_no_softmax(probe: Probe) -> list[Suspect]:
    farthest = draw_setting(probe, 1.5, 2.0, shown=2.0)
    return [
        Suspect(
            "gives all the weight to the key with the largest score",
            make_attention_with_weights(_weigh_only_largest_score),
        ),
        Suspect(
            "puts a sigmoid where the exponential belongs, and divides by the sum",
            make_attention_with_shares(torch.sigmoid),
        ),
        Suspect(
            f"cuts scores off at {-farthest:.3g} and at {farthest:.3g}",
            make_attention_with_scores(lambda q, k: scores_of(q, k).clamp(-farthest, farthest)),
        ),
    ]


def _weigh_only_largest_score(query: Tensor, key: Tensor) -> Tensor:
    weights = weights_of(query, key)
    return (weights == weights.amax(-1, keepdim=True)).to(weights.dtype)


def _make_more_suspects_of_no_softmax(probe: Probe) -> list[Suspect]:
    most = float(probe.uniform(1, low=0.4, high=0.8))
    return [
        Suspect(
            "is a linear attention, with elu + 1 of query and key in place of the exponential",
            _attend_by_linear_attention,
        ),
        Suspect("reads the better half of the keys only", make_attention_with_scores(_score_only_better_half)),
        Suspect(
            f"cuts scores off at {most:.2f}", make_attention_with_scores(lambda q, k: scores_of(q, k).clamp(max=most))
        ),
        Suspect(
            "compares query and key by their distance",
            make_attention_with_scores(
                lambda q, k: -(q.unsqueeze(-2) - k.unsqueeze(-3)).norm(dim=-1) * q.shape[-1] ** -0.5
            ),
        ),
    ]


def _attend_by_linear_attention(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    shares = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
    return apply_weights(shares / shares.sum(dim=-1, keepdim=True), value)


def _score_only_better_half(query: Tensor, key: Tensor) -> Tensor:
    scores = scores_of(query, key)
    kept = scores.topk(max(1, key.shape[-2] // 2), dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kept, float("-inf"))


WRONG: dict[str, Family] = {
    "shape": add_graded_suspects(_make_suspects_of_other_shape, _make_more_suspects_of_other_shape),
    "axis": add_graded_suspects(_make_suspects_of_another_axis, _make_suspects_of_other_sums),
    "no scale": _make_suspects_of_no_scale,
    "other scale": add_graded_suspects(_make_suspects_of_other_scale, _make_more_suspects_of_other_scale),
    "altered": add_graded_suspects(_make_suspects_of_altered_vectors, _make_more_suspects_of_altered_vectors),
    "values": add_graded_suspects(_make_suspects_of_other_values, _make_more_suspects_of_other_values),
    "mask": add_graded_suspects(_make_suspects_of_a_mask, _make_suspects_of_other_places),
    "belonging": add_graded_suspects(_make_suspects_of_foreign_weights, _make_more_suspects_of_foreign_weights),
    "batch": add_graded_suspects(_make_suspects_of_mixed_images, _make_more_suspects_of_mixed_images),
    "constant": _make_suspects_of_constant_output,
    "not a softmax": add_graded_suspects(_make_suspects_of_no_softmax, _make_more_suspects_of_no_softmax),
}


def _hide_name(attend: Candidate) -> Candidate:
    return lambda query, key, value: attend(query, key, value)


LINE_UP = LineUp("an attend", "your own attention", RIGHT, MORE_RIGHT, WRONG, _hide_name)
