"""Hidden checks of is_layer_norm: the student's test, asked about right and wrong layer normalization.

Beside those that ``check`` asks about, with settings drawn, there are others here that no student sees beforehand.
"""

import math

import pytest
import torch

from exercise_kit.engine.exercise import expect_example
from vit_course.exercises.impostors import Suspect
from vit_course.exercises.l04_block.is_layer_norm import suspects
from vit_course.exercises.l04_block.is_layer_norm.suspects import (
    changed,
    divided_by,
    ends,
    leaving,
    mean_of,
    normalized,
    over,
    scaled,
    variance_of,
    with_mean,
    with_parameters,
    with_root,
    with_statistics,
    with_variance,
    with_z,
)


def _by_group_norm(x, weight, bias, eps):
    rows = torch.group_norm(x.reshape(-1, x.shape[-1]), 1, eps=float(eps))
    return scaled(rows.reshape(x.shape), x, weight, bias)


def _by_standard_deviation(x, eps):
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (deviation.square() + eps) ** -0.5


def _of_two_parts(x):
    parts = [part for part in x.tensor_split(2, dim=-1) if part.shape[-1]]
    found = [part.shape[-1] * (variance_of(part) + (mean_of(part) - mean_of(x)).square()) for part in parts]
    return torch.stack(found).sum(dim=0) / x.shape[-1]


def _by_products(x, eps):
    shares = torch.full_like(x[..., :1], 1 / x.shape[-1]).expand_as(x)
    centered = x - torch.linalg.vecdot(x, shares).unsqueeze(-1)
    return centered / (torch.linalg.vecdot(centered, centered * shares).unsqueeze(-1) + eps).sqrt()


def _as_a_unit_vector(x, eps):
    centered, size = x - mean_of(x), x.shape[-1]
    length = torch.hypot(centered.norm(dim=-1, keepdim=True), torch.full_like(x[..., :1], math.sqrt(size * eps)))
    return math.sqrt(size) * centered / length


def _backwards(x, eps):
    return normalized(x.reshape(-1, x.shape[-1]).flip(0), eps).flip(0).reshape(x.shape)


RIGHT = (
    Suspect("calls torch's group norm with one group", _by_group_norm),
    Suspect("squares torch's std, taken with correction=0, and adds eps", with_z(_by_standard_deviation)),
    Suspect("takes the variances of two halves and how far apart these are", with_variance(_of_two_parts)),
    Suspect("takes its means as dot products with a vector of equal shares", with_z(_by_products)),
    Suspect(
        "takes the first number from all numbers of a token before it begins",
        with_z(lambda x, eps: normalized(x - x[..., :1], eps)),
    ),
    Suspect("makes a vector of length one and multiplies it by the root of embed_dim", with_z(_as_a_unit_vector)),
    Suspect("normalizes the tokens in the reverse order and turns the answer round", with_z(_backwards)),
    Suspect(
        "divides x and the root of eps by two first, which changes nothing",
        with_z(lambda x, eps: normalized(x / 2, eps / 4)),
    ),
)


def _of_other_shape(probe):
    return [Suspect("gives each number an axis of its own", changed(lambda result: result.unsqueeze(-1)))]


def _of_other_tokens(probe):
    share = float(probe.uniform(1, low=0.2, high=0.4))
    return [
        Suspect("takes the mean and the variance of the token before", with_statistics(_before)),
        Suspect("gives each token the result of the token before", changed(_before)),
        Suspect(
            f"mixes {share:.2f} of the image's mean and variance into those of a token",
            with_statistics(lambda each: (1 - share) * each + share * _mean_over_tokens(each)),
        ),
        Suspect("is right for the first token of an image only", with_statistics(_right_at(0))),
        Suspect("is right for the last token of an image only", with_statistics(_right_at(-1))),
    ]


def _before(each):
    return each if each.ndim < 2 else each.roll(1, dims=-2)


def _mean_over_tokens(each):
    return each if each.ndim < 2 else each.mean(dim=-2, keepdim=True)


