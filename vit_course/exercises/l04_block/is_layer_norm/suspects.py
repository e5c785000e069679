"""The suspects of ``is_layer_norm``: right and wrong layer normalization for a student's test to judge.

All of them take x (..., embed_dim), weight and bias (embed_dim,) and eps, and give the shape and the dtype of x. Every
wrong one is wrong by much more than rounding for x with four axes of different sizes, several tokens of which each has
a mean and a spread of its own, an eps of their variance's order, and a weight and a bias of which no two numbers agree;
for some simpler inputs some of them are right, and should be. Some are known mistakes of an earlier exercise. ``check``
asks about these; grading draws their settings, and adds others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.probes import Probe
from vit_course.exercises.impostors import Candidate, Family, LineUp, Suspect, drawn
from vit_course.exercises.l04_block.layer_norm.claims import layer_norm

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


def leaving(written: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm that is right, but leaves ``written`` of x and eps in x."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        result = scaled(normalized(x.double(), eps), x, weight, bias)
        _write(x, written(x.clone(), eps))
        return result

    return norm


def _write(x: Tensor, numbers: Tensor) -> None:
    """Write into x, unless it is expanded: then it has no place for every number."""
    with torch.no_grad(), contextlib.suppress(RuntimeError):
        x.copy_(numbers)


def divided_by(count: Callable[[Tensor], int]) -> Norm:
    """A norm whose variance is the sum of the squares divided by ``count`` of x."""
    return with_variance(lambda x: variance_of(x) * x.shape[-1] / count(x))


def ends(x: Tensor) -> tuple[Tensor, Tensor]:
    """The middle between the smallest and the largest number of each token, and half their difference."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (low + high) / 2, (high - low) / 2


