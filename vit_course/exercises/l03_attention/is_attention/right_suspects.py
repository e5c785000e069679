"""The right suspects of ``is_attention``, and what right and wrong ones are made of.

All of them take query (..., queries, head_dim), key (..., keys, head_dim) and value (..., keys, value_dim) and give
output and weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.impostors import Suspect
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import Pair, apply_weights, output_of
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import weights_of as weights_in_float64

Attend = Callable[[Tensor, Tensor, Tensor], Pair]


def scores_of(query: Tensor, key: Tensor) -> Tensor:
    """The scaled scores, (..., queries, keys)."""
    return query @ key.mT * query.shape[-1] ** -0.5


def weights_of(query: Tensor, key: Tensor) -> Tensor:
    """The right weights, (..., queries, keys)."""
    return scores_of(query, key).softmax(dim=-1)


def make_attention_with_scores(scores: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``scores`` of query and key in place of the scaled ones."""
    return lambda query, key, value: apply_weights(scores(query, key).softmax(dim=-1), value)


def make_attention_with_shares(shares: Callable[[Tensor], Tensor]) -> Attend:
    """Attention with ``shares`` of the scores, divided by their sum, in place of the softmax."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        found = shares(scores_of(query, key))
        return apply_weights(found / found.sum(dim=-1, keepdim=True), value)

    return attend


def make_attention_with_weights(weights: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention with ``weights`` of query and key, and the mean of the values under them."""
    return lambda query, key, value: apply_weights(weights(query, key), value)


def make_attention_reporting_other_weights(transform: Callable[[Tensor], Tensor]) -> Attend:
    """Attention that uses the right weights and gives what ``transform`` makes of them."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return weights @ value, transform(weights)

    return attend


def make_attention_with_output(output: Callable[[Tensor, Tensor], Tensor]) -> Attend:
    """Attention that gives the right weights, and what ``output`` makes of weights and value."""

    def attend(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        weights = weights_of(query, key)
        return output(weights, value), weights

    return attend


def replace_all_but_first_image(first: Tensor, others: Tensor) -> Tensor:
    """The first image of ``first``, and the other images of ``others``."""
    return first if first.ndim < 3 else torch.cat((first[:1], others[1:]))


def shift_images_by_one(batch: Tensor) -> Tensor:
    """In the place of each image the one before it."""
    return batch if batch.ndim < 3 else batch.roll(1, dims=0)


def replace_images_by_mean(batch: Tensor) -> Tensor:
    """In the place of each image the mean of all."""
    return batch if batch.ndim < 3 else batch.mean(dim=0, keepdim=True).expand_as(batch)


def compute_distances_of_places(query: Tensor, key: Tensor) -> Tensor:
    """Measure how far apart the numbers of query and key are, (queries, keys)."""
    numbers, others = (torch.arange(each.shape[-2], device=each.device) for each in (query, key))
    return (numbers[:, None] - others).abs()


def make_attention_without_key_number(place: Callable[[int], int]) -> Attend:
    """Attention whose scaled scores take one number of each key for 0: the one at ``place`` of head_dim."""

    def score_without_key_number(query: Tensor, key: Tensor) -> Tensor:
        kept = torch.arange(key.shape[-1], device=key.device) != place(key.shape[-1])
        return scores_of(query, key * kept)

    return make_attention_with_scores(score_without_key_number)


def attend_in_float64(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Both by the oracle."""
    return output_of(query, key, value), weights_in_float64(query, key)


def attend_by_fused_kernel(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output by torch's fused kernel."""
    return F.scaled_dot_product_attention(query, key, value), weights_of(query, key)


def _attend_with_scaled_queries(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    scaled = query * query.shape[-1] ** -0.5
    return F.scaled_dot_product_attention(scaled, key, value, scale=1.0), weights_of(query, key)


def _attend_query_by_query(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    answers = [_attend_with_one_query(query[..., [place], :], key, value) for place in range(query.shape[-2])]
    output, weights = (torch.cat(each, dim=-2) for each in zip(*answers, strict=True))
    return output, weights


def _attend_with_one_query(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Attention of a single query, its softmax written out key by key with the largest score subtracted."""
    scores = [(query * key[..., [place], :]).sum(-1, keepdim=True) for place in range(key.shape[-2])]
    scaled = torch.cat(scores, dim=-1) / query.shape[-1] ** 0.5
    shares = torch.exp(scaled - scaled.amax(-1, keepdim=True))
    weights = shares / shares.sum(-1, keepdim=True)
    mixed = torch.zeros_like(value[..., :1, :])
    for place in range(key.shape[-2]):
        mixed = mixed + weights[..., [place]] * value[..., [place], :]
    return mixed, weights


def _attend_with_noncontiguous_results(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = attend_in_float64(query, key, value)
    return torch.stack([output, output], dim=-1)[..., 0], weights.mT.contiguous().mT


RIGHT = (
    Suspect("computes in float64 and rounds at the end", attend_in_float64),
    Suspect("calls torch's fused kernel", attend_by_fused_kernel),
    Suspect("scales the query before it meets the key", _attend_with_scaled_queries),
    Suspect("answers one query at a time, in a loop", _attend_query_by_query),
    Suspect("gives tensors that are not contiguous in memory", _attend_with_noncontiguous_results),
)


def _attend_by_einsum(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    scores = torch.einsum("...qd,...kd->...qk", query, key) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def _exponentiate_in_base_two(scores: Tensor) -> Tensor:
    return torch.exp2((scores - scores.amax(dim=-1, keepdim=True)) / math.log(2))


def _attend_to_keys_in_halves(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    middle = key.shape[-2] // 2
    parts = [scores_of(query, part) for part in (key[..., :middle, :], key[..., middle:, :]) if part.shape[-2]]
    highest = torch.stack([part.amax(dim=-1, keepdim=True) for part in parts]).amax(dim=0)
    shares = [(part - highest).exp() for part in parts]
    total = torch.stack([part.sum(dim=-1, keepdim=True) for part in shares]).sum(dim=0)
    sizes = [part.shape[-1] for part in parts]
    mixed = [share @ part for share, part in zip(shares, value.split(sizes, dim=-2), strict=True)]
    return torch.stack(mixed).sum(dim=0) / total, torch.cat(shares, dim=-1) / total


def _attend_in_reversed_query_order(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    output, weights = apply_weights(weights_of(query.flip(-2), key), value)
    return output.flip(-2), weights.flip(-2)


MORE_RIGHT = (
    Suspect("is written with einsum", _attend_by_einsum),
    Suspect(
        "scales the keys beforehand",
        make_attention_with_weights(lambda q, k: (q @ (k * k.shape[-1] ** -0.5).mT).softmax(-1)),
    ),
    Suspect("takes its powers to the base 2", make_attention_with_shares(_exponentiate_in_base_two)),
    Suspect(
        "takes the exponentials of a log_softmax",
        make_attention_with_weights(lambda q, k: scores_of(q, k).log_softmax(-1).exp()),
    ),
    Suspect("reads the keys in two portions, as FlashAttention does", _attend_to_keys_in_halves),
    Suspect(
        "takes the last key from all keys, which changes no softmax",
        make_attention_with_weights(lambda q, k: weights_of(q, k - k[..., -1:, :])),
    ),
    Suspect("answers the queries backwards and turns the answer round", _attend_in_reversed_query_order),
)
