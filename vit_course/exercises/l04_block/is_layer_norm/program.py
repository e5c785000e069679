"""A test for layer normalization: one batch of random tokens, against the formula."""

from collections.abc import Callable

import torch

Norm = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]


def near(found: torch.Tensor, right: torch.Tensor, tolerance: float = 1e-4) -> bool:
    """Whether both have one shape and the same numbers, up to rounding."""
    return found.shape == right.shape and torch.allclose(found, right, atol=tolerance)


def is_layer_norm(norm: Norm) -> bool:
    """Whether ``norm`` normalizes each token, scales and shifts each dimension, and leaves x as it was."""
    front: tuple[int, ...] = (2, 3, 5)
    # bug "every axis of the same size": front = (6, 6, 6)
    # bug "one image only": front = (1, 3, 5)
    # bug "one token only": front = ()
    # bug "always three axes": front = (3, 5)
    embed_dim = 7
    # bug "every axis of the same size": embed_dim = 6
    # bug "tokens of two numbers": embed_dim = 6
    # bug "a tolerance that lets anything near pass": embed_dim = 768
    generator = torch.Generator().manual_seed(0)
    sizes = (*front, embed_dim), (embed_dim,), (embed_dim,), (*front, 1), (*front, 1)
    x, weight, bias, mean, spread = (torch.randn(*size, generator=generator) for size in sizes)
    x = 2 * mean + (0.3 + spread.abs()) * x  # each token has a mean and a spread of its own
    # bug "an eps too small to matter": x = 2 * mean + (0.3 + spread.abs()) * x
    # bug "an eps too small to matter": deviation, mean = torch.std_mean(x, -1, keepdim=True)
    # bug "an eps too small to matter": x = (x - mean) / deviation + 0.3 * mean
    # bug "tokens of mean zero": x = (0.3 + spread.abs()) * (x - x.mean(-1, keepdim=True))
    # bug "tokens of two numbers": x = 2 * mean + (0.3 + spread.abs()) * x[..., :2].repeat_interleave(3, dim=-1)
    eps = 0.5
    # bug "an eps too small to matter": eps = 1e-6
    # bug "mean and variance of the result only": eps = 1e-6
    # bug "mean and variance of the result only": weight, bias = torch.ones(embed_dim), torch.zeros(embed_dim)
    # bug "variance as torch takes it": eps = 0.0
    # bug "variance as torch takes it": weight, bias = torch.ones(embed_dim), torch.zeros(embed_dim)
    # bug "weight of ones and bias of zeros": eps, weight, bias = 0.5, torch.ones(embed_dim), torch.zeros(embed_dim)
    # bug "the same weight for all dimensions": eps, weight = 0.5, torch.full((embed_dim,), -1.5)
    # bug "positive weights only": eps, weight = 0.5, weight.abs()
    variance, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    right = (x - mean) * (variance + eps).rsqrt() * weight + bias
    given = x.clone()
    result = norm(given, weight, bias, eps)
    left_alone = torch.equal(given, x)
    # bug "x not looked at": left_alone = True
    return near(result, right) and left_alone
    # bug "never says no": return True
    # bug "never says yes": return False
    # bug "answer turned round": return not (near(result, right) and left_alone)
    # bug "shapes only": return result.shape == right.shape
    # bug "mean and variance of the result only": variance, mean = torch.var_mean(result, -1, correction=0)
    # bug "mean and variance of the result only": is_centered = near(mean, torch.zeros(2, 3, 5))
    # bug "mean and variance of the result only": right_size = result.shape == right.shape
    # bug "mean and variance of the result only": return right_size and is_centered and near(variance, torch.ones(2, 3, 5), 1e-3)
    # bug "variance as torch takes it": return result.shape == right.shape and near(result.var(-1), torch.ones(2, 3, 5))
    # bug "a tolerance that lets anything near pass": return near(result, right, 1e-2) and left_alone
    # bug "compared to the last digit": return torch.equal(result, right)
    # bug "asserts where it should answer": assert near(result, right) and left_alone, "this is no layer normalization"
    # bug "asserts where it should answer": return True
