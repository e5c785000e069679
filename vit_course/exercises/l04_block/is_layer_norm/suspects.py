"""The suspects of ``is_layer_norm``: right and wrong layer normalization for a student's test to judge.

Every wrong one is wrong by much more than rounding for x with four axes of different sizes, several tokens of which
each has a mean and a spread of its own, an eps of their variance's order, and a weight and a bias of which no two
numbers agree; for some simpler inputs some of them are right, and should be. Some are known mistakes of an earlier
exercise. ``check`` asks about the first of each family; grading draws their settings, and asks about the others too.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, add_graded_suspects, draw_setting
from vit_course.exercises.l04_block.is_layer_norm.right_suspects import (
    MORE_RIGHT,
    RIGHT,
    apply_weight_and_bias,
    compute_midrange_and_half_range,
    make_norm_over_axes,
    make_norm_that_overwrites_x,
    make_norm_with_changed_result,
    make_norm_with_mean,
    make_norm_with_parameters,
    make_norm_with_root,
    make_norm_with_statistics,
    make_norm_with_variance,
    make_norm_with_variance_divisor,
    make_norm_with_z,
    mean_of,
    normalize_tokens,
    overwrite_unless_expanded,
)
from vit_course.exercises.l04_block.layer_norm.claims import layer_norm


def _make_suspect_of_known_mistake(name: str, described: str) -> Suspect:
    """A known mistake in layer normalization."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        result: Tensor = layer_norm.mistake(name).objects[0](x, weight, bias, eps)
        return result.to(x.dtype)

    return Suspect(described, norm)


def _make_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives an axis more, of size 1", make_norm_with_changed_result(lambda result: result[None])),
        Suspect(
            "gives all numbers in one long row", make_norm_with_changed_result(lambda result: result[None].flatten())
        ),
    ]


def _make_more_suspects_of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives each number an axis of its own", make_norm_with_changed_result(lambda result: result.unsqueeze(-1))
        )
    ]


def _make_suspects_of_other_tokens(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "takes the mean and the variance of a dimension over the tokens of an image",
            make_norm_over_axes(lambda axes: (-2,)[: axes - 1]),
        ),
        Suspect(
            "takes one mean and one variance for all tokens of an image",
            make_norm_over_axes(lambda axes: (-1, -2)[:axes]),
        ),
        _make_suspect_of_known_mistake(
            "one mean for everything", "takes one mean and one variance for all numbers together"
        ),
        Suspect(
            "gives all tokens of an image the mean and the variance of the first one",
            make_norm_with_statistics(lambda each: each if each.ndim < 2 else each[..., :1, :]),
        ),
        Suspect(
            "gives all tokens of an image the mean and the variance of the last one",
            make_norm_with_statistics(lambda each: each if each.ndim < 2 else each[..., -1:, :]),
        ),
    ]


def _make_more_suspects_of_other_tokens(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.2, high=0.4))
    return [
        Suspect(
            "takes the mean and the variance of the token before", make_norm_with_statistics(_take_from_token_before)
        ),
        Suspect(
            "gives each token the result of the token before", make_norm_with_changed_result(_take_from_token_before)
        ),
        Suspect(
            f"mixes {share:.2f} of the image's mean and variance into those of a token",
            make_norm_with_statistics(lambda each: (1 - share) * each + share * _average_over_tokens(each)),
        ),
        Suspect(
            "is right for the first token of an image only", make_norm_with_statistics(_make_statistics_right_at(0))
        ),
        Suspect(
            "is right for the last token of an image only", make_norm_with_statistics(_make_statistics_right_at(-1))
        ),
    ]


def _take_from_token_before(each: Tensor) -> Tensor:
    return each if each.ndim < 2 else each.roll(1, dims=-2)


def _average_over_tokens(each: Tensor) -> Tensor:
    return each if each.ndim < 2 else each.mean(dim=-2, keepdim=True)


