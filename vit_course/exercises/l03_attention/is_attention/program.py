"""A test for attention: one batch of random tensors, against the formula in float64."""

import math
from collections.abc import Callable

import torch

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]


def near(found: torch.Tensor, right: torch.Tensor) -> bool:
    """Whether both have one shape and the same numbers, up to rounding."""
    return found.shape == right.shape and torch.allclose(found.double(), right.double(), atol=1e-4)


def is_attention(attend: Attend) -> bool:
    """Whether ``attend`` gives the output and the weights of scaled dot-product attention."""
    batch, queries, keys, head_dim, value_dim = (2, 3), 5, 7, 6, 4
    # bug "shuffled tokens and the same output": batch, queries, keys, head_dim, value_dim = (2,), 5, 5, 6, 6
    # bug "query is key is value": batch, queries, keys, head_dim, value_dim = (2,), 5, 5, 6, 6
    # bug "every axis of the same size": batch, queries, keys, head_dim, value_dim = (5,), 5, 5, 5, 5
    # bug "one matrix and no batch": batch, queries, keys, head_dim, value_dim = (), 5, 7, 6, 4
    # bug "inputs of ones": batch, queries, keys, head_dim, value_dim = (2,), 5, 7, 6, 4
    # bug "one head dim only": batch, queries, keys, head_dim, value_dim = (2, 3), 5, 7, 4, 6
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(*batch, queries, head_dim, generator=generator)
    # bug "small scores only": query = torch.randn(*batch, queries, head_dim, generator=generator) / 3
    key = torch.randn(*batch, keys, head_dim, generator=generator)
    value = torch.randn(*batch, keys, value_dim, generator=generator)
    # bug "shuffled tokens and the same output": key = value = query
    # bug "query is key is value": key = value = query
    # bug "inputs of ones": value = torch.ones(*batch, keys, value_dim)
    # bug "inputs of ones": query, key = torch.ones_like(query), torch.ones_like(key)
    # bug "zeros in the example": value = torch.randn(*batch, keys, value_dim, generator=generator)
    # bug "zeros in the example": query[..., -2:], key[..., -2:] = 0, 0
    right_weights = torch.softmax(query.double() @ key.double().mT / math.sqrt(head_dim), dim=-1)
    right_output = right_weights @ value.double()
    output, weights = attend(query, key, value)
    same_output, same_weights = near(output, right_output), near(weights, right_weights)
    return same_output and same_weights
    # bug "never says no": return True
    # bug "never says yes": return False
    # bug "answer turned round": return not (same_output and same_weights)
    # bug "shapes only": return output.shape == right_output.shape and weights.shape == right_weights.shape
    # bug "rows that sum to one and nothing more": return near(weights.sum(-1), torch.ones(weights.shape[:-1]))
    # bug "columns that sum to one": return near(weights.sum(-2), torch.ones(weights.sum(-2).shape))
    # bug "compared to the last digit": same_output = torch.equal(output, right_output.float())
    # bug "compared to the last digit": return same_output and torch.equal(weights, right_weights.float())
    # bug "shuffled tokens and the same output": order = [3, 0, 4, 1, 2]
    # bug "shuffled tokens and the same output": shuffled, _ = attend(query[:, order], key[:, order], value[:, order])
    # bug "shuffled tokens and the same output": return near(output, shuffled)
    # bug "weights not looked at": return same_output
    # bug "output not looked at": return same_weights
    # bug "any weights will do": sums_to_one = near(weights.sum(-1), torch.ones(weights.shape[:-1]))
    # bug "any weights will do": return sums_to_one and near(output, weights @ value)
    # bug "properties without a number": order = [3, 0, 6, 5, 2, 4, 1]
    # bug "properties without a number": shuffled, _ = attend(query, key[:, :, order], value[:, :, order])
    # bug "properties without a number": alone, _ = attend(query[1:], key[1:], value[1:])
    # bug "properties without a number": if output.shape != right_output.shape or weights.shape != right_weights.shape:
    # bug "properties without a number":     return False
    # bug "properties without a number": sums_to_one = near(weights.sum(-1), torch.ones(weights.shape[:-1]))
    # bug "properties without a number": is_a_mean = near(output, weights @ value)
    # bug "properties without a number": return sums_to_one and is_a_mean and near(shuffled, output) and near(alone, output[1:])
    # bug "asserts where it should answer": assert same_output and same_weights, "this is no attention"
    # bug "asserts where it should answer": return True
