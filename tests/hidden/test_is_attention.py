"""Hidden checks of is_attention: the student's test, asked about right and wrong attention.

Beside those that ``check`` asks about, with settings drawn, there are others here that no student sees beforehand.
"""

import math

import pytest
import torch
import torch.nn.functional as F

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.impostors import Suspect
from vit_course.exercises.l03_attention.is_attention import suspects
from vit_course.exercises.l03_attention.is_attention.suspects import (
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
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import applied


def _by_einsum(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _powers_of_two(scores):
    return torch.exp2((scores - scores.amax(dim=-1, keepdim=True)) / math.log(2))


def _in_portions(query, key, value):
    middle = key.shape[-2] // 2
    parts = [scores_of(query, part) for part in (key[..., :middle, :], key[..., middle:, :]) if part.shape[-2]]
    highest = torch.stack([part.amax(dim=-1, keepdim=True) for part in parts]).amax(dim=0)
    shares = [(part - highest).exp() for part in parts]
    total = torch.stack([part.sum(dim=-1, keepdim=True) for part in shares]).sum(dim=0)
    sizes = [part.shape[-1] for part in parts]
    mixed = [share @ part for share, part in zip(shares, value.split(sizes, dim=-2), strict=True)]
    return torch.stack(mixed).sum(dim=0) / total, torch.cat(shares, dim=-1) / total


def _backwards(query, key, value):
    output, weights = applied(weights_of(query.flip(-2), key), value)
    return output.flip(-2), weights.flip(-2)


RIGHT = (
    Suspect("is written with einsum", _by_einsum),
    Suspect("scales the keys beforehand", with_weights(lambda q, k: (q @ (k * k.shape[-1] ** -0.5).mT).softmax(-1))),
    Suspect("takes its powers to the base 2", with_shares(_powers_of_two)),
    Suspect(
        "takes the exponentials of a log_softmax", with_weights(lambda q, k: scores_of(q, k).log_softmax(-1).exp())
    ),
    Suspect("reads the keys in two portions, as FlashAttention does", _in_portions),
    Suspect(
        "takes the last key from all keys, which changes no softmax",
        with_weights(lambda q, k: weights_of(q, k - k[..., -1:, :])),
    ),
    Suspect("answers the queries backwards and turns the answer round", _backwards),
)


def _of_other_shape(probe):
    return [
        Suspect(
            "gives the output with an axis more, of size 1", giving(lambda weights, value: (weights @ value)[None])
        ),
        Suspect(
            "gives the output as (…, queries · value_dim)", giving(lambda weights, value: (weights @ value).flatten(-2))
        ),
    ]


def _of_other_sums(probe):
    shrunk = float(probe.uniform(1, low=0.7, high=0.9))
    return [
        Suspect("takes its softmax over the first axis", with_weights(lambda q, k: scores_of(q, k).softmax(dim=0))),
        Suspect(
            "divides the weights of a query by the root of the sum of their squares",
            with_weights(lambda q, k: F.normalize(scores_of(q, k).exp(), dim=-1)),
        ),
        Suspect(f"gives weights that sum to {shrunk:.2f}", with_weights(lambda q, k: shrunk * weights_of(q, k))),
    ]


def _of_other_scale(probe):
    near = float(probe.choice((probe.uniform(1, low=0.8, high=0.92), probe.uniform(1, low=1.1, high=1.3))))
    return [
        Suspect(
            "divides the scores by the root of the number of queries",
            with_scores(lambda q, k: q @ k.mT * q.shape[-2] ** -0.5),
        ),
        Suspect(f"divides the scores, once scaled, by {near:.2f}", with_scores(lambda q, k: scores_of(q, k) / near)),
    ]


def _of_altered_vectors(probe):
    longer = float(probe.uniform(1, low=1.2, high=1.6))
    return [
        Suspect("leaves a number in the middle of each key out", without(lambda dim: dim // 2)),
        Suspect("divides each query by its length", with_scores(lambda q, k: scores_of(F.normalize(q, dim=-1), k))),
        Suspect(
            f"takes the last number of each query {longer:.2f} times",
            with_scores(lambda q, k: scores_of(torch.cat((q[..., :-1], longer * q[..., -1:]), dim=-1), k)),
        ),
    ]


def _of_other_values(probe):
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


def _noisy(output, seed):
    noise = torch.randn(output.shape, generator=torch.Generator().manual_seed(seed))
    return output + 0.01 * noise.to(output)


def _of_places(probe):
    steepness = float(probe.uniform(1, low=0.3, high=0.6))
    return [
        Suspect(
            "prefers keys whose number is near that of the query",
            with_scores(lambda q, k: scores_of(q, k) - steepness * distance(q, k)),
        ),
        Suspect("never sees the last key unless there are as many keys as queries", with_scores(_without_the_last_key)),
        Suspect("is right for all queries but the last one", with_scores(_last_query_undecided)),
    ]


def _without_the_last_key(query, key):
    scores = scores_of(query, key)
    return scores if scores.shape[-1] == scores.shape[-2] else _filled(scores, -1, -1e4)


def _last_query_undecided(query, key):
    return _filled(scores_of(query, key), -2, 0.0)


def _filled(scores, axis, number):
    """The scores with ``number`` at the last place of an axis."""
    last = torch.tensor([scores.shape[axis] - 1], device=scores.device)
    return scores.index_fill(axis, last, number)


def _of_foreign_weights(probe):
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


def _of_mixed_images(probe):
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


def _first_copied(batch):
    return batch if batch.ndim < 3 else batch[:1].expand_as(batch)


def _of_no_softmax(probe):
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


def _linear(query, key, value):
    shares = (F.elu(query) + 1) @ (F.elu(key) + 1).mT
    return applied(shares / shares.sum(dim=-1, keepdim=True), value)


def _better_half(query, key):
    scores = scores_of(query, key)
    kept = scores.topk(max(1, key.shape[-2] // 2), dim=-1).values[..., -1:]
    return scores.masked_fill(scores < kept, float("-inf"))


LINE_UP = suspects.LINE_UP.joined_by(
    RIGHT,
    {
        "shape": (("shape",), _of_other_shape),
        "sums": (("axis",), _of_other_sums),
        "scale": (("no scale", "other scale"), _of_other_scale),
        "altered": (("altered",), _of_altered_vectors),
        "values": (("values",), _of_other_values),
        "places": (("mask",), _of_places),
        "belonging": (("belonging",), _of_foreign_weights),
        "images": (("batch",), _of_mixed_images),
        "softmax": (("constant", "not a softmax"), _of_no_softmax),
    },
)


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_wrong_shapes(student, probe):
    """It catches output or weights of a wrong shape, and lets right attention pass."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_rows_that_do_not_sum_to_one(student, probe):
    """It catches weights of a query that do not sum to one, and lets right attention pass."""
    look = "Which sums of the weights do you know without computing any attention?"
    LINE_UP.expect_distinguished(student, probe, "sums", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_another_scale(student, probe):
    """It catches scores that are not divided by the root of head_dim, and lets right attention pass."""
    look = "Which example can you work out with a pencil, and are two of its sizes equal by accident?"
    LINE_UP.expect_distinguished(student, probe, "scale", look)


@pytest.mark.exercise("is_attention", points=0.5)
def test_it_catches_altered_queries_and_keys(student, probe):
    """It catches scores that leave out a number of each key, or change its length, and lets right attention pass."""
    look = "Which numbers could be missing from the scores of your pencil example, and nothing would change?"
    LINE_UP.expect_distinguished(student, probe, "altered", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_an_output_of_other_values(student, probe):
    """It catches an output that is no mean of the values under the weights, and lets right attention pass."""
    look = "When you know weights and values, what must the output be, and how exactly?"
    LINE_UP.expect_distinguished(student, probe, "values", look)


@pytest.mark.exercise("is_attention", points=1.25)
def test_it_catches_places_that_matter(student, probe):
    """It catches attention that treats tokens by their place, and lets right attention pass."""
    look = "What happens to right attention when keys and values are shuffled alike, or the queries are?"
    LINE_UP.expect_distinguished(student, probe, "places", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_weights_of_another_output(student, probe):
    """It catches weights and an output that do not belong together, and lets right attention pass."""
    look = "Does your test look at output and weights apart, or also at the two together?"
    LINE_UP.expect_distinguished(student, probe, "belonging", look)


@pytest.mark.exercise("is_attention", points=0.75)
def test_it_catches_images_that_get_mixed(student, probe):
    """It catches images of a batch that get mixed, and lets right attention pass."""
    look = "Does the answer for one image change when it is alone?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_attention", points=1)
def test_it_catches_what_is_no_softmax(student, probe):
    """It catches weights that sum to one but are no softmax of the scores, and lets right attention pass."""
    look = "Which numbers, worked out by hand, would only a softmax of dot products give?"
    LINE_UP.expect_distinguished(student, probe, "softmax", look)


@pytest.mark.exercise("is_attention", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right attention passes."""
    look = "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)
    expect_example(student)