def _make_statistics_right_at(place: int) -> Callable[[Tensor], Tensor]:
    """Statistics that are a token's own at this place of an image, and elsewhere those of the token before."""

    def statistics(each: Tensor) -> Tensor:
        if each.ndim < 2:
            return each
        is_there = torch.arange(each.shape[-2], device=each.device) == place % each.shape[-2]
        return torch.where(is_there[:, None], each, _take_from_token_before(each))

    return statistics


def _make_suspects_of_other_images(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake(
            "batch norm", "takes the mean and the variance of a dimension over all tokens of the batch"
        ),
        Suspect(
            "takes a token's mean and variance together with those of the other images' tokens at its place",
            make_norm_over_axes(lambda axes: (0, -1) if axes > 2 else (-1,)),
        ),
        Suspect(
            "gives the tokens of every image the means and the variances of the first image's",
            make_norm_with_statistics(lambda each: each if each.ndim < 3 else each[:1]),
        ),
    ]


def _make_more_suspects_of_other_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "takes the mean and the variance from the next image", make_norm_with_statistics(_take_from_next_image)
        ),
        Suspect(
            "takes the mean and the variance from the next image, for all images but the first",
            make_norm_with_statistics(lambda each: _replace_all_but_first_image(each, _take_from_next_image(each))),
        ),
        Suspect(
            "takes the mean and the variance from the next image, for the first image",
            make_norm_with_statistics(lambda each: _replace_all_but_first_image(_take_from_next_image(each), each)),
        ),
    ]


def _take_from_next_image(each: Tensor) -> Tensor:
    return each if each.ndim < 3 else each.roll(-1, dims=0)


def _replace_all_but_first_image(first: Tensor, others: Tensor) -> Tensor:
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def _make_suspects_of_counted_axes(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "normalizes along axis 1, however many axes there are",
            make_norm_over_axes(lambda axes: (min(1, axes - 1),)),
        ),
        Suspect(
            "takes one mean and one variance for all axes from number 2 on, however many there are",
            make_norm_over_axes(lambda axes: tuple(range(2, axes))),
        ),
    ]


def _make_more_suspects_of_counted_axes(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "normalizes along axis 2 where there is one", make_norm_over_axes(lambda axes: (2,) if axes > 2 else (-1,))
        ),
        Suspect(
            "takes one mean and one variance for all axes behind the first",
            make_norm_over_axes(lambda axes: tuple(range(1, axes))),
        ),
    ]


def _make_suspects_of_other_divisors(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("divided by one less", "divides the sum of the squares by embed_dim - 1"),
        Suspect(
            "divides the sum of the squares by the number of tokens",
            make_norm_with_variance_divisor(lambda x: x.shape[-2] if x.ndim > 1 else x.shape[-1]),
        ),
    ]


def _make_more_suspects_of_other_divisors(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "divides the sum of the squares by embed_dim + 1",
            make_norm_with_variance_divisor(lambda x: x.shape[-1] + 1),
        ),
        Suspect("sums the squares and does not divide", make_norm_with_variance_divisor(lambda x: 1)),
        Suspect(
            "divides the sum of the squares by the size of the first axis",
            make_norm_with_variance_divisor(lambda x: x.shape[0]),
        ),
    ]


def _make_suspects_of_an_eps_beside(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("eps outside the root", "adds eps to the standard deviation, outside the root"),
        Suspect(
            "takes eps as the variance where the variance is smaller, and adds nothing",
            make_norm_with_root(lambda variance, eps: variance.clamp(min=float(eps)).sqrt()),
        ),
    ]


def _make_more_suspects_of_an_eps_beside(probe: Probe) -> list[Suspect]:
    times = float(probe.choice((probe.uniform(1, low=0.5, high=0.8), probe.uniform(1, low=1.25, high=2))))
    return [
        Suspect(
            "adds the square of eps to the variance",
            make_norm_with_root(lambda variance, eps: (variance + eps**2).sqrt()),
        ),
        Suspect(
            "adds eps to the variance and to the root",
            make_norm_with_root(lambda variance, eps: (variance + eps).sqrt() + eps),
        ),
        Suspect(
            f"adds {times:.2f} times eps", make_norm_with_root(lambda variance, eps: (variance + times * eps).sqrt())
        ),
    ]