def _by_torch(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """By torch's own function."""
    return scaled(F.layer_norm(x, x.shape[-1:], eps=float(eps)), x, weight, bias)


def _by_the_biased_variance(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return scaled((x - mean) * (variance + eps).rsqrt(), x, weight, bias)


def _by_two_means(x: Tensor, eps: float) -> Tensor:
    variance = (x.square().mean(-1, keepdim=True) - mean_of(x).square()).clamp(min=0)
    return (x - mean_of(x)) / (variance + eps).sqrt()


def _one_token_at_a_time(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    tokens = [_by_the_biased_variance(token, weight, bias, eps) for token in x.reshape(-1, x.shape[-1])]
    return torch.stack(tokens).reshape(x.shape)


def _signs_turned_twice(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return _by_the_biased_variance(-x, -weight, bias, eps)


def _scattered(result: Tensor) -> Tensor:
    return torch.stack((result, result), dim=-1)[..., 0]


RIGHT = (
    Suspect("takes the variance with correction=0, and multiplies by the inverse of the root", _by_the_biased_variance),
    Suspect("calls torch's layer_norm", _by_torch),
    Suspect(
        "computes in float64, and the variance as the mean of the squares less the square of the mean",
        with_z(_by_two_means),
    ),
    Suspect("normalizes one token at a time, in a loop", _one_token_at_a_time),
    Suspect("turns the signs of x and of the weight, which changes nothing", _signs_turned_twice),
    Suspect("gives a tensor that is not contiguous in memory", changed(_scattered)),
)


def _known(name: str, described: str) -> Suspect:
    """A known mistake in layer normalization."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        result: Tensor = layer_norm.mistake(name).objects[0](x, weight, bias, eps)
        return result.to(x.dtype)

    return Suspect(described, norm)


def _of_other_shape(probe: Probe) -> list[Suspect]:
    return [
        Suspect("gives an axis more, of size 1", changed(lambda result: result[None])),
        Suspect("gives all numbers in one long row", changed(lambda result: result[None].flatten())),
    ]


def _of_other_tokens(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "takes the mean and the variance of a dimension over the tokens of an image",
            over(lambda axes: (-2,)[: axes - 1]),
        ),
        Suspect("takes one mean and one variance for all tokens of an image", over(lambda axes: (-1, -2)[:axes])),
        _known("one mean for everything", "takes one mean and one variance for all numbers together"),
        Suspect(
            "gives all tokens of an image the mean and the variance of the first one",
            with_statistics(lambda each: each if each.ndim < 2 else each[..., :1, :]),
        ),
        Suspect(
            "gives all tokens of an image the mean and the variance of the last one",
            with_statistics(lambda each: each if each.ndim < 2 else each[..., -1:, :]),
        ),
    ]


def _of_other_images(probe: Probe) -> list[Suspect]:
    return [
        _known("batch norm", "takes the mean and the variance of a dimension over all tokens of the batch"),
        Suspect(
            "takes a token's mean and variance together with those of the other images' tokens at its place",
            over(lambda axes: (0, -1) if axes > 2 else (-1,)),
        ),
        Suspect(
            "gives the tokens of every image the means and the variances of the first image's",
            with_statistics(lambda each: each if each.ndim < 3 else each[:1]),
        ),
    ]


def _of_counted_axes(probe: Probe) -> list[Suspect]:
    return [
        Suspect("normalizes along axis 1, however many axes there are", over(lambda axes: (min(1, axes - 1),))),
        Suspect(
            "takes one mean and one variance for all axes from number 2 on, however many there are",
            over(lambda axes: tuple(range(2, axes))),
        ),
    ]


def _of_other_divisors(probe: Probe) -> list[Suspect]:
    return [
        _known("divided by one less", "divides the sum of the squares by embed_dim - 1"),
        Suspect(
            "divides the sum of the squares by the number of tokens",
            divided_by(lambda x: x.shape[-2] if x.ndim > 1 else x.shape[-1]),
        ),
    ]


def _of_an_eps_beside(probe: Probe) -> list[Suspect]:
    return [
        _known("eps outside the root", "adds eps to the standard deviation, outside the root"),
        Suspect(
            "takes eps as the variance where the variance is smaller, and adds nothing",
            with_root(lambda variance, eps: variance.clamp(min=float(eps)).sqrt()),
        ),
    ]


def _of_no_eps(probe: Probe) -> list[Suspect]:
    return [
        _known("eps left out", "never uses eps"),
        _known("eps of its own", "has an eps of its own, 1e-5, whatever it is given"),
    ]


def _of_other_means(probe: Probe) -> list[Suspect]:
    return [
        _known("divided but not centered", "divides by the root of variance plus eps, but subtracts no mean"),
        _known(
            "mean left in", "divides by the root of the mean square plus eps, and knows no mean: an RMSNorm with a bias"
        ),
        Suspect(
            "subtracts the mean, but takes the mean of the squares of x itself for the variance",
            with_variance(lambda x: mean_of(x.square())),
        ),
    ]


def _of_look_alikes(probe: Probe) -> list[Suspect]:
    most = drawn(probe, 0.3, 0.5, shown=0.5)
    return [
        Suspect(
            "subtracts the number in the middle between the smallest and the largest in place of the mean",
            with_mean(lambda x: ends(x)[0]),
        ),
        Suspect(
            "takes the mean of the deviations without their signs for the standard deviation",
            with_variance(lambda x: mean_of((x - mean_of(x)).abs()).square()),
        ),
        Suspect(
            f"cuts the normalized numbers off at {-most:.2g} and at {most:.2g}",
            with_z(lambda x, eps: normalized(x, eps).clamp(-most, most)),
        ),
        Suspect(
            "turns the signs of the normalized numbers, whose mean and variance stay",
            with_z(lambda x, eps: -normalized(x, eps)),
        ),
        Suspect("turns the sign of its result", changed(lambda result: -result)),
    ]


def _of_missing_parameters(probe: Probe) -> list[Suspect]:
    return [
        _known("weight left out", "never uses the weight"),
        _known("bias left out", "never uses the bias"),
    ]


def _of_another_order(probe: Probe) -> list[Suspect]:
    return [
        _known("bias added before the weight", "adds the bias before it multiplies by the weight"),
        Suspect("multiplies by the bias and adds the weight", with_parameters(lambda weight, bias: (bias, weight))),
    ]


def _of_another_weight(probe: Probe) -> list[Suspect]:
    return [
        Suspect("multiplies by 1 + weight", with_parameters(lambda weight, bias: (1 + weight, bias))),
        Suspect(
            "multiplies by the weight without its sign", with_parameters(lambda weight, bias: (weight.abs(), bias))
        ),
        Suspect("multiplies every dimension by the mean of the weight", with_parameters(_mean_weight)),
        Suspect("never uses the last number of the weight", with_parameters(_last_unscaled)),
    ]


def _mean_weight(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return weight.to(torch.get_default_dtype()).mean().expand_as(weight), bias


def _last_unscaled(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    return torch.cat((weight[:-1], torch.ones_like(weight[-1:]))), bias


def _of_changed_inputs(probe: Probe) -> list[Suspect]:
    return [
        Suspect(
            "gives the right result, but has subtracted the mean from x itself",
            leaving(lambda x, eps: x - mean_of(x)),
        ),
        Suspect("writes its result into x and gives x", _written_into_x),
    ]


def _written_into_x(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    _write(x, scaled(normalized(x.double(), eps), x, weight, bias))
    return x


WRONG: dict[str, Family] = {
    "shape": _of_other_shape,
    "tokens": _of_other_tokens,
    "batch": _of_other_images,
    "axes": _of_counted_axes,
    "divisor": _of_other_divisors,
    "eps beside": _of_an_eps_beside,
    "eps ignored": _of_no_eps,
    "mean": _of_other_means,
    "look-alikes": _of_look_alikes,
    "missing": _of_missing_parameters,
    "order": _of_another_order,
    "weight": _of_another_weight,
    "in place": _of_changed_inputs,
}


def _unnamed(norm: Candidate) -> Candidate:
    return lambda x, weight, bias, eps: norm(x, weight, bias, eps)


LINE_UP = LineUp("a norm", "your own layer_norm", RIGHT, WRONG, _unnamed)
