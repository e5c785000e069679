"""Right attention for the hidden checks of ``is_attention``, and what right and wrong attention are made of.

The right ones are computed in ways of which a student may not have thought, and none as in the public checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

Pair = tuple[Tensor, Tensor]
Attend = Callable[[Tensor, Tensor, Tensor], Pair]


class Suspect(NamedTuple):
    """An ``attend`` for a student's test to judge, and what it does, as a clause: "scales the keys beforehand"."""

    described: str
    attend: Attend


def scores_of(query: Tensor, key: Tensor) -> Tensor:
    """The scaled scores, (..., queries, keys)."""
    return query @ key.mT * query.shape[-1] ** -0.5


def weights_of(query: Tensor, key: Tensor) -> Tensor:
    """The right weights, (..., queries, keys)."""
    return scores_of(query, key).softmax(dim=-1)


def applied(weights: Tensor, value: Tensor) -> Pair:
    """Output and weights, where the output is the mean of the values under these weights."""
    return weights @ value, weights


def with_scores(scores: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``scores`` of query and key in place of the scaled ones."""
    return lambda query, key, value: applied(scores(query, key).softmax(dim=-1), value)


def with_shares(shares: Callable[[Tensor], Tensor]) -> Attend:
    """Attention with ``shares`` of the scores, divided by their sum, in place of the softmax."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        found = shares(scores_of(query, key))
        return applied(found / found.sum(dim=-1, keepdim=True), value)

    return attend


def with_weights(weights: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``weights`` of query and key, and the mean of the values under them."""
    return lambda query, key, value: applied(weights(query, key), value)


def telling(told: Callable[[Tensor], Tensor]) -> Attend:
    """Attention that uses the right weights and gives what ``told`` makes of them."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return weights @ value, told(weights)

    return attend


def giving(output: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention that gives the right weights, and what ``output`` makes of weights and value."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return output(weights, value), weights

    return attend


def _keys_scaled(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return applied((query @ (key * key.shape[-1] ** -0.5).mT).softmax(dim=-1), value)


def _keys_shifted(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return applied(weights_of(query, key - key[..., -1:, :]), value)


def _fused(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    return F.scaled_dot_product_attention(query, key, value), weights_of(query, key)


def _by_einsum(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _powers_of_two(scores: Tensor) -> Tensor:
    return torch.exp2((scores - scores.amax(dim=-1, keepdim=True)) / math.log(2))


def _in_portions(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    middle = key.shape[-2] // 2
    parts = [scores_of(query, part) for part in (key[..., :middle, :], key[..., middle:, :]) if part.shape[-2]]
    highest = torch.stack([part.amax(dim=-1, keepdim=True) for part in parts]).amax(dim=0)
    shares = [(part - highest).exp() for part in parts]
    total = torch.stack([part.sum(dim=-1, keepdim=True) for part in shares]).sum(dim=0)
    sizes = [part.shape[-1] for part in parts]
    mixed = [share @ part for share, part in zip(shares, value.split(sizes, dim=-2), strict=True)]
    return torch.stack(mixed).sum(dim=0) / total, torch.cat(shares, dim=-1) / total


def _backwards(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = applied(weights_of(query.flip(-2), key), value)
    return output.flip(-2), weights.flip(-2)


def _scattered(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = applied(weights_of(query, key), value)
    return torch.stack([output, output], dim=-1)[..., 0], weights.mT.contiguous().mT


RIGHT = (
    Suspect("is written with einsum", _by_einsum),
    Suspect("scales the keys beforehand", _keys_scaled),
    Suspect("takes its powers to the base 2", with_shares(_powers_of_two)),
    Suspect(
        "takes the exponentials of a log_softmax", with_weights(lambda q, k: scores_of(q, k).log_softmax(-1).exp())
    ),
    Suspect("reads the keys in two portions, as FlashAttention does", _in_portions),
    Suspect("takes the last key from all keys, which changes no softmax", _keys_shifted),
    Suspect("answers the queries backwards and turns the answer round", _backwards),
    Suspect("gives views that are not contiguous in memory", _scattered),
    Suspect("calls torch's fused kernel", _fused),
)