def _make_suspects_of_no_eps(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("eps left out", "never uses eps"),
        _make_suspect_of_known_mistake("eps of its own", "has an eps of its own, 1e-5, whatever it is given"),
    ]


def _make_suspects_of_an_eps_of_its_own(probe: Probe) -> list[Suspect]:
    own = 10.0 ** -float(probe.uniform(1, low=1, high=6))
    return [
        Suspect(f"has an eps of its own, {own:.2g}", make_norm_with_root(lambda variance, eps: (variance + own).sqrt()))
    ]


def _make_suspects_of_other_means(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake(
            "divided but not centered", "divides by the root of variance plus eps, but subtracts no mean"
        ),
        _make_suspect_of_known_mistake(
            "mean left in", "divides by the root of the mean square plus eps, and knows no mean: an RMSNorm with a bias"
        ),
        Suspect(
            "subtracts the mean, but takes the mean of the squares of x itself for the variance",
            make_norm_with_variance(lambda x: mean_of(x.square())),
        ),
    ]


def _make_more_suspects_of_other_means(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.6, high=0.9))
    return [
        Suspect(f"subtracts {share:.2f} times the mean", make_norm_with_mean(lambda x: share * mean_of(x))),
        Suspect(
            "leaves the last number out of the mean",
            make_norm_with_mean(lambda x: mean_of(x[..., : max(1, x.shape[-1] - 1)])),
        ),
    ]


def _make_suspects_of_look_alikes(probe: Probe) -> list[Suspect]:
    most = draw_setting(probe, 0.3, 0.5, shown=0.5)
    return [
        Suspect(
            "subtracts the number in the middle between the smallest and the largest in place of the mean",
            make_norm_with_mean(lambda x: compute_midrange_and_half_range(x)[0]),
        ),
        Suspect(
            "takes the mean of the deviations without their signs for the standard deviation",
            make_norm_with_variance(lambda x: mean_of((x - mean_of(x)).abs()).square()),
        ),
        Suspect(
            f"cuts the normalized numbers off at {-most:.2g} and at {most:.2g}",
            make_norm_with_z(lambda x, eps: normalize_tokens(x, eps).clamp(-most, most)),
        ),
        Suspect(
            "turns the signs of the normalized numbers, whose mean and variance stay",
            make_norm_with_z(lambda x, eps: -normalize_tokens(x, eps)),
        ),
        Suspect("turns the sign of its result", make_norm_with_changed_result(lambda result: -result)),
    ]


def _make_more_suspects_of_look_alikes(probe: Probe) -> list[Suspect]:
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect(
            "gives the normalized numbers of a token in the reverse order",
            make_norm_with_z(lambda x, eps: normalize_tokens(x, eps).flip(-1)),
        ),
        Suspect(
            "subtracts the median in place of the mean",
            make_norm_with_mean(lambda x: x.median(-1, keepdim=True).values),
        ),
        Suspect(
            "takes half the range for the standard deviation",
            make_norm_with_variance(lambda x: compute_midrange_and_half_range(x)[1].square()),
        ),
        Suspect(
            "adds noise of one hundredth to its result",
            make_norm_with_changed_result(lambda result: _add_noise(result, seed)),
        ),
    ]


def _add_noise(result: Tensor, seed: int) -> Tensor:
    noise = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
    return result + 0.01 * noise.to(result)


def _make_suspects_of_missing_parameters(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake("weight left out", "never uses the weight"),
        _make_suspect_of_known_mistake("bias left out", "never uses the bias"),
    ]


def _make_suspects_of_another_order(probe: Probe) -> list[Suspect]:
    return [
        _make_suspect_of_known_mistake(
            "bias added before the weight", "adds the bias before it multiplies by the weight"
        ),
        Suspect(
            "multiplies by the bias and adds the weight", make_norm_with_parameters(lambda weight, bias: (bias, weight))
        ),
    ]


