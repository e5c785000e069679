"""Known mistakes of those who test: each is a test of attention that says yes or no where it should not."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from vit_course.exercises.checks.attention import output_of, weights_of
from vit_course.exercises.checks.is_attention import is_attention

Attend = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
TEST = "03_attention, A test that knows attention"


class _Case(NamedTuple):
    """Inputs, and what attention gives on them."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    weights: Tensor


@cache
def _case(*leading: int, queries: int = 5, keys: int = 7, head_dim: int = 4, value_dim: int = 6) -> _Case:
    """Random inputs, the same at every call; the sizes are pairwise distinct unless told."""
    generator = torch.Generator().manual_seed(0)
    sizes = (queries, head_dim), (keys, head_dim), (keys, value_dim)
    query, key, value = (torch.randn(*leading, *size, generator=generator) for size in sizes)
    return _Case(query, key, value, output_of(query, key, value), weights_of(query, key))


def _near(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, atol=1e-4)


def _as_torch_says(attend: Attend, case: _Case) -> bool:
    output, weights = attend(*case[:3])
    return _near(output, case.output) and _near(weights, case.weights)


@is_attention.misconception("Which wrong attend would make your test say False?", TEST)
def never_says_no(attend: Attend) -> bool:
    """The test says True whatever it is given."""
    return True


@is_attention.misconception("Which of your facts does your own attention fail, and by how much?", TEST)
def never_says_yes(attend: Attend) -> bool:
    """The test said False to everything that it was asked about, right or wrong: a fact is wrong, or too strict."""
    return False


@is_attention.misconception("What do your `return` lines say when a fact holds: True or False?", TEST)
def answer_turned_round(attend: Attend) -> bool:
    """The test says True to wrong attention and False to right attention."""
    return not _as_torch_says(attend, _case(2, 3))


@is_attention.misconception("Can two tensors of one shape hold different numbers?", TEST)
def shapes_only(attend: Attend) -> bool:
    """The test looks at the shapes and never at a number."""
    output, weights = attend(*_case(2, 3)[:3])
    return output.shape == (2, 3, 5, 6) and weights.shape == (2, 3, 5, 7)


@is_attention.misconception("How many rows sum to one without being attention?", TEST)
def rows_that_sum_to_one_and_nothing_more(attend: Attend) -> bool:
    """The test asks whether the rows of the weights sum to one, which a plain mean does too."""
    _, weights = attend(*_case(2, 3)[:3])
    return _near(weights.sum(-1), torch.ones(weights.shape[:-1]))


@is_attention.misconception("Who shares out its attention: each query, or each key?", TEST)
def columns_that_sum_to_one(attend: Attend) -> bool:
    """The test sums the weights over the queries, but they sum to one over the keys."""
    _, weights = attend(*_case(2, 3)[:3])
    return _near(weights.sum(-2), torch.ones(weights.sum(-2).shape))


@is_attention.misconception("Do 0.1 + 0.2 and 0.3 agree to the last digit in a computer?", TEST)
def compared_to_the_last_digit(attend: Attend) -> bool:
    """The test asks for exact equality, but right answers differ in their last digits."""
    output, weights = attend(*_case(2, 3)[:3])
    return torch.equal(output, _case(2, 3).output) and torch.equal(weights, _case(2, 3).weights)


@is_attention.misconception(
    "When the tokens trade places, what happens to the answers?", "03_attention, Shuffle the tokens"
)
def shuffled_tokens_and_the_same_output(attend: Attend) -> bool:
    """The test wants the same output for shuffled tokens, but the outputs are shuffled along with the queries."""
    x, order = _case(2).query, [3, 0, 4, 1, 2]
    return _near(attend(x, x, x)[0], attend(x[:, order], x[:, order], x[:, order])[0])


@is_attention.misconception("Could a test notice that two tensors were swapped when they are the same tensor?", TEST)
def query_is_key_is_value(attend: Attend) -> bool:
    """One tensor plays query, key and value, so nobody can see which of them was used where."""
    x = _case(2).query
    return _as_torch_says(attend, _Case(x, x, x, output_of(x, x, x), weights_of(x, x)))


@is_attention.misconception("Which of your axes could stand for another one?", TEST)
def every_axis_of_the_same_size(attend: Attend) -> bool:
    """All axes have the same size, so the root of the number of keys passes for the root of head_dim."""
    return _as_torch_says(attend, _case(4, queries=4, keys=4, head_dim=4, value_dim=4))


@is_attention.misconception("How would you notice that two images were mixed up?", TEST)
def one_matrix_and_no_batch(attend: Attend) -> bool:
    """The test tries a single image, so it cannot see what happens between the images of a batch."""
    return _as_torch_says(attend, _case())


@is_attention.misconception("What is the softmax of scores that are all the same, scaled or not?", TEST)
def inputs_of_ones(attend: Attend) -> bool:
    """All inputs are ones, so all scores are equal and every weighting gives the same numbers."""
    query, key, value, _, _ = (torch.ones_like(each) for each in _case(2))
    return _as_torch_says(attend, _Case(query, key, value, output_of(query, key, value), weights_of(query, key)))


@is_attention.misconception("attend gives two tensors. Where does your test read the second?", TEST)
def weights_not_looked_at(attend: Attend) -> bool:
    """The test looks at the output and never at the weights."""
    return _near(attend(*_case(2, 3)[:3])[0], _case(2, 3).output)


@is_attention.misconception("attend gives two tensors. Where does your test read the first?", TEST)
def output_not_looked_at(attend: Attend) -> bool:
    """The test looks at the weights and never at the output."""
    return _near(attend(*_case(2, 3)[:3])[1], _case(2, 3).weights)


@is_attention.misconception("Which weights would pass your test that no softmax ever made?", TEST)
def any_weights_will_do(attend: Attend) -> bool:
    """The test asks that rows sum to one and that the output is the mean under the weights, whatever they are."""
    output, weights = attend(*_case(2, 3)[:3])
    return rows_that_sum_to_one_and_nothing_more(attend) and _near(output, weights @ _case(2, 3).value)


@is_attention.misconception("Is there one number in your test that you worked out by hand?", TEST)
def properties_without_a_number(attend: Attend) -> bool:
    """All that is tested holds for every scale too: sums, means, batches and shuffled keys, but never a weight."""
    query, key, value, _, _ = _case(2, 3)
    output, weights = attend(query, key, value)
    order = [3, 0, 6, 5, 2, 4, 1]
    shuffled = attend(query, key[:, :, order], value[:, :, order])[0]
    alone = attend(query[1:], key[1:], value[1:])[0]
    right_size = output.shape == (2, 3, 5, 6) and weights.shape == (2, 3, 5, 7)
    return right_size and any_weights_will_do(attend) and _near(shuffled, output) and _near(alone, output[1:])


@is_attention.misconception("What should is_attention give back when a fact does not hold?", TEST)
def asserts_where_it_should_answer(attend: Attend) -> bool:
    """The test stops with an AssertionError where it should return False."""
    assert _as_torch_says(attend, _case(2, 3)), "this is no attention"
    return True
