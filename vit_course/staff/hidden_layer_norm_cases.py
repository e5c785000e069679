"""Right and wrong layer normalization for the hidden checks of ``is_layer_norm``, with settings that are drawn.

The right ones are computed in ways of which a student may not have thought. None stands in the public checks as it
is here. Every wrong one is wrong by much more than rounding for x with four axes of different sizes, several tokens of
which each has a mean and a spread of its own, an eps of their variance's order, and a weight and a bias of which no two
numbers agree; for some simpler inputs some of them are right, and should be.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import torch
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Suspect

Norm = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def scaled(z: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The result, where ``z`` is x normalized; it has the dtype of x."""
    return (z * weight + bias).to(x.dtype)


def with_z(z: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm with ``z`` of x (in float64) and eps in place of x normalized."""
    return lambda x, weight, bias, eps: scaled(z(x.double(), eps), x, weight, bias)


def with_mean(mean: Callable[[Tensor], Tensor]) -> Norm:
    """A norm that subtracts ``mean`` of x, and has the right variance."""
    return with_z(lambda x, eps: (x - mean(x)) / (variance_of(x) + eps).sqrt())


def with_variance(variance: Callable[[Tensor], Tensor]) -> Norm:
    """A norm that subtracts the mean, and has ``variance`` of x."""
    return with_z(lambda x, eps: (x - mean_of(x)) / (variance(x) + eps).sqrt())


def with_root(root: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm that divides the deviations by ``root`` of variance and eps."""
    return with_z(lambda x, eps: (x - mean_of(x)) / root(variance_of(x), eps))


def with_statistics(statistics: Callable[[Tensor], Tensor]) -> Norm:
    """A norm with what ``statistics`` makes of the tokens' means, and of their variances, each (..., 1)."""
    return with_z(lambda x, eps: (x - statistics(mean_of(x))) / (statistics(variance_of(x)) + eps).sqrt())


def over(axes: Callable[[int], tuple[int, ...]]) -> Norm:
    """A norm with mean and variance over ``axes`` of the number of axes; of none, over the last."""

    def z(x: Tensor, eps: float) -> Tensor:
        variance, mean = torch.var_mean(x, axes(x.ndim) or (-1,), correction=0, keepdim=True)
        return (x - mean) / (variance + eps).sqrt()

    return with_z(z)


def with_parameters(change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Norm:
    """A norm with what ``change`` makes of weight and bias, (embed_dim,) both, in their places."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        each = (torch.as_tensor(given).expand(x.shape[-1:]) for given in (weight, bias))
        return scaled(normalized(x.double(), eps), x, *change(*each))

    return norm


def leaving(written: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm that is right, but leaves ``written`` of x and eps in x."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        result = scaled(normalized(x.double(), eps), x, weight, bias)
        with torch.no_grad(), contextlib.suppress(RuntimeError):  # an expanded x has no place for every number
            x.copy_(written(x.clone(), eps))
        return result

    return norm


def mean_of(x: Tensor) -> Tensor:
    """The mean of each token, (..., 1)."""
    return x.mean(dim=-1, keepdim=True)


def variance_of(x: Tensor) -> Tensor:
    """The variance of each token, (..., 1)."""
    return (x - mean_of(x)).square().mean(dim=-1, keepdim=True)


def normalized(x: Tensor, eps: float) -> Tensor:
    """x with mean 0 and variance 1, up to eps."""
    return (x - mean_of(x)) / (variance_of(x) + eps).sqrt()


def changed(transform: Callable[[Tensor], Tensor]) -> Norm:
    """A right norm, and then ``transform`` of its result."""
    return lambda x, weight, bias, eps: transform(scaled(normalized(x.double(), eps), x, weight, bias))


def _by_group_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    rows = torch.group_norm(x.reshape(-1, x.shape[-1]), 1, eps=float(eps))
    return scaled(rows.reshape(x.shape), x, weight, bias)


def _by_standard_deviation(x: Tensor, eps: float) -> Tensor:
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (deviation.square() + eps) ** -0.5


def _of_two_parts(x: Tensor) -> Tensor:
    parts = [part for part in x.tensor_split(2, dim=-1) if part.shape[-1]]
    found = [part.shape[-1] * (variance_of(part) + (mean_of(part) - mean_of(x)).square()) for part in parts]
    return torch.stack(found).sum(dim=0) / x.shape[-1]


def _by_products(x: Tensor, eps: float) -> Tensor:
    shares = torch.full_like(x[..., :1], 1 / x.shape[-1]).expand_as(x)
    centered = x - torch.linalg.vecdot(x, shares).unsqueeze(-1)
    return centered / (torch.linalg.vecdot(centered, centered * shares).unsqueeze(-1) + eps).sqrt()


def _as_a_unit_vector(x: Tensor, eps: float) -> Tensor:
    centered, size = x - mean_of(x), x.shape[-1]
    length = torch.hypot(centered.norm(dim=-1, keepdim=True), torch.full_like(x[..., :1], math.sqrt(size * eps)))
    return math.sqrt(size) * centered / length


def _backwards(x: Tensor, eps: float) -> Tensor:
    return normalized(x.reshape(-1, x.shape[-1]).flip(0), eps).flip(0).reshape(x.shape)


def _scattered(result: Tensor) -> Tensor:
    return torch.stack((result, result), dim=-1)[..., 1]


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
    Suspect("gives a view that is not contiguous in memory", changed(_scattered)),
    Suspect(
        "divides x and the root of eps by two first, which changes nothing",
        with_z(lambda x, eps: normalized(x / 2, eps / 4)),
    ),
)


def _of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives an axis more, of size 1", changed(lambda result: result[None])),
        Suspect("gives the numbers of all tokens in one long row", changed(lambda result: result[None].flatten())),
        Suspect("gives each number an axis of its own", changed(lambda result: result.unsqueeze(-1))),
    ]


def _of_other_tokens(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.2, high=0.4))
    return [
        Suspect("takes the mean and the variance of a dimension over an image", over(lambda axes: (-2,)[: axes - 1])),
        Suspect("takes one mean and one variance for a whole image", over(lambda axes: (-1, -2)[:axes])),
        Suspect("takes one mean and one variance for all numbers", over(lambda axes: tuple(range(axes)))),
        Suspect("takes the mean and the variance of the token before", with_statistics(_before)),
        Suspect("gives each token the result of the token before", changed(_before)),
        Suspect(
            f"mixes {share:.2f} of the image's mean and variance into those of a token",
            with_statistics(lambda each: (1 - share) * each + share * _mean_over(each, -2)),
        ),
        Suspect("is right for the first token of an image only", with_statistics(_right_at(0))),
        Suspect("is right for the last token of an image only", with_statistics(_right_at(-1))),
    ]


def _before(each: Tensor) -> Tensor:
    return each if each.ndim < 2 else each.roll(1, dims=-2)


def _mean_over(each: Tensor, axis: int) -> Tensor:
    return each if each.ndim < 2 else each.mean(dim=axis, keepdim=True)


def _right_at(place: int) -> Callable[[Tensor], Tensor]:
    """Statistics that are a token's own at this place of an image, and elsewhere those of the token before."""

    def statistics(each: Tensor) -> Tensor:
        if each.ndim < 2:
            return each
        is_there = torch.arange(each.shape[-2]) == place % each.shape[-2]
        return torch.where(is_there[:, None], each, _before(each))

    return statistics


def _of_other_images(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "takes the mean and the variance of a dimension over the batch, as a BatchNorm",
            over(lambda axes: tuple(range(axes - 1))),
        ),
        Suspect(
            "takes a token's mean and variance together with the tokens at its place in the other images",
            over(lambda axes: (0, -1) if axes > 2 else (-1,)),
        ),
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


def _of_the_next_image(each: Tensor) -> Tensor:
    return each if each.ndim < 3 else each.roll(-1, dims=0)


def _behind_first(first: Tensor, others: Tensor) -> Tensor:
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def _of_counted_axes(probe: Probe) -> list[Suspect]:
    return [
        Suspect("normalizes along axis 1, however many there are", over(lambda axes: (min(1, axes - 1),))),
        Suspect("normalizes along axis 2 where there is one", over(lambda axes: (2,) if axes > 2 else (-1,))),
        Suspect("takes one mean and one variance for all axes behind the first", over(lambda axes: _behind(1, axes))),
        Suspect("takes one mean and one variance for all axes behind axis 1", over(lambda axes: _behind(2, axes))),
    ]


def _behind(first: int, axes: int) -> tuple[int, ...]:
    return tuple(range(first, axes))


def _of_other_divisors(probe: Probe) -> list[Suspect]:
    return [
        Suspect("divides the sum of the squares by embed_dim - 1", _divided_by(lambda x: max(1, x.shape[-1] - 1))),
        Suspect("divides the sum of the squares by embed_dim + 1", _divided_by(lambda x: x.shape[-1] + 1)),
        Suspect("sums the squares and does not divide", _divided_by(lambda x: 1)),
        Suspect(
            "divides the sum of the squares by the number of tokens",
            _divided_by(lambda x: x.shape[-2] if x.ndim > 1 else x.shape[-1]),
        ),
        Suspect(
            "divides the sum of the squares by the size of the first axis",
            _divided_by(lambda x: x.shape[0]),
        ),
    ]


def _divided_by(count: Callable[[Tensor], int]) -> Norm:
    return with_variance(lambda x: variance_of(x) * x.shape[-1] / count(x))


def _of_other_eps(probe: Probe) -> list[Suspect]:
    own = 10.0 ** -float(probe.uniform(1, low=1, high=6))
    times = float(probe.choice((probe.uniform(1, low=0.5, high=0.8), probe.uniform(1, low=1.25, high=2))))
    return [
        Suspect("adds eps to the standard deviation, outside the root", with_root(lambda var, eps: var.sqrt() + eps)),
        Suspect("takes eps for the variance where that is smaller", with_root(lambda var, eps: _at_least(var, eps))),
        Suspect("adds the square of eps to the variance", with_root(lambda var, eps: (var + eps**2).sqrt())),
        Suspect("adds eps to the variance and to the root", with_root(lambda var, eps: (var + eps).sqrt() + eps)),
        Suspect("never uses eps", with_root(lambda var, eps: var.sqrt())),
        Suspect(f"has an eps of its own, {own:.2g}", with_root(lambda var, eps: (var + own).sqrt())),
        Suspect(f"adds {times:.2f} times eps", with_root(lambda var, eps: (var + times * eps).sqrt())),
    ]


def _at_least(variance: Tensor, eps: float) -> Tensor:
    return variance.clamp(min=float(eps)).sqrt()


def _of_other_means(probe: Probe) -> list[Suspect]:
    share = float(probe.uniform(1, low=0.6, high=0.9))
    return [
        Suspect("subtracts no mean", with_mean(lambda x: 0 * x)),
        Suspect("is an RMSNorm with a bias", with_z(lambda x, eps: x / (_mean_square(x) + eps).sqrt())),
        Suspect("takes the mean of the squares of x itself for the variance", with_variance(_mean_square)),
        Suspect(f"subtracts {share:.2f} times the mean", with_mean(lambda x: share * mean_of(x))),
        Suspect("leaves the last number out of the mean", with_mean(lambda x: mean_of(x[..., : max(1, _last(x))]))),
    ]


def _mean_square(x: Tensor) -> Tensor:
    return x.square().mean(dim=-1, keepdim=True)


def _last(x: Tensor) -> int:
    return x.shape[-1] - 1


def _of_look_alikes(probe: Probe) -> list[Suspect]:
    most = float(probe.uniform(1, low=0.3, high=0.5))
    seed = int(probe.integers(1, high=2**31))
    return [
        Suspect("subtracts the median in place of the mean", with_mean(lambda x: x.median(-1, keepdim=True).values)),
        Suspect("subtracts the middle between smallest and largest number", with_mean(lambda x: _ends(x)[0])),
        Suspect("takes half the range for the standard deviation", with_variance(lambda x: _ends(x)[1].square())),
        Suspect(
            "takes the mean of the deviations without signs for the standard deviation",
            with_variance(lambda x: mean_of((x - mean_of(x)).abs()).square()),
        ),
        Suspect(
            f"cuts the normalized numbers off at {-most:.2f} and at {most:.2f}",
            with_z(lambda x, eps: normalized(x, eps).clamp(-most, most)),
        ),
        Suspect("adds noise of one hundredth to its result", changed(lambda result: _noisy(result, seed))),
    ]


def _ends(x: Tensor) -> tuple[Tensor, Tensor]:
    """The middle between the smallest and the largest number of each token, and half their difference."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (low + high) / 2, (high - low) / 2


def _noisy(result: Tensor, seed: int) -> Tensor:
    noise = torch.randn(result.shape, generator=torch.Generator().manual_seed(seed))
    return result + 0.01 * noise.to(result)


def _of_other_parameters(probe: Probe) -> list[Suspect]:
    return [
        Suspect("never uses the weight", with_parameters(lambda weight, bias: (torch.ones_like(weight), bias))),
        Suspect("never uses the bias", with_parameters(lambda weight, bias: (weight, torch.zeros_like(bias)))),
        Suspect("adds the bias first, then multiplies", with_parameters(lambda weight, bias: (weight, weight * bias))),
        Suspect("multiplies by the bias and adds the weight", with_parameters(lambda weight, bias: (bias, weight))),
        Suspect("multiplies by 1 + weight", with_parameters(lambda weight, bias: (1 + weight, bias))),
        Suspect("subtracts the bias", with_parameters(lambda weight, bias: (weight, -bias))),
    ]


def _of_altered_parameters(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "multiplies by the weight without its sign", with_parameters(lambda weight, bias: (weight.abs(), bias))
        ),
        Suspect("multiplies all dimensions by the mean of the weight", with_parameters(_mean_weight)),
        Suspect("adds the bias of the next dimension", with_parameters(lambda weight, bias: (weight, bias.roll(-1)))),
        Suspect("takes weight and bias in the reverse order", with_parameters(_turned_round)),
        Suspect("leaves the last dimension unscaled", with_parameters(_last_unscaled)),
    ]


def _mean_weight(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return weight.to(torch.get_default_dtype()).mean().expand_as(weight), bias


def _turned_round(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return weight.flip(0), bias.flip(0)


def _last_unscaled(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return torch.cat((weight[:-1], torch.ones_like(weight[-1:]))), bias


def _of_changed_inputs(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives the right result, but has subtracted the mean from x", leaving(lambda x, eps: x - mean_of(x))),
        Suspect("gives the right result, but leaves it in x before the weight", leaving(normalized)),
        Suspect("gives the right result, but has turned the signs of x", leaving(lambda x, eps: -x)),
        Suspect("writes its result into x and gives x", _written_into_x),
    ]


def _written_into_x(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    with torch.no_grad(), contextlib.suppress(RuntimeError):
        x.copy_(scaled(normalized(x.double(), eps), x, weight, bias))
    return x


WRONG: dict[str, Callable[[Probe], list[Suspect]]] = {
    "shape": _of_other_shape,
    "tokens": _of_other_tokens,
    "images": _of_other_images,
    "axes": _of_counted_axes,
    "divisor": _of_other_divisors,
    "eps": _of_other_eps,
    "mean": _of_other_means,
    "look-alikes": _of_look_alikes,
    "parameters": _of_other_parameters,
    "altered parameters": _of_altered_parameters,
    "inputs": _of_changed_inputs,
}
