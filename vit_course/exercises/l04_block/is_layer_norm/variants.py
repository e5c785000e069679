"""Right answers in other styles: what no check may refuse."""

import math

import numpy as np
import torch


def norm_tester_by_formula(norm):
    x, weight, bias = torch.randn(2, 3, 4, 8), torch.randn(8), torch.randn(8)
    kept = x.clone()
    result = norm(x, weight, bias, 0.3)
    if result.shape != x.shape or not torch.equal(x, kept):
        return False
    variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.allclose(result, (x - mean) / torch.sqrt(variance + 0.3) * weight + bias, atol=1e-5)


def norm_tester_with_assertions(norm):
    """Arguments by name, float64, and a single image too."""
    torch.manual_seed(7)
    weight, bias = torch.randn(2, 5).double()
    try:
        for front in ((4,), (3, 4), (3, 2, 4)):
            x = 3 * torch.randn(*front, 5).double() + 1
            before = x.clone()
            found = norm(x=x, weight=weight, bias=bias, eps=2.0)
            torch.testing.assert_close(x, before, rtol=0, atol=0)
            centered = x - x.sum(-1, keepdim=True) / 5
            right = centered / (centered.pow(2).sum(-1, keepdim=True) / 5 + 2.0).sqrt()
            torch.testing.assert_close(found, right * weight + bias)
    except (AssertionError, RuntimeError):
        return False
    return True


def norm_tester_with_facts(norm):
    """No formula for a token: means, variances, tokens alone, stretched tokens, and what weight and bias do."""
    generator = torch.Generator().manual_seed(11)
    x, weight, bias = (torch.randn(*size, generator=generator) for size in ((3, 2, 4, 6), (6,), (6,)))
    before, ones, zeros = x.clone(), torch.ones(6), torch.zeros(6)
    plain = norm(x, ones, zeros, 0.8)
    if plain.shape != before.shape or not torch.equal(x, before):
        return False
    variance = x.var(-1, correction=0)
    one_to_another = (x[..., 1:] - x[..., :1]) / (variance + 0.8).sqrt().unsqueeze(-1)
    alone = torch.stack([norm(each, weight, bias, 0.8) for each in x.reshape(-1, 6)]).reshape(x.shape)
    facts = [
        (plain.mean(-1), torch.zeros(3, 2, 4)),
        (plain.var(-1, correction=0), variance / (variance + 0.8)),
        (plain[..., 1:] - plain[..., :1], one_to_another),
        (norm(x, weight, bias, 0.8), weight * plain + bias),
        (norm(5 * x - 3, weight, bias, 20.0), weight * plain + bias),
        (alone, weight * plain + bias),
    ]
    return all(torch.allclose(*each, atol=1e-4) for each in facts)


def norm_tester_with_numpy(norm):
    """An answer that is numpy's bool and not Python's."""
    generator = np.random.default_rng(1)
    x, weight, bias = (generator.normal(size=size) for size in ((2, 3, 4, 7), (7,), (7,)))
    given = torch.tensor(x)
    found = norm(given, torch.tensor(weight), torch.tensor(bias), 0.5).numpy()
    if found.shape != x.shape:
        return False
    right = weight * (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.5) + bias
    return np.allclose(found, right) & np.array_equal(given.numpy(), x)


def norm_tester_by_pencil(norm):
    """Two tokens worked out by hand, in the corners of a batch of others."""
    x = 10 * torch.rand(2, 2, 3, 4)
    x[0, 0, 0], x[1, 1, 2] = torch.tensor([0.0, 0.0, 2.0, 6.0]), torch.tensor([9.0, 5.0, 5.0, 1.0])
    weight, bias = torch.tensor([2.0, -3.0, 0.5, 5.0]), torch.tensor([1.0, 0.0, -2.0, 7.0])
    kept = x.clone()
    found = norm(x, weight, bias, 10.0)
    if tuple(found.shape) != (2, 2, 3, 4) or (x != kept).any():
        return False
    first = weight * torch.tensor([-2.0, -2.0, 0.0, 4.0]) / 4 + bias
    last = weight * torch.tensor([4.0, 0.0, 0.0, -4.0]) / math.sqrt(18) + bias
    return torch.stack([found[0, 0, 0] - first, found[1, 1, 2] - last]).abs().max() < 1e-5


RIGHT = {
    "is_layer_norm": [
        norm_tester_by_formula,
        norm_tester_with_assertions,
        norm_tester_with_facts,
        norm_tester_with_numpy,
        norm_tester_by_pencil,
    ]
}
