"""`is_attention`: a test that the student writes, tested with right and with wrong attention.

The known mistakes are tests that say yes or no where they should not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from vit_course.exercises.impostors import LineUp
from vit_course.exercises.l03_attention import LESSON, attention_cases
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import output_of, weights_of

LINE_UP = LineUp("an attend", "your own attention", attention_cases.RIGHT, attention_cases.WRONG)

is_attention = Exercise("is_attention", LESSON, in_training=InTraining.UNSEEN)


@is_attention.check(guard=True)
def right_attention_passes(student: Student, probe: Probe) -> None:
    """Right attention passes, however it was computed."""
    LINE_UP.expect_right_passes(student)


@is_attention.check(needs=right_attention_passes)
def it_catches_wrong_shapes(student: Student, probe: Probe) -> None:
    """It catches output or weights of a wrong shape."""
    LINE_UP.expect_caught(
        student, "shape", "Which shapes do you expect when queries, keys and both dimensions all differ in size?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_a_wrong_axis(student: Student, probe: Probe) -> None:
    """It catches a softmax over the queries, over everything, or none at all."""
    LINE_UP.expect_caught(student, "axis", "Which sums of the weights do you know without computing any attention?")


@is_attention.check(needs=right_attention_passes)
def it_catches_missing_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were not scaled."""
    LINE_UP.expect_caught(
        student, "no scale", "For which small query and keys can you work out the weights with pencil and paper?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_other_scaling(student: Student, probe: Probe) -> None:
    """It catches scores that were scaled by something else than the root of head_dim."""
    LINE_UP.expect_caught(
        student, "other scale", "Which of your sizes are equal by accident, so that one can stand for the other?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_altered_queries_and_keys(student: Student, probe: Probe) -> None:
    """It catches scores that leave out a number of each query and key, or a key's length."""
    look = "Which numbers could be missing from the scores of your pencil example, and nothing would change?"
    LINE_UP.expect_caught(student, "altered", look)


@is_attention.check(needs=right_attention_passes)
def it_catches_other_values(student: Student, probe: Probe) -> None:
    """It catches an output that is no mean of the values under the weights."""
    LINE_UP.expect_caught(student, "values", "When you know weights and values, what must the output be?")


@is_attention.check(needs=right_attention_passes)
def it_catches_a_mask(student: Student, probe: Probe) -> None:
    """It catches a mask that hides keys by their place."""
    LINE_UP.expect_caught(
        student, "mask", "What happens to right attention when the keys are shuffled, together with their values?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_foreign_weights(student: Student, probe: Probe) -> None:
    """It catches weights that do not belong to the output."""
    LINE_UP.expect_caught(
        student, "belonging", "Does your test look at output and weights apart, or also at the two together?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_mixed_batches(student: Student, probe: Probe) -> None:
    """It catches images of a batch that get mixed."""
    LINE_UP.expect_caught(
        student, "batch", "Does the answer for one image change when the other images of the batch do?"
    )


@is_attention.check(needs=right_attention_passes)
def it_catches_a_constant_output(student: Student, probe: Probe) -> None:
    """It catches an output that does not depend on the query."""
    LINE_UP.expect_caught(student, "constant", "Which numbers would tell two different queries apart?")


@is_attention.check(needs=right_attention_passes)
def it_catches_what_is_no_softmax(student: Student, probe: Probe) -> None:
    """It catches weights that sum to one but are no softmax of the scores."""
    LINE_UP.expect_caught(
        student, "not a softmax", "Which one example, worked out by hand, would nail down the numbers?"
    )


is_attention.example("""
>>> is_attention(lambda query, key, value: (value, query))
False
""")


Attention = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
TEST = "03_attention, A test for attention"


class _Case(NamedTuple):
    """Inputs, and what attention gives on them."""

    query: Tensor
    key: Tensor
    value: Tensor
    output: Tensor
    weights: Tensor


@cache
def _case(*leading: int, queries: int = 5, keys: int = 7, head_dim: int = 6, value_dim: int = 4) -> _Case:
    """Random inputs, the same at every call; the sizes are pairwise distinct unless told."""
    generator = torch.Generator().manual_seed(0)
    sizes = (queries, head_dim), (keys, head_dim), (keys, value_dim)
    query, key, value = (torch.randn(*leading, *size, generator=generator) for size in sizes)
    return _Case(query, key, value, output_of(query, key, value), weights_of(query, key))


def _near(first: Tensor, second: Tensor) -> bool:
    return first.shape == second.shape and torch.allclose(first, second, atol=1e-4)


def _as_torch_says(attend: Attention, case: _Case) -> bool:
    output, weights = attend(*case[:3])
    return _near(output, case.output) and _near(weights, case.weights)


@is_attention.misconception("For which wrong attend does your test return False?", TEST)
def never_says_no(attend: Attention) -> bool:
    """The test returns True for everything."""
    return True


@is_attention.misconception("Which of your facts does your own attention fail, and by how much?", TEST)
def never_says_yes(attend: Attention) -> bool:
    """The test returned False for everything, right or wrong: a fact is wrong, or too strict."""
    return False


@is_attention.misconception("What do your `return` lines say when a fact holds: True or False?", TEST)
def answer_turned_round(attend: Attention) -> bool:
    """The test returns True for wrong attention and False for right attention."""
    return not _as_torch_says(attend, _case(2, 3))


@is_attention.misconception("Can two tensors of one shape hold different numbers?", TEST)
def shapes_only(attend: Attention) -> bool:
    """The test looks at the shapes and never at a number."""
    output, weights = attend(*_case(2, 3)[:3])
    return output.shape == (2, 3, 5, 4) and weights.shape == (2, 3, 5, 7)


@is_attention.misconception("How many rows sum to one without being attention?", TEST)
def rows_that_sum_to_one_and_nothing_more(attend: Attention) -> bool:
    """The test asks whether the rows of the weights sum to one, which a plain mean does too."""
    _, weights = attend(*_case(2, 3)[:3])
    return _near(weights.sum(-1), torch.ones(weights.shape[:-1]))


@is_attention.misconception("Whose weights have to sum to one: those of each query, or those of each key?", TEST)
def columns_that_sum_to_one(attend: Attention) -> bool:
    """The test sums the weights over the queries, but they sum to one over the keys."""
    _, weights = attend(*_case(2, 3)[:3])
    return _near(weights.sum(-2), torch.ones(weights.sum(-2).shape))


@is_attention.misconception("Do 0.1 + 0.2 and 0.3 agree to the last digit in a computer?", TEST)
def compared_to_the_last_digit(attend: Attention) -> bool:
    """The test asks for exact equality, but right answers differ in their last digits."""
    output, weights = attend(*_case(2, 3)[:3])
    return torch.equal(output, _case(2, 3).output) and torch.equal(weights, _case(2, 3).weights)


@is_attention.misconception(
    "When the tokens trade places, what happens to the answers?", "03_attention, Shuffle the tokens"
)
def shuffled_tokens_and_the_same_output(attend: Attention) -> bool:
    """The test wants the same output for shuffled tokens, but the outputs are shuffled along with the queries."""
    x, order = _case(2).query, [3, 0, 4, 1, 2]
    return _near(attend(x, x, x)[0], attend(x[:, order], x[:, order], x[:, order])[0])


@is_attention.misconception("Could a test notice that two tensors were swapped when they are the same tensor?", TEST)
def query_is_key_is_value(attend: Attention) -> bool:
    """One tensor is query, key and value, so the test cannot show which of them was used where."""
    x = _case(2).query
    return _as_torch_says(attend, _Case(x, x, x, output_of(x, x, x), weights_of(x, x)))


@is_attention.misconception("Which of your axes could stand for another one?", TEST)
def every_axis_of_the_same_size(attend: Attention) -> bool:
    """All axes have the same size, so the root of the number of keys passes for the root of head_dim."""
    return _as_torch_says(attend, _case(5, queries=5, keys=5, head_dim=5, value_dim=5))


@is_attention.misconception("How would you notice that two images were mixed up?", TEST)
def one_matrix_and_no_batch(attend: Attention) -> bool:
    """The test tries a single image, so it cannot see what happens between the images of a batch."""
    return _as_torch_says(attend, _case())


@is_attention.misconception("What is the softmax of scores that are all the same, scaled or not?", TEST)
def inputs_of_ones(attend: Attention) -> bool:
    """All inputs are ones, so all scores are equal and every weighting gives the same numbers."""
    query, key, value, _, _ = (torch.ones_like(each) for each in _case(2))
    return _as_torch_says(attend, _Case(query, key, value, output_of(query, key, value), weights_of(query, key)))


@is_attention.misconception("attend gives two tensors. Where does your test read the second?", TEST)
def weights_not_looked_at(attend: Attention) -> bool:
    """The test looks at the output and never at the weights."""
    return _near(attend(*_case(2, 3)[:3])[0], _case(2, 3).output)


@is_attention.misconception("attend gives two tensors. Where does your test read the first?", TEST)
def output_not_looked_at(attend: Attention) -> bool:
    """The test looks at the weights and never at the output."""
    return _near(attend(*_case(2, 3)[:3])[1], _case(2, 3).weights)


@is_attention.misconception("Which weights would pass your test that no softmax ever made?", TEST)
def any_weights_will_do(attend: Attention) -> bool:
    """The test asks that rows sum to one and that the output is the mean under the weights, whatever they are."""
    output, weights = attend(*_case(2, 3)[:3])
    return rows_that_sum_to_one_and_nothing_more(attend) and _near(output, weights @ _case(2, 3).value)


@is_attention.misconception("Is there one number in your test that you worked out by hand?", TEST)
def properties_without_a_number(attend: Attention) -> bool:
    """All that is tested holds for every scale too: sums, means, batches and shuffled keys, but never a weight."""
    query, key, value, _, _ = _case(2, 3)
    output, weights = attend(query, key, value)
    order = [3, 0, 6, 5, 2, 4, 1]
    shuffled = attend(query, key[:, :, order], value[:, :, order])[0]
    alone = attend(query[1:], key[1:], value[1:])[0]
    right_size = output.shape == (2, 3, 5, 4) and weights.shape == (2, 3, 5, 7)
    return right_size and any_weights_will_do(attend) and _near(shuffled, output) and _near(alone, output[1:])


@is_attention.misconception("Which plain number could stand for the root of your head_dim?", TEST)
def one_head_dim_only(attend: Attention) -> bool:
    """Every test has a head_dim of 4, so an attention that always divides the scores by 2 passes."""
    return _as_torch_says(attend, _case(2, 3, head_dim=4, value_dim=6))


@is_attention.misconception("Which numbers of your example could be left out, and nothing would change?", TEST)
def zeros_in_the_example(attend: Attention) -> bool:
    """The example has zeros where queries and keys end, so nobody sees whether those numbers count."""
    query, key, value, _, _ = (each.clone() for each in _case(2, 3))
    query[..., -2:], key[..., -2:] = 0, 0
    return _as_torch_says(attend, _Case(query, key, value, output_of(query, key, value), weights_of(query, key)))


@is_attention.misconception("How large is the largest score of your test?", TEST)
def small_scores_only(attend: Attention) -> bool:
    """All scores of the test are small, so nobody sees what becomes of large ones."""
    query, key, value, _, _ = _case(2, 3)
    query = query / 3
    return _as_torch_says(attend, _Case(query, key, value, output_of(query, key, value), weights_of(query, key)))


@is_attention.misconception("What should is_attention give back when a fact does not hold?", TEST)
def asserts_where_it_should_answer(attend: Attention) -> bool:
    """The test stops with an AssertionError where it should return False."""
    assert _as_torch_says(attend, _case(2, 3)), "this is no attention"
    return True
