"""The right suspects of ``is_layer_norm``, and what right and wrong ones are made of.

All of them take x (..., embed_dim), weight and bias (embed_dim,) and eps, and give the shape and the dtype of x.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

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
        write(x, written(x.clone(), eps))
        return result

    return norm


def write(x: Tensor, numbers: Tensor) -> None:
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


MORE_RIGHT = (
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