def _make_suspects_of_another_sign(probe: Probe) -> list[Suspect]:
    return [Suspect("subtracts the bias", make_norm_with_parameters(lambda weight, bias: (weight, -bias)))]


def _make_suspects_of_another_weight(probe: Probe) -> list[Suspect]:
    return [
        Suspect("multiplies by 1 + weight", make_norm_with_parameters(lambda weight, bias: (1 + weight, bias))),
        Suspect(
            "multiplies by the weight without its sign",
            make_norm_with_parameters(lambda weight, bias: (weight.abs(), bias)),
        ),
        Suspect(
            "multiplies every dimension by the mean of the weight",
            make_norm_with_parameters(_replace_weight_by_its_mean),
        ),
        Suspect("never uses the last number of the weight", make_norm_with_parameters(_replace_last_weight_by_one)),
    ]


def _replace_weight_by_its_mean(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return weight.to(torch.get_default_dtype()).mean().expand_as(weight), bias


def _replace_last_weight_by_one(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return torch.cat((weight[:-1], torch.ones_like(weight[-1:]))), bias


def _make_suspects_of_altered_parameters(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "adds the bias of the next dimension",
            make_norm_with_parameters(lambda weight, bias: (weight, bias.roll(-1))),
        ),
        Suspect(
            "takes weight and bias in the reverse order",
            make_norm_with_parameters(lambda weight, bias: (weight.flip(0), bias.flip(0))),
        ),
    ]


def _make_suspects_of_changed_inputs(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the right result, but has subtracted the mean from x itself",
            make_norm_that_overwrites_x(lambda x, eps: x - mean_of(x)),
        ),
        Suspect("writes its result into x and gives x", _normalize_in_place),
    ]


def _normalize_in_place(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    overwrite_unless_expanded(x, apply_weight_and_bias(normalize_tokens(x.double(), eps), x, weight, bias))
    return x


def _make_more_suspects_of_changed_inputs(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the right result, but leaves it in x before the weight",
            make_norm_that_overwrites_x(normalize_tokens),
        ),
        Suspect(
            "gives the right result, but has turned the signs of x", make_norm_that_overwrites_x(lambda x, eps: -x)
        ),
    ]


WRONG: dict[str, Family] = {
    "shape": add_graded_suspects(_make_suspects_of_other_shape, _make_more_suspects_of_other_shape),
    "tokens": add_graded_suspects(_make_suspects_of_other_tokens, _make_more_suspects_of_other_tokens),
    "batch": add_graded_suspects(_make_suspects_of_other_images, _make_more_suspects_of_other_images),
    "axes": add_graded_suspects(_make_suspects_of_counted_axes, _make_more_suspects_of_counted_axes),
    "divisor": add_graded_suspects(_make_suspects_of_other_divisors, _make_more_suspects_of_other_divisors),
    "eps beside": add_graded_suspects(_make_suspects_of_an_eps_beside, _make_more_suspects_of_an_eps_beside),
    "eps ignored": add_graded_suspects(_make_suspects_of_no_eps, _make_suspects_of_an_eps_of_its_own),
    "mean": add_graded_suspects(_make_suspects_of_other_means, _make_more_suspects_of_other_means),
    "look-alikes": add_graded_suspects(_make_suspects_of_look_alikes, _make_more_suspects_of_look_alikes),
    "missing": _make_suspects_of_missing_parameters,
    "order": add_graded_suspects(_make_suspects_of_another_order, _make_suspects_of_another_sign),
    "weight": add_graded_suspects(_make_suspects_of_another_weight, _make_suspects_of_altered_parameters),
    "in place": add_graded_suspects(_make_suspects_of_changed_inputs, _make_more_suspects_of_changed_inputs),
}


def _hide_name(norm: Candidate) -> Candidate:
    return lambda x, weight, bias, eps: norm(x, weight, bias, eps)


LINE_UP = LineUp("a norm", "your own layer_norm", RIGHT, MORE_RIGHT, WRONG, _hide_name)
