"""`scaled_dot_product_attention`: scores, softmax, and the mixed values.

The oracle is torch's fused ``F.scaled_dot_product_attention``; for one-hot values it returns the weights. The known
mistakes are made with it or with naive loops.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    RANDOM,
    expect_device_of_input,
    expect_gradients_of_inputs,
    expect_inputs_unchanged,
    expect_same_twice,
    has_changed_numbers,
)
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON

OUTPUT_AXES = ("image", "head", "query", "dimension")
WEIGHT_AXES = ("image", "head", "query", "key")
# roots of neither head_dim are whole, and what is rounded from the one is wrong for the other
QUERIES, KEYS, HEAD_DIM, OTHER_HEAD_DIM, VALUE_DIM = 5, 7, 8, 3, 6
LARGE = 17, 20, 24, 19
CPU = torch.device("cpu")
FROM_THE_INSIDE = "Go through the formula from the inside out. Which step did you leave out, or do elsewhere?"
LAST_PRODUCT = "Which two tensors meet in the last product, and which axis do they share?"
Triple = tuple[Tensor, Tensor, Tensor]


def weights_of(query: Tensor, key: Tensor, scale: float | None = None, causal: bool = False) -> Tensor:
    """The oracle of the weights, (..., queries, keys), by torch's fused kernel.

    ``scale`` multiplies the scores, 1 / √head_dim by default; ``causal`` hides the later keys.
    """
    keys = key.shape[-2]
    one_hot = torch.eye(keys, dtype=torch.float64, device=key.device).expand(*key.shape[:-2], keys, keys)
    found = F.scaled_dot_product_attention(query.double(), key.double(), one_hot, is_causal=causal, scale=scale)
    return found.to(query.dtype)


def output_of(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The oracle of the output, (..., queries, value_dim), by torch's fused kernel."""
    return F.scaled_dot_product_attention(query.double(), key.double(), value.double()).to(value.dtype)


def expect_pair_of_tensors(result: object, name: str, first: str, second: str) -> tuple[Tensor, Tensor]:
    """``result`` as the pair that it should be, or a failure that says what it is instead."""
    if isinstance(result, tuple | list) and len(result) == 2:
        for given, part in zip(result, (first, second), strict=True):
            if given is None:
                look = f"Which of your lines makes {part}, and what stands in that place of the `return`?"
                raise Failure(f"{name} gives None for {part}", "a tensor", look)
        return result[0], result[1]
    kind = type(result).__name__
    what = (
        "None" if result is None else f"a {kind}" + (f" of {len(result)}" if isinstance(result, tuple | list) else "")
    )
    look = "Does every path end in a `return`?" if result is None else "What does your `return` line give back?"
    raise Failure(f"{name} gives {what}", f"two tensors, {first} and {second}", look)


scaled_dot_product_attention = Exercise("scaled_dot_product_attention", LESSON)


def draw_query_key_value(
    probe: Probe,
    leading: Sequence[int],
    sizes: Sequence[int] = (QUERIES, KEYS, HEAD_DIM, VALUE_DIM),
    scale: float = 1.0,
    dtype: torch.dtype = torch.float32,
) -> Triple:
    """query, key and value for sizes (queries, keys, head_dim, value_dim); ``scale`` is the std of query and key."""
    queries, keys, head_dim, value_dim = sizes
    query = probe.normal(*leading, queries, head_dim, scale=scale, dtype=dtype)
    key = probe.normal(*leading, keys, head_dim, scale=scale, dtype=dtype)
    return query, key, probe.normal(*leading, keys, value_dim, dtype=dtype)


def draw_inputs(probe: Probe) -> Triple:
    """query, key and value with a batch in front."""
    batch, *sizes = probe.sizes(5, shown=(2, QUERIES, KEYS, HEAD_DIM, VALUE_DIM))
    return draw_query_key_value(probe, (batch,), sizes)