def _right_at(place):
    """Statistics that are a token's own at this place of an image, and elsewhere those of the token before."""

    def statistics(each):
        if each.ndim < 2:
            return each
        is_there = torch.arange(each.shape[-2], device=each.device) == place % each.shape[-2]
        return torch.where(is_there[:, None], each, _before(each))

    return statistics


def _of_other_images(probe):
    return [
        Suspect("takes the mean and the variance from the next image", with_statistics(_of_the_next_image)),
        Suspect(
            "takes the mean and the variance from the next image, for all images but the first",
            with_statistics(lambda each: _behind_first(each, _of_the_next_image(each))),
        ),
        Suspect(
            "takes the mean and the variance from the next image, for the first image",
            with_statistics(lambda each: _behind_first(_of_the_next_image(each), each)),
        ),
    ]


def _of_the_next_image(each):
    return each if each.ndim < 3 else each.roll(-1, dims=0)


def _behind_first(first, others):
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def _of_counted_axes(probe):
    return [
        Suspect("normalizes along axis 2 where there is one", over(lambda axes: (2,) if axes > 2 else (-1,))),
        Suspect(
            "takes one mean and one variance for all axes behind the first", over(lambda axes: tuple(range(1, axes)))
        ),
    ]


def _of_other_divisors(probe):
    return [
        Suspect("divides the sum of the squares by embed_dim + 1", divided_by(lambda x: x.shape[-1] + 1)),
        Suspect("sums the squares and does not divide", divided_by(lambda x: 1)),
        Suspect("divides the sum of the squares by the size of the first axis", divided_by(lambda x: x.shape[0])),
    ]


def _of_other_eps(probe):
    own = 10.0 ** -float(probe.uniform(1, low=1, high=6))
    times = float(probe.choice((probe.uniform(1, low=0.5, high=0.8), probe.uniform(1, low=1.25, high=2))))
    return [
        Suspect("adds the square of eps to the variance", with_root(lambda variance, eps: (variance + eps**2).sqrt())),
        Suspect(
            "adds eps to the variance and to the root", with_root(lambda variance, eps: (variance + eps).sqrt() + eps)
        ),
        Suspect(f"has an eps of its own, {own:.2g}", with_root(lambda variance, eps: (variance + own).sqrt())),
        Suspect(f"adds {times:.2f} times eps", with_root(lambda variance, eps: (variance + times * eps).sqrt())),
    ]


def _of_other_means(probe):
    share = float(probe.uniform(1, low=0.6, high=0.9))
    return [
        Suspect(f"subtracts {share:.2f} times the mean", with_mean(lambda x: share * mean_of(x))),
        Suspect(
            "leaves the last number out of the mean", with_mean(lambda x: mean_of(x[..., : max(1, x.shape[-1] - 1)]))
        ),
    ]


def _of_look_alikes(probe):
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives the normalized numbers of a token in the reverse order",
            with_z(lambda x, eps: normalized(x, eps).flip(-1)),
        ),
        Suspect("subtracts the median in place of the mean", with_mean(lambda x: x.median(-1, keepdim=True).values)),
        Suspect("takes half the range for the standard deviation", with_variance(lambda x: ends(x)[1].square())),
        Suspect("adds noise of one hundredth to its result", changed(lambda result: _noisy(result, seed))),
    ]


def _noisy(result, seed):
    noise = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
    return result + 0.01 * noise.to(result)


def _of_other_parameters(probe):
    return [Suspect("subtracts the bias", with_parameters(lambda weight, bias: (weight, -bias)))]


def _of_altered_parameters(probe):
    return [
        Suspect("adds the bias of the next dimension", with_parameters(lambda weight, bias: (weight, bias.roll(-1)))),
        Suspect(
            "takes weight and bias in the reverse order",
            with_parameters(lambda weight, bias: (weight.flip(0), bias.flip(0))),
        ),
    ]


def _of_changed_inputs(probe):
    return [
        Suspect("gives the right result, but leaves it in x before the weight", leaving(normalized)),
        Suspect("gives the right result, but has turned the signs of x", leaving(lambda x, eps: -x)),
    ]


