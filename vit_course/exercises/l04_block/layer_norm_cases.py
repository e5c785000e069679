"""Right and wrong layer normalization for a student's ``is_layer_norm`` to judge.

All of them take x (..., embed_dim), weight and bias (embed_dim,) and eps, and give the shape and the dtype of x. Every
wrong one is wrong by much more than rounding for x with four axes of different sizes, several tokens of which each
has a mean and a spread of its own, an eps of their variance's order, and a weight and a bias of which no two numbers
agree; for some simpler inputs some of them are right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Norm = Callable[[Tensor, Tensor, Tensor, float], Tensor]


def by_torch(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """calls torch's layer_norm"""
    return (F.layer_norm(x, x.shape[-1:], eps=float(eps)) * weight + bias).to(x.dtype)


def by_the_biased_variance(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes the variance with correction=0, and multiplies by the inverse of the root"""
    return _over(x, (-1,), weight, bias, eps)


def by_two_means(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """computes in float64, and the variance as the mean of the squares less the square of the mean"""
    wide = x.double()
    mean = wide.mean(-1, keepdim=True)
    variance = (wide.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    return ((wide - mean) / (variance + eps).sqrt() * weight + bias).to(x.dtype)


def one_token_at_a_time(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """normalizes one token at a time, in a loop"""
    tokens = [_over(token, (-1,), weight, bias, eps) for token in x.reshape(-1, x.shape[-1])]
    return torch.stack(tokens).reshape(x.shape)


def signs_turned_twice(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """turns the signs of x and of the weight, which changes nothing"""
    return _over(-x, (-1,), -weight, bias, eps)


def not_contiguous(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives a tensor that is not contiguous in memory"""
    result = by_two_means(x, weight, bias, eps)
    return torch.stack((result, result), dim=-1)[..., 0]


def _over(x: Tensor, axes: tuple[int, ...], weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x with mean and variance over these axes."""
    variance, mean = torch.var_mean(x, axes, correction=0, keepdim=True)
    return _with(x, mean, variance, weight, bias, eps)


def _with(x: Tensor, mean: Tensor, variance: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """x with this mean and this variance."""
    return ((x - mean) * (variance + eps).rsqrt() * weight + bias).to(x.dtype)


def _statistics(x: Tensor) -> tuple[Tensor, Tensor]:
    """Variance and mean of each token, (..., 1) both."""
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return variance, mean


def one_axis_more(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives an axis more, of size 1"""
    return by_two_means(x, weight, bias, eps)[None]


def all_in_one_row(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives all numbers in one long row"""
    return by_two_means(x, weight, bias, eps)[None].flatten()


def over_the_tokens(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes the mean and the variance of a dimension over the tokens of an image"""
    return _over(x, (-2 if x.ndim > 1 else -1,), weight, bias, eps)


def over_the_image(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes one mean and one variance for all tokens of an image"""
    return _over(x, (-2, -1)[-x.ndim :], weight, bias, eps)


def over_everything(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes one mean and one variance for all numbers together"""
    return _over(x, tuple(range(x.ndim)), weight, bias, eps)


def as_the_first_token(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives all tokens of an image the mean and the variance of the first one"""
    variance, mean = (each[..., :1, :] if x.ndim > 1 else each for each in _statistics(x))
    return _with(x, mean, variance, weight, bias, eps)


def as_the_last_token(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives all tokens of an image the mean and the variance of the last one"""
    variance, mean = (each[..., -1:, :] if x.ndim > 1 else each for each in _statistics(x))
    return _with(x, mean, variance, weight, bias, eps)


def batch_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes the mean and the variance of a dimension over all tokens of the batch"""
    return _over(x, tuple(range(x.ndim - 1)) or (-1,), weight, bias, eps)


def together_with_the_other_images(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes a token's mean and variance together with those of the other images' tokens at its place"""
    return _over(x, (0, -1) if x.ndim > 2 else (-1,), weight, bias, eps)


def as_in_the_first_image(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives the tokens of every image the means and the variances of the first image's"""
    variance, mean = (each[:1] if x.ndim > 2 else each for each in _statistics(x))
    return _with(x, mean, variance, weight, bias, eps)


def over_axis_one(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """normalizes along axis 1, however many axes there are"""
    return _over(x, (min(1, x.ndim - 1),), weight, bias, eps)


def from_axis_two_on(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes one mean and one variance for all axes from number 2 on, however many there are"""
    return _over(x, tuple(range(2, x.ndim)) or (-1,), weight, bias, eps)


def divided_by_one_less(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """divides the sum of the squares by embed_dim - 1"""
    variance, mean = _statistics(x)
    return _with(x, mean, variance * x.shape[-1] / max(1, x.shape[-1] - 1), weight, bias, eps)


def divided_by_the_tokens(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """divides the sum of the squares by the number of tokens"""
    variance, mean = _statistics(x)
    count = x.shape[-2] if x.ndim > 1 else x.shape[-1]
    return _with(x, mean, variance * x.shape[-1] / count, weight, bias, eps)


def eps_outside_the_root(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """adds eps to the standard deviation, outside the root"""
    variance, mean = _statistics(x)
    return ((x - mean) / (variance.sqrt() + eps) * weight + bias).to(x.dtype)


def eps_as_the_least_variance(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes eps as the variance where the variance is smaller, and adds nothing"""
    variance, mean = _statistics(x)
    return _with(x, mean, variance.clamp(min=float(eps)), weight, bias, 0.0)


def eps_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """never uses eps"""
    return _over(x, (-1,), weight, bias, 0.0)


def eps_of_its_own(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """has an eps of its own, 1e-5, whatever it is given"""
    return _over(x, (-1,), weight, bias, 1e-5)


def not_centered(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """divides by the root of variance plus eps, but subtracts no mean"""
    return _with(x, torch.zeros_like(x[..., :1]), _statistics(x)[0], weight, bias, eps)


def rms_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """divides by the root of the mean square plus eps, and knows no mean: an RMSNorm with a bias"""
    return _with(x, torch.zeros_like(x[..., :1]), x.square().mean(-1, keepdim=True), weight, bias, eps)


def variance_about_zero(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """subtracts the mean, but takes the mean of the squares of x itself for the variance"""
    return _with(x, x.mean(-1, keepdim=True), x.square().mean(-1, keepdim=True), weight, bias, eps)


def middle_for_the_mean(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """subtracts the number in the middle between the smallest and the largest in place of the mean"""
    middle = (x.amin(-1, keepdim=True) + x.amax(-1, keepdim=True)) / 2
    return _with(x, middle, _statistics(x)[0], weight, bias, eps)


def mean_deviation(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """takes the mean of the deviations without their signs for the standard deviation"""
    mean = x.mean(-1, keepdim=True)
    return _with(x, mean, (x - mean).abs().mean(-1, keepdim=True).square(), weight, bias, eps)


def cut_off(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """cuts the normalized numbers off at -0.5 and at 0.5"""
    ones, zeros = torch.ones_like(x[..., :1]), torch.zeros_like(x[..., :1])
    return (_over(x, (-1,), ones, zeros, eps).clamp(-0.5, 0.5) * weight + bias).to(x.dtype)


def weight_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """never uses the weight"""
    return by_two_means(x, torch.ones_like(x[..., :1]), bias, eps)


def bias_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """never uses the bias"""
    return by_two_means(x, weight, torch.zeros_like(x[..., :1]), eps)


def bias_first(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """adds the bias before it multiplies by the weight"""
    return by_two_means(x, weight, weight * bias, eps)


def exchanged(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """multiplies by the bias and adds the weight"""
    return by_two_means(x, bias, weight, eps)


def one_plus_the_weight(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """multiplies by 1 + weight"""
    return by_two_means(x, 1 + weight, bias, eps)


def weight_without_its_sign(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """multiplies by the weight without its sign"""
    return by_two_means(x, torch.as_tensor(weight).abs(), bias, eps)


def one_weight_for_all(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """multiplies every dimension by the mean of the weight"""
    return by_two_means(x, torch.as_tensor(weight).mean(), bias, eps)


def last_weight_left_out(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """never uses the last number of the weight"""
    used = torch.as_tensor(weight).expand(x.shape[-1:]).clone()
    used[-1] = 1
    return by_two_means(x, used, bias, eps)


def centered_in_place(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """gives the right result, but has subtracted the mean from x itself"""
    result = by_two_means(x.clone(), weight, bias, eps)
    _write(x, x - x.mean(-1, keepdim=True))
    return result


def written_into_x(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> Tensor:
    """writes its result into x and gives x"""
    _write(x, by_two_means(x.clone(), weight, bias, eps))
    return x


def _write(x: Tensor, numbers: Tensor) -> None:
    """Write into x, unless it is expanded: then it has no place for every number."""
    with torch.no_grad(), contextlib.suppress(RuntimeError):
        x.copy_(numbers)


RIGHT = (by_the_biased_variance, by_torch, by_two_means, one_token_at_a_time, signs_turned_twice, not_contiguous)
WRONG = {
    "shape": (one_axis_more, all_in_one_row),
    "tokens": (over_the_tokens, over_the_image, over_everything, as_the_first_token, as_the_last_token),
    "batch": (batch_norm, together_with_the_other_images, as_in_the_first_image),
    "axes": (over_axis_one, from_axis_two_on),
    "divisor": (divided_by_one_less, divided_by_the_tokens),
    "eps beside": (eps_outside_the_root, eps_as_the_least_variance),
    "eps ignored": (eps_left_out, eps_of_its_own),
    "mean": (not_centered, rms_norm, variance_about_zero),
    "look-alikes": (middle_for_the_mean, mean_deviation, cut_off),
    "missing": (weight_left_out, bias_left_out),
    "order": (bias_first, exchanged),
    "weight": (one_plus_the_weight, weight_without_its_sign, one_weight_for_all, last_weight_left_out),
    "in place": (centered_in_place, written_into_x),
}