def call_and_expect_pair(student: Student, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The student's output and weights."""
    return expect_pair_of_tensors(student(query, key, value), student.name, "the output", "the weights")


def _expect_right_weights(student: Student, inputs: Triple, name: str, look: str = FROM_THE_INSIDE) -> Tensor:
    """Fail unless the weights are right; of wrong ones say first whether another call gives others still.

    Gives the student's output.
    """
    query, key, _ = inputs
    output, weights = call_and_expect_pair(student, *inputs)

    def describe_random_or_badly_scaled(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        return (
            RANDOM
            if has_changed_numbers(call_and_expect_pair(student, *inputs)[1], actual)
            else describe_too_sharp_or_flat(actual, expected)
        )

    expect_equal(
        weights,
        weights_of(query, key),
        name,
        _name_last_axes(WEIGHT_AXES, query),
        describe_random_or_badly_scaled,
        look,
    )
    return output


def expect_right_output_and_weights(student: Student, inputs: Triple, described: str = "", look: str = "") -> Tensor:
    """Fail unless output and weights are right; gives the student's output."""
    output = _expect_right_weights(student, inputs, f"the weights tensor{described}", look or FROM_THE_INSIDE)
    axes = _name_last_axes(OUTPUT_AXES, inputs[0])
    expect_equal(output, output_of(*inputs), f"the output{described}", axes, look=look or LAST_PRODUCT)
    return output


def _name_last_axes(axes: tuple[str, ...], query: Tensor) -> tuple[str, ...]:
    """The last of the names of axes, as many as there are; none where there are more axes than names."""
    return axes[4 - query.ndim :] if query.ndim <= 4 else ()


def expect_drawn_inputs_right(student: Student, probe: Probe) -> None:
    """Output and weights are right."""
    expect_right_output_and_weights(student, draw_inputs(probe))


@scaled_dot_product_attention.check(guard=True)
def output_and_weights_have_their_shapes(student: Student, probe: Probe) -> None:
    """It returns the output (…, queries, value_dim) and the weights (…, queries, keys)."""
    output, weights = call_and_expect_pair(student, *draw_query_key_value(probe, (2, 3)))
    expect_tensor(output, (2, 3, QUERIES, VALUE_DIM), "the output")
    expect_tensor(weights, (2, 3, QUERIES, KEYS), "the second tensor, the weights,")


@scaled_dot_product_attention.check(needs=output_and_weights_have_their_shapes, worth=0.5, guard=True)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same inputs give the same output twice."""
    inputs = draw_query_key_value(probe, (2, 3))
    expect_same_twice(student, lambda: call_and_expect_pair(student, *inputs)[0], 2, 3, QUERIES, VALUE_DIM)


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance)
def the_weights_of_a_query_sum_to_one(student: Student, probe: Probe) -> None:
    """The weights of each query sum to one over the keys."""
    _, weights = call_and_expect_pair(student, *draw_query_key_value(probe, (2, 3)))
    sums = expect_tensor(weights, (2, 3, QUERIES, KEYS), "the weights").detach()
    over_keys = sums.sum(dim=-1)
    if (over_keys - 1).abs().max() < 1e-4:  # float32 sums of seven numbers are right to 1e-6
        return
    axis = next((name for dim, name in enumerate(WEIGHT_AXES) if (sums.sum(dim=dim) - 1).abs().max() < 1e-4), "")
    elsewhere = f"; they sum to 1 along the axis of the {axis}" if axis else ""
    least, most = f"{over_keys.min():.3g}", f"{over_keys.max():.3g}"
    sums_are = f"are all {least}" if least == most else f"lie between {least} and {most}"
    raise Failure(
        f"the sums over the keys {sums_are}{elsewhere}",
        "1 for every query",
        "Along which axis should the weights compete with each other?",
    )


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance, points=2.7)
def the_weights_follow_the_formula(student: Student, probe: Probe) -> None:
    """The weights follow the formula for any number of queries, keys, dimensions."""
    shown = 2, 3, QUERIES, KEYS, HEAD_DIM, OTHER_HEAD_DIM
    batch, heads, queries, keys, head_dim, value_dim = probe.sizes(6, shown=shown)
    few, many = sorted((queries, keys))
    for leading, sizes in (
        ((batch, heads), (few, many, head_dim, value_dim)),
        ((batch, heads), (many, many, head_dim, value_dim)),
        ((heads, batch), (many, few, value_dim, head_dim)),
        ((2,), probe.sizes(4, low=17, high=40, shown=LARGE)),
    ):
        _expect_right_weights(
            student, draw_query_key_value(probe, leading, sizes), f"the weights tensor, with a head_dim of {sizes[2]},"
        )


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance, points=1)
def the_output_is_a_weighted_mean_of_the_values(student: Student, probe: Probe) -> None:
    """The output of a query is the mean of the values under its weights."""
    batch, heads, *sizes = probe.sizes(6, shown=(2, 3, QUERIES, KEYS, HEAD_DIM, VALUE_DIM))
    query, key, value = draw_query_key_value(probe, (batch, heads), sizes)
    large = draw_query_key_value(probe, (3,), probe.sizes(4, low=17, high=40, shown=LARGE))
    same = query, key, value[..., :1, :].expand_as(value).contiguous()
    mean_of_equals = "What is the mean of equal numbers, whatever their weights?"
    for inputs, name, look in (
        ((query, key, value), "the output", LAST_PRODUCT),
        (large, "the output", LAST_PRODUCT),
        (
            draw_query_key_value(probe, (batch, heads), sizes),
            "the output for other numbers of the same sizes",
            LAST_PRODUCT,
        ),
        (same, "the output for values that are equal for all keys", mean_of_equals),
    ):
        output, _ = call_and_expect_pair(student, *inputs)
        expect_equal(output, output_of(*inputs), name, _name_last_axes(OUTPUT_AXES, inputs[0]), look=look)


def _draw_as_many_queries_as_keys(probe: Probe) -> Triple:
    """As many queries as keys, so that what is compared with what raises no error."""
    return draw_query_key_value(probe, (2, 3), (KEYS, KEYS, HEAD_DIM, VALUE_DIM))


def no_key_is_read(student: Student, probe: Probe) -> bool:
    """Say whether other keys give the same weights."""
    query, key, value = _draw_as_many_queries_as_keys(probe)
    return are_close(
        call_and_expect_pair(student, query, key, value)[1],
        call_and_expect_pair(student, query, key.flip(-2) * 2, value)[1],
    )


def the_rows_are_the_keys(student: Student, probe: Probe) -> bool:
    """Say whether the weights are those of each key over the queries."""
    query, key, value = _draw_as_many_queries_as_keys(probe)
    return are_close(call_and_expect_pair(student, query, key, value)[1], weights_of(key, query))


def _draw_large_integers(probe: Probe, dtype: torch.dtype, largest: int) -> Triple:
    """Integers, and a head_dim whose root is a power of two: scores are exact, so no rounding can be magnified."""
    batch, queries, keys, value_dim = probe.sizes(4, shown=(2, QUERIES, KEYS, VALUE_DIM))
    query, key = (probe.integers(batch, rows, 16, high=2 * largest + 1).to(dtype) - largest for rows in (queries, keys))
    return query, key, probe.normal(batch, keys, value_dim, dtype=dtype)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values, points=0.8)
def large_scores_do_no_harm(student: Student, probe: Probe) -> None:
    """Scores in the thousands give finite weights."""
    look = "What does exp make of large numbers, and what may you take away from all scores of a row?"
    expect_right_output_and_weights(student, _draw_large_integers(probe, torch.float32, 64), look=look)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values, guard=True, points=0.7)
def the_dtype_is_kept(student: Student, probe: Probe) -> None:
    """float64 stays float64 and float16 stays float16, with finite and right numbers."""
    batch, heads, queries, keys, value_dim = probe.sizes(5, shown=(2, 3, QUERIES, KEYS, VALUE_DIM))
    # the root is exact, so that one that was taken in float32 is right too; and no other size is as large
    sizes = queries, keys, probe.choice((16, 25), shown=9), value_dim
    # scores of 10 and more in float64, so that a detour through float32 shows; a score of 10 in float16 is right
    # to 0.005, which moves a weight by less than the tolerance of 1e-2
    for dtype, scale in ((torch.float64, 2.5), (torch.float16, 1.0)):
        expect_right_output_and_weights(student, draw_query_key_value(probe, (batch, heads), sizes, scale, dtype))
    expect_right_output_and_weights(
        student, _draw_large_integers(probe, torch.float16, 8), " in float16 with scores of a hundred"
    )


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values, points=0.8)
def any_leading_axes_will_do(student: Student, probe: Probe) -> None:
    """It works without a batch, with heads, with more axes, with axes of size 1, and on non-contiguous tensors."""
    first, second, third, *sizes = probe.sizes(7, shown=(2, 3, 4, QUERIES, KEYS, HEAD_DIM, VALUE_DIM))
    queries, keys, head_dim, value_dim = sizes
    look = "Do you count the axes from the front or from the back?"
    for leading, these in (
        ((), sizes),
        ((third,), (keys, queries, value_dim, head_dim)),
        ((first, second, third), sizes),
        ((1, second), sizes),
        ((1, 1), (1, keys, head_dim, value_dim)),
        ((second, 1), (queries, 1, 1, 1)),
    ):
        expect_right_output_and_weights(
            student, draw_query_key_value(probe, leading, these), f" with {len(leading) + 2} axes", look
        )
    query, key, value = (each.mT.contiguous().mT for each in draw_query_key_value(probe, (first, second), sizes))
    expect_right_output_and_weights(student, (query, key, value), " for non-contiguous inputs")
    query, key, value = (each.transpose(0, 1) for each in draw_query_key_value(probe, (second, first), sizes))
    expect_right_output_and_weights(student, (query, key, value), " for non-contiguous inputs")


@scaled_dot_product_attention.check(
    needs=the_output_is_a_weighted_mean_of_the_values, points=0.7, first=expect_drawn_inputs_right
)
def the_gradient_flows_to_all_three(student: Student, probe: Probe) -> None:
    """A gradient flows back to query, key and value."""
    inputs = draw_inputs(probe)
    found = student.input_gradients(*inputs)
    names = "query", "key", "value"
    if cut_off := [name for name, gradient in zip(names, found, strict=True) if gradient is None]:
        raise Failure(
            f"the output does not depend on {' and '.join(cut_off)}, as far as autograd can tell",
            "a gradient for query, key and value",
            "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy or torch.tensor?",
        )

    def attend_with_detached_weights(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return output_of(query, key, value), weights_of(query, key).detach()

    def attend_with_attached_weights(query: Tensor, key: Tensor, value: Tensor) -> Pair:
        return output_of(query, key, value), weights_of(query, key)

    least, whole = (
        Student({student.name: each}).input_gradients(*inputs)
        for each in (attend_with_detached_weights, attend_with_attached_weights)
    )
    pairs = ((each, wanted) for each, wanted in zip(found, least, strict=True) if each is not None)
    if not all(wanted is not None and are_close(each, wanted) for each, wanted in pairs):  # nobody asked for more
        expect_gradients_of_inputs(found, whole, names)


@scaled_dot_product_attention.check(needs=output_and_weights_have_their_shapes, guard=True)
def the_inputs_are_left_alone(student: Student, probe: Probe) -> None:
    """query, key and value are not changed."""
    student(*draw_inputs(probe))
    expect_inputs_unchanged(student)


@scaled_dot_product_attention.check(
    needs=the_output_is_a_weighted_mean_of_the_values, worth=0.5, guard=True, points=0.4
)
def it_computes_where_its_inputs_lie(student: Student, probe: Probe, device: torch.device = CPU) -> None:
    """Output and weights lie on the device of the inputs."""
    query, key, value = (each.to(device) for each in draw_inputs(probe))
    expect_right_output_and_weights(student, (query, key, value))
    expect_device_of_input(student, query, key, value)


scaled_dot_product_attention.example(
    """
>>> query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
>>> key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
>>> output, weights = scaled_dot_product_attention(query, key, torch.tensor([[10.0], [20.0]]))
>>> weights, output
(tensor([[0.7500, 0.2500]]), tensor([[12.5000]]))
""",
    points=0.25,
    first=expect_drawn_inputs_right,
)


def describe_too_sharp_or_flat(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
    """Words for weights that are right up to a factor on their scores, None for weights that are wrong otherwise."""
    found, right = (each.detach().double().clamp_min(1e-12).log() for each in (actual, expected))
    found, right = (each - each.mean(dim=-1, keepdim=True) for each in (found, right))
    factor = float((found * right).sum() / right.square().sum())
    if abs(factor - 1) < 1e-2 or factor <= 0 or not torch.allclose(found, factor * right, atol=1e-2):
        return None
    kind = "sharp" if factor > 1 else "flat"
    seen = f"every row is too {kind}: the scores behind it are {factor:.3g} times what they should be"
    return seen, "a factor of 1"


Pair = tuple[Tensor, Tensor]


def apply_weights(weights: Tensor, value: Tensor) -> Pair:
    """Output and weights, where the output is the mean of the values under these weights."""
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def scores_of(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """The scores, one query at a time, times ``scale``, 1 / √head_dim by default."""
    rows = [(key * query[..., [index], :]).sum(-1) for index in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) * (query.shape[-1] ** -0.5 if scale is None else scale)


Tensors = tuple[Tensor, ...]


read_mistakes(scaled_dot_product_attention, __name__)
declare_pairs(scaled_dot_product_attention, Edits(quick=True))