LINE_UP = suspects.LINE_UP.joined_by(
    RIGHT,
    {
        "shape": (("shape",), _of_other_shape),
        "tokens": (("tokens",), _of_other_tokens),
        "images": (("batch",), _of_other_images),
        "axes": (("axes",), _of_counted_axes),
        "divisor": (("divisor",), _of_other_divisors),
        "eps": (("eps beside", "eps ignored"), _of_other_eps),
        "mean": (("mean",), _of_other_means),
        "look-alikes": (("look-alikes",), _of_look_alikes),
        "parameters": (("missing", "order"), _of_other_parameters),
        "altered parameters": (("weight",), _of_altered_parameters),
        "inputs": (("in place",), _of_changed_inputs),
    },
)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_it_catches_wrong_shapes(student, probe):
    """It catches a result of another shape, and lets right norms pass."""
    look = "Which shape do you expect, and do you look at it before you compare?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)


@pytest.mark.exercise("is_layer_norm", points=0.75)
def test_it_catches_tokens_that_get_mixed(student, probe):
    """It catches a mean and a variance in which other tokens of the image take part, and lets right norms pass."""
    look = "What becomes of a token when it is alone, without its neighbors?"
    LINE_UP.expect_distinguished(student, probe, "tokens", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_images_that_get_mixed(student, probe):
    """It catches a mean and a variance in which other images take part, and lets right norms pass."""
    look = "What becomes of an image when the other images of its batch are gone?"
    LINE_UP.expect_distinguished(student, probe, "images", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_axes_counted_from_the_front(student, probe):
    """It catches axes that are counted from the front, and lets right norms pass."""
    look = "Which numbers of axes in front of the last one have you tried?"
    LINE_UP.expect_distinguished(student, probe, "axes", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_divisor(student, probe):
    """It catches a variance that divides by another number than embed_dim, and lets right norms pass."""
    look = "Which of your sizes agree, and how much does one less change when embed_dim is large?"
    LINE_UP.expect_distinguished(student, probe, "divisor", look)


@pytest.mark.exercise("is_layer_norm", points=1)
def test_it_catches_another_eps(student, probe):
    """It catches an eps that is ignored, or not added to the variance under the root, and lets right norms pass."""
    look = "How large is your eps, next to the variance of your tokens?"
    LINE_UP.expect_distinguished(student, probe, "eps", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_a_mean_left_in(student, probe):
    """It catches a mean that is not subtracted, from x or in the variance, and lets right norms pass."""
    look = "What are the means of your tokens? What happens when you add 10 to them?"
    LINE_UP.expect_distinguished(student, probe, "mean", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_look_alikes(student, probe):
    """It catches another mean or deviation, numbers cut off, turned or in another order, and lets right norms pass."""
    look = (
        "Which other numbers are the same as the mean, or the standard deviation, of your token by accident? "
        "And what do your facts say when every sign is turned?"
    )
    LINE_UP.expect_distinguished(student, probe, "look-alikes", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_use_of_weight_and_bias(student, probe):
    """It catches a missing weight or bias, and a bias before the weight, and lets right norms pass."""
    look = "Which weight and which bias change nothing, and for which does their order make no difference?"
    LINE_UP.expect_distinguished(student, probe, "parameters", look)


@pytest.mark.exercise("is_layer_norm", points=0.5)
def test_it_catches_another_weight_or_bias(student, probe):
    """It catches a weight without its sign, one for all dimensions, or another one's, and lets right norms pass."""
    look = "Are all your weights positive, or all the same? Are two numbers of your bias?"
    LINE_UP.expect_distinguished(student, probe, "altered parameters", look)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_it_catches_an_x_that_is_changed(student, probe):
    """It catches a norm that writes into x, and lets right norms pass."""
    look = "What does x hold after the call?"
    LINE_UP.expect_distinguished(student, probe, "inputs", look)


@pytest.mark.exercise("is_layer_norm", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and right norms pass."""
    look = "Which shape do you expect, and do you look at it before you compare?"
    LINE_UP.expect_distinguished(student, probe, "shape", look)
    expect_example(student)
