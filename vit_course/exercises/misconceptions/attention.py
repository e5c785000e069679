"""Known mistakes of lesson 03's first exercise, made with torch's fused attention or with naive loops."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_course.exercises.checks.attention import output_of, scaled_dot_product_attention, weights_of

Pair = tuple[Tensor, Tensor]

LOOK_UP = "03_attention, A soft look-up"
ASKS = "03_attention, Every token asks, every token answers"
ROOT = "03_attention, Why divide by the root"


def _applied(weights: Tensor, value: Tensor) -> Pair:
    """Output and weights, where the output is the mean of the values under these weights."""
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


@scaled_dot_product_attention.misconception("How large does a dot product get when head_dim grows?", ROOT)
def scaling_forgotten(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores go into the softmax as they are, so the rows grow sharper with every dimension of a head."""
    return _applied(weights_of(query, key, scale=1.0), value)


@scaled_dot_product_attention.misconception("Which grows like head_dim: the scores' variance, or their size?", ROOT)
def divided_by_head_dim_without_the_root(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are divided by head_dim itself, so the rows come out too flat."""
    return _applied(weights_of(query, key, scale=1 / query.shape[-1]), value)


@scaled_dot_product_attention.misconception("Should the scaling make the scores larger or smaller?", ROOT)
def multiplied_by_the_root(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are multiplied by the root, so the rows come out sharper still than without any scaling."""
    return _applied(weights_of(query, key, scale=query.shape[-1] ** 0.5), value)


@scaled_dot_product_attention.misconception("Over how many terms does one dot product sum?", ROOT)
def root_of_the_number_of_keys(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are divided by the root of the number of keys, the size of another axis."""
    return _applied(weights_of(query, key, scale=key.shape[-2] ** -0.5), value)


@scaled_dot_product_attention.misconception("What does a softmax do to sums, and what does a factor after it?", ROOT)
def scaled_after_the_softmax(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scaling stands behind the softmax, so the weights no longer sum to one."""
    return _applied(weights_of(query, key, scale=1.0) * query.shape[-1] ** -0.5, value)


@scaled_dot_product_attention.misconception("Who shares out its attention: each query, or each key?", ASKS)
def softmax_over_the_queries(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The softmax runs down the queries, so each key shares itself out among those who ask."""
    return _applied(weights_of(key, query).mT, value)


@scaled_dot_product_attention.misconception("Which axis does your softmax run over when nobody tells it?", ASKS)
def softmax_without_a_dim(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Without a dim torch guesses an axis counted from the front: the batch's or the heads'."""
    scores = _scores(query, key)
    dim = 0 if scores.ndim in (1, 3) else 1
    return _applied(scores.softmax(dim), value)


@scaled_dot_product_attention.misconception("Over which axis does the sum run when nobody tells it?", ASKS)
def one_softmax_for_everything(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The exponentials are divided by the sum of all of them, so one query's attention depends on all the others."""
    scores = _scores(query, key)
    return _applied(scores.flatten().softmax(0).reshape(scores.shape), value)


@scaled_dot_product_attention.misconception("What makes a row of scores sum to one?", ASKS)
def softmax_forgotten(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores themselves weigh the values: they may be negative, and do not sum to one."""
    return _applied(_scores(query, key), value)


@scaled_dot_product_attention.misconception("What is exp(1000) in a computer?", ASKS)
def softmax_that_overflows(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """exp is taken of the scores as they are: infinite from 89 on in float32, and from 12 on in float16."""
    exponentials = torch.exp(_scores(query, key))
    return _applied(exponentials / exponentials.sum(-1, keepdim=True), value)


@scaled_dot_product_attention.misconception("Does a patch have to wait for those to its right?", ASKS)
def causal_mask(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A query sees only the keys up to its own place, as in a language model; an image has no such order."""
    return _applied(weights_of(query, key, causal=True), value)


@scaled_dot_product_attention.misconception(
    "Which number of key stands in row 0, column 1 of what you multiply by?", ASKS
)
def key_reshaped_where_transposed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """key is reshaped to (head_dim, keys): the right shape, but the numbers of different keys are mixed."""
    mixed = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]).mT
    return _applied(weights_of(query, mixed), value)


@scaled_dot_product_attention.misconception("Which of the three tensors holds what is mixed in the end?", LOOK_UP)
def values_never_used(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The weights mix the keys, and the values are never read."""
    return _applied(weights_of(query, key), key)


@scaled_dot_product_attention.misconception("Which tensor comes first in the `return` that was asked for?", ASKS)
def weights_before_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Both tensors are right, in the wrong order."""
    return weights_of(query, key), output_of(query, key, value)


@scaled_dot_product_attention.misconception("What did the exercise ask for besides the output?", ASKS)
def output_alone(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Only the output is returned."""
    return output_of(query, key, value)


@scaled_dot_product_attention.misconception("Which of your intermediate tensors has rows that sum to one?", ASKS)
def scores_returned_as_weights(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output is right, but the second tensor holds the scores from before the softmax."""
    return output_of(query, key, value), _scores(query, key)


@scaled_dot_product_attention.misconception("Is the tensor that you scale yours, or the caller's?", ROOT)
def query_scaled_in_place(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The query is divided in place, so the caller's tensor shrinks with every call."""
    query /= query.shape[-1] ** 0.5
    return _applied(weights_of(query, key, scale=1.0), value)


@scaled_dot_product_attention.misconception("Which line takes a tensor out of the graph?", ASKS)
def weights_out_of_the_graph(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The weights are detached, so query and key never learn."""
    return _applied(weights_of(query, key).detach(), value)


@scaled_dot_product_attention.misconception("Which dtype came in, and which one goes out?", ASKS)
def left_in_float32(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Everything is turned into float32 first, and nothing is turned back."""
    return _applied(weights_of(query.float(), key.float()), value.float())


@scaled_dot_product_attention.misconception("Which number is the root of 8, and what is left of it?", ROOT)
def root_cut_to_a_whole_number(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The root of head_dim is cut to a whole number, which is right for 4 and 64 and wrong for 8 and 32."""
    return _applied(weights_of(query, key, scale=1 / math.isqrt(query.shape[-1])), value)


@scaled_dot_product_attention.misconception("Which of your tensors tells what a key has to offer?", ASKS)
def queries_compared_with_queries(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are products of queries with queries, so no key is ever read."""
    return _applied(weights_of(query, query), value)


@scaled_dot_product_attention.misconception("What has to shrink before the softmax: the scores, or its result?", ROOT)
def output_scaled_and_not_the_scores(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output is divided by the root of head_dim, and the scores go into the softmax as they are."""
    output, weights = _applied(weights_of(query, key, scale=1.0), value)
    return output * query.shape[-1] ** -0.5, weights


@scaled_dot_product_attention.misconception("Should two calls with the same inputs agree?", ASKS)
def weights_dropped(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A dropout that nobody asked for sets some weights to zero, other ones in every call."""
    return _applied(F.dropout(weights_of(query, key), 0.1), value)


@scaled_dot_product_attention.misconception("What does squeeze do to a batch of one?", ASKS)
def axes_of_size_one_squeezed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A squeeze takes the first axis away where it has the size 1, as a batch of one image has."""
    return output_of(query, key, value).squeeze(0), weights_of(query, key).squeeze(0)


@scaled_dot_product_attention.misconception("Where does torch put a new tensor when you do not say where?", ASKS)
def mask_made_on_the_cpu(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A tensor is made on the CPU and meets the scores, which lie on the GPU when the inputs do."""
    nothing_hidden = torch.zeros(query.shape[-2], key.shape[-2], device="cpu", dtype=query.dtype)
    weights = (query @ key.mT * query.shape[-1] ** -0.5 + nothing_hidden).softmax(-1)
    return _applied(weights, value)


def _scores(query: Tensor, key: Tensor) -> Tensor:
    """The scaled scores, one query at a time."""
    rows = [(key * query[..., [index], :]).sum(-1) for index in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) * query.shape[-1] ** -0.5
