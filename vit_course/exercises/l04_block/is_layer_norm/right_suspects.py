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


def apply_weight_and_bias(z: Tensor, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """The result, where ``z`` is x normalized; it has the dtype of x."""
    return (z * weight + bias).to(x.dtype)


def make_norm_with_z(z: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm with ``z`` of x (in float64) and eps in place of x normalized."""
    return lambda x, weight, bias, eps: apply_weight_and_bias(z(x.double(), eps), x, weight, bias)


def make_norm_with_mean(mean: Callable[[Tensor], Tensor]) -> Norm:
    """A norm that subtracts ``mean`` of x, and has the right variance."""
    return make_norm_with_z(lambda x, eps: (x - mean(x)) / (variance_of(x) + eps).sqrt())


def make_norm_with_variance(variance: Callable[[Tensor], Tensor]) -> Norm:
    """A norm that subtracts the mean, and has ``variance`` of x."""
    return make_norm_with_z(lambda x, eps: (x - mean_of(x)) / (variance(x) + eps).sqrt())


def make_norm_with_root(root: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm that divides the deviations by ``root`` of variance and eps."""
    return make_norm_with_z(lambda x, eps: (x - mean_of(x)) / root(variance_of(x), eps))


def make_norm_with_statistics(statistics: Callable[[Tensor], Tensor]) -> Norm:
    """A norm with what ``statistics`` makes of the tokens' means, and of their variances, each (..., 1)."""
    return make_norm_with_z(lambda x, eps: (x - statistics(mean_of(x))) / (statistics(variance_of(x)) + eps).sqrt())


def make_norm_over_axes(axes: Callable[[int], tuple[int, ...]]) -> Norm:
    """A norm with mean and variance over ``axes`` of the number of axes; of none, over the last."""

    def normalize_over_axes(x: Tensor, eps: float) -> Tensor:
        variance, mean = torch.var_mean(x, axes(x.ndim) or (-1,), correction=0, keepdim=True)
        return (x - mean) / (variance + eps).sqrt()

    return make_norm_with_z(normalize_over_axes)


def make_norm_with_parameters(change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> Norm:
    """A norm with what ``change`` makes of weight and bias, (embed_dim,) both, in their places."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        each = (torch.as_tensor(given).expand(x.shape[-1:]) for given in (weight, bias))
        return apply_weight_and_bias(normalize_tokens(x.double(), eps), x, *change(*each))

    return norm


def mean_of(x: Tensor) -> Tensor:
    """The mean of each token, (..., 1)."""
    return x.mean(dim=-1, keepdim=True)


def variance_of(x: Tensor) -> Tensor:
    """The variance of each token, (..., 1)."""
    return (x - mean_of(x)).square().mean(dim=-1, keepdim=True)


def normalize_tokens(x: Tensor, eps: float) -> Tensor:
    """x with mean 0 and variance 1, up to eps."""
    return (x - mean_of(x)) / (variance_of(x) + eps).sqrt()


def make_norm_with_changed_result(transform: Callable[[Tensor], Tensor]) -> Norm:
    """A right norm, and then ``transform`` of its result."""
    return lambda x, weight, bias, eps: transform(
        apply_weight_and_bias(normalize_tokens(x.double(), eps), x, weight, bias)
    )


def make_norm_that_overwrites_x(written: Callable[[Tensor, float], Tensor]) -> Norm:
    """A norm that is right, but leaves ``written`` of x and eps in x."""

    def norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
        result = apply_weight_and_bias(normalize_tokens(x.double(), eps), x, weight, bias)
        overwrite_unless_expanded(x, written(x.clone(), eps))
        return result

    return norm


def overwrite_unless_expanded(x: Tensor, numbers: Tensor) -> None:
    """Write into x, unless it is expanded: then it has no place for every number."""
    with torch.no_grad(), contextlib.suppress(RuntimeError):
        x.copy_(numbers)


def make_norm_with_variance_divisor(count: Callable[[Tensor], int]) -> Norm:
    """A norm whose variance is the sum of the squares divided by ``count`` of x."""
    return make_norm_with_variance(lambda x: variance_of(x) * x.shape[-1] / count(x))


def compute_midrange_and_half_range(x: Tensor) -> tuple[Tensor, Tensor]:
    """The middle between the smallest and the largest number of each token, and half their difference."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (low + high) / 2, (high - low) / 2


def _normalize_by_torch(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """By torch's own function."""
    return apply_weight_and_bias(F.layer_norm(x, x.shape[-1:], eps=float(eps)), x, weight, bias)


def _normalize_by_biased_variance(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return apply_weight_and_bias((x - mean) * (variance + eps).rsqrt(), x, weight, bias)


def _normalize_by_mean_of_squares(x: Tensor, eps: float) -> Tensor:
    variance = (x.square().mean(-1, keepdim=True) - mean_of(x).square()).clamp(min=0)
    return (x - mean_of(x)) / (variance + eps).sqrt()


def _normalize_token_by_token(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    tokens = [_normalize_by_biased_variance(token, weight, bias, eps) for token in x.reshape(-1, x.shape[-1])]
    return torch.stack(tokens).reshape(x.shape)


def _normalize_with_signs_flipped_twice(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    return _normalize_by_biased_variance(-x, -weight, bias, eps)


def _make_noncontiguous(result: Tensor) -> Tensor:
    return torch.stack((result, result), dim=-1)[..., 0]


RIGHT = (
    Suspect(
        "takes the variance with correction=0, and multiplies by the inverse of the root", _normalize_by_biased_variance
    ),
    Suspect("calls torch's layer_norm", _normalize_by_torch),
    Suspect(
        "computes in float64, and the variance as the mean of the squares less the square of the mean",
        make_norm_with_z(_normalize_by_mean_of_squares),
    ),
    Suspect("normalizes one token at a time, in a loop", _normalize_token_by_token),
    Suspect("turns the signs of x and of the weight, which changes nothing", _normalize_with_signs_flipped_twice),
    Suspect("gives a tensor that is not contiguous in memory", make_norm_with_changed_result(_make_noncontiguous)),
)


def _normalize_by_group_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    rows = torch.group_norm(x.reshape(-1, x.shape[-1]), 1, eps=float(eps))
    return apply_weight_and_bias(rows.reshape(x.shape), x, weight, bias)


def _normalize_by_standard_deviation(x: Tensor, eps: float) -> Tensor:
    deviation, mean = torch.std_mean(x, -1, correction=0, keepdim=True)
    return (x - mean) * (deviation.square() + eps) ** -0.5


def _combine_variance_of_two_halves(x: Tensor) -> Tensor:
    parts = [part for part in x.tensor_split(2, dim=-1) if part.shape[-1]]
    found = [part.shape[-1] * (variance_of(part) + (mean_of(part) - mean_of(x)).square()) for part in parts]
    return torch.stack(found).sum(dim=0) / x.shape[-1]


def _normalize_by_dot_products(x: Tensor, eps: float) -> Tensor:
    shares = torch.full_like(x[..., :1], 1 / x.shape[-1]).expand_as(x)
    centered = x - torch.linalg.vecdot(x, shares).unsqueeze(-1)
    return centered / (torch.linalg.vecdot(centered, centered * shares).unsqueeze(-1) + eps).sqrt()


def _normalize_by_vector_length(x: Tensor, eps: float) -> Tensor:
    centered, size = x - mean_of(x), x.shape[-1]
    length = torch.hypot(centered.norm(dim=-1, keepdim=True), torch.full_like(x[..., :1], math.sqrt(size * eps)))
    return math.sqrt(size) * centered / length


def _normalize_in_reversed_token_order(x: Tensor, eps: float) -> Tensor:
    return normalize_tokens(x.reshape(-1, x.shape[-1]).flip(0), eps).flip(0).reshape(x.shape)


MORE_RIGHT = (
    Suspect("calls torch's group norm with one group", _normalize_by_group_norm),
    Suspect(
        "squares torch's std, taken with correction=0, and adds eps", make_norm_with_z(_normalize_by_standard_deviation)
    ),
    Suspect(
        "takes the variances of two halves and how far apart these are",
        make_norm_with_variance(_combine_variance_of_two_halves),
    ),
    Suspect(
        "takes its means as dot products with a vector of equal shares", make_norm_with_z(_normalize_by_dot_products)
    ),
    Suspect(
        "takes the first number from all numbers of a token before it begins",
        make_norm_with_z(lambda x, eps: normalize_tokens(x - x[..., :1], eps)),
    ),
    Suspect(
        "makes a vector of length one and multiplies it by the root of embed_dim",
        make_norm_with_z(_normalize_by_vector_length),
    ),
    Suspect(
        "normalizes the tokens in the reverse order and turns the answer round",
        make_norm_with_z(_normalize_in_reversed_token_order),
    ),
    Suspect(
        "divides x and the root of eps by two first, which changes nothing",
        make_norm_with_z(lambda x, eps: normalize_tokens(x / 2, eps / 4)),
    ),
)
