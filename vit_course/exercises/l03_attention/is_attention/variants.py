"""Right answers in other styles: what no check may refuse."""

import numpy as np
import torch
import torch.nn.functional as F


def tester_with_torch_as_oracle(attend):
    query, key, value = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8), torch.randn(2, 3, 7, 6)
    output, weights = attend(query, key, value)
    if output.shape != (2, 3, 5, 6) or weights.shape != (2, 3, 5, 7):
        return False
    right = (query @ key.mT / 8**0.5).softmax(-1)
    return torch.allclose(weights, right, atol=1e-5) and torch.allclose(output, right @ value, atol=1e-5)


def tester_with_assertions(attend):
    torch.manual_seed(7)
    query, key, value = torch.randn(2, 5, 3).double(), torch.randn(2, 4, 3).double(), torch.randn(2, 4, 6).double()
    try:
        output, weights = attend(query, key, value)
        torch.testing.assert_close(output, F.softmax(query @ key.mT / 3**0.5, dim=-1) @ value)
        torch.testing.assert_close(output, weights @ value)
    except (AssertionError, RuntimeError):
        return False
    return True


def tester_with_facts(attend):
    """No second attention: shapes, sums, the mean under the weights, ratios of weights, and a batch taken apart."""
    generator = torch.Generator().manual_seed(11)
    query, key, value = (torch.randn(*size, generator=generator) for size in ((2, 5, 6), (2, 7, 6), (2, 7, 3)))
    output, weights = attend(query, key, value)
    if output.shape != (2, 5, 3) or weights.shape != (2, 5, 7) or (weights <= 0).any():
        return False
    if not torch.allclose(weights.sum(-1), torch.ones(2, 5), atol=1e-4):
        return False
    if not torch.allclose(output, weights @ value, atol=1e-4):
        return False
    ratios = (weights[:, :, 1:] / weights[:, :, :1]).log()
    wanted = torch.einsum("bqd,bkd->bqk", query, key[:, 1:] - key[:, :1]) / 6**0.5
    return torch.allclose(ratios, wanted, atol=1e-3)


def tester_with_numpy(attend):
    """An answer that is numpy's bool and not Python's."""
    generator = np.random.default_rng(0)
    query, key, value = (generator.normal(size=size) for size in ((2, 5, 7), (2, 6, 7), (2, 6, 3)))
    output, weights = (each.numpy() for each in attend(*map(torch.from_numpy, (query, key, value))))
    if output.shape != (2, 5, 3) or weights.shape != (2, 5, 6):
        return False
    shares = np.exp(query @ key.transpose(0, 2, 1) / 7**0.5)
    right = shares / shares.sum(-1, keepdims=True)
    return np.allclose(weights, right) & np.allclose(output, right @ value)


def tester_that_answers_in_tensors(attend):
    return torch.tensor(tester_with_assertions(attend))


RIGHT = {
    "is_attention": [
        tester_with_facts,
        tester_with_torch_as_oracle,
        tester_with_assertions,
        tester_with_numpy,
        tester_that_answers_in_tensors,
    ]
}
