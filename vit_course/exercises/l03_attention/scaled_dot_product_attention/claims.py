"""`scaled_dot_product_attention`: scores, softmax, and the mixed values.

The oracle is torch's fused ``F.scaled_dot_product_attention``; for one-hot values it returns the weights. The known
mistakes are made with it or with naive loops.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_same_twice
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention import LESSON

OUTPUT_AXES = ("image", "head", "query", "dimension")
WEIGHT_AXES = ("image", "head", "query", "key")
# roots of neither head_dim are whole, and what is rounded from the one is wrong for the other
QUERIES, KEYS, HEAD_DIM, OTHER_HEAD_DIM, VALUE_DIM = 5, 7, 8, 3, 6


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


def both_tensors(result: object, name: str, first: str, second: str) -> tuple[Tensor, Tensor]:
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


def _inputs(
    probe: Probe, *leading: int, scale: float = 1.0, dtype: torch.dtype = torch.float32, head_dim: int = HEAD_DIM
) -> tuple[Tensor, Tensor, Tensor]:
    """query, key and value; ``scale`` is the standard deviation of query and key."""
    query = probe.normal(*leading, QUERIES, head_dim, scale=scale, dtype=dtype)
    key = probe.normal(*leading, KEYS, head_dim, scale=scale, dtype=dtype)
    return query, key, probe.normal(*leading, KEYS, VALUE_DIM, dtype=dtype)


def _both(student: Student, query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
    """The student's output and weights."""
    return both_tensors(student(query, key, value), student.name, "the output", "the weights")


@scaled_dot_product_attention.check(guard=True)
def output_and_weights_have_their_shapes(student: Student, probe: Probe) -> None:
    """It returns the output (…, queries, value_dim) and the weights (…, queries, keys)."""
    output, weights = _both(student, *_inputs(probe, 2, 3))
    expect_tensor(output, (2, 3, QUERIES, VALUE_DIM), "the output")
    expect_tensor(weights, (2, 3, QUERIES, KEYS), "the second tensor, the weights,")


@scaled_dot_product_attention.check(needs=output_and_weights_have_their_shapes, worth=0.5, guard=True)
def nothing_is_left_to_chance(student: Student, probe: Probe) -> None:
    """The same inputs give the same output twice."""
    inputs = _inputs(probe, 2, 3)
    expect_same_twice(student, lambda: _both(student, *inputs)[0], 2, 3, QUERIES, VALUE_DIM)


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance)
def the_weights_of_a_query_sum_to_one(student: Student, probe: Probe) -> None:
    """The weights of each query sum to one over the keys."""
    _, weights = _both(student, *_inputs(probe, 2, 3))
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


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance)
def the_weights_follow_the_formula(student: Student, probe: Probe) -> None:
    """The weights are those of the formula, for as many or fewer queries than keys and for several head_dims."""
    for queries, head_dim in ((QUERIES, HEAD_DIM), (KEYS, HEAD_DIM), (QUERIES, OTHER_HEAD_DIM)):
        query, key = (probe.normal(2, 3, count, head_dim) for count in (queries, KEYS))
        _, weights = _both(student, query, key, probe.normal(2, 3, KEYS, VALUE_DIM))
        name = f"the weights tensor, with a head_dim of {head_dim},"
        look = "Go through the formula from the inside out. Which step did you leave out, or do elsewhere?"
        expect_equal(weights, weights_of(query, key), name, WEIGHT_AXES, too_sharp_or_flat, look)


@scaled_dot_product_attention.check(needs=nothing_is_left_to_chance)
def the_output_is_a_weighted_mean_of_the_values(student: Student, probe: Probe) -> None:
    """The output of a query is the mean of the values under its weights."""
    inputs = _inputs(probe, 2, 3)
    output, _ = _both(student, *inputs)
    look = "Which two tensors meet in the last product, and which axis do they share?"
    expect_equal(output, output_of(*inputs), "the output", OUTPUT_AXES, look=look)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values)
def large_scores_do_no_harm(student: Student, probe: Probe) -> None:
    """Scores in the thousands give finite weights."""
    query, key, value = _inputs(probe, 2, scale=40.0)
    output, weights = _both(student, query, key, value)
    look = "What does exp make of large numbers, and what may you take away from all scores of a row?"
    expect_equal(weights, weights_of(query, key), "the weights tensor", WEIGHT_AXES[1:], look=look)
    expect_equal(output, output_of(query, key, value), "the output", OUTPUT_AXES[1:], look=look)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values, guard=True)
def the_dtype_is_kept(student: Student, probe: Probe) -> None:
    """float64 stays float64 and float16 stays float16, with finite and right numbers."""
    # a score of 14 in float16 is right to 0.008, which moves a weight by less than the tolerance of 1e-2
    for dtype, scale in ((torch.float64, 1.0), (torch.float16, 2.0)):
        # the root is exact, so that one that was taken in float32 is right too
        query, key, value = _inputs(probe, 2, 3, scale=scale, dtype=dtype, head_dim=9)
        output, weights = _both(student, query, key, value)
        expect_equal(weights, weights_of(query, key), "the weights tensor", WEIGHT_AXES)
        expect_equal(output, output_of(query, key, value), "the output", OUTPUT_AXES)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values)
def any_leading_axes_will_do(student: Student, probe: Probe) -> None:
    """It works without a batch, with heads, with more axes, with axes of size 1, and on non-contiguous tensors."""
    for leading in ((), (4,), (2, 3, 4), (1, 3)):
        query, key, value = _inputs(probe, *leading)
        output, weights = _both(student, query, key, value)
        name = f"with {len(leading) + 2} axes"
        look = "Do you count the axes from the front or from the back?"
        expect_equal(weights, weights_of(query, key), f"the weights tensor {name}", look=look)
        expect_equal(output, output_of(query, key, value), f"the output {name}", look=look)
    query, key, value = (each.transpose(0, 1) for each in _inputs(probe, 3, 2))
    output, weights = _both(student, query, key, value)
    expect_equal(output, output_of(query, key, value), "the output for non-contiguous inputs", OUTPUT_AXES)


@scaled_dot_product_attention.check(needs=output_and_weights_have_their_shapes)
def the_gradient_flows_to_all_three(student: Student, probe: Probe) -> None:
    """A gradient flows back to query, key and value."""
    names = ("query", "key", "value")
    cut_off = []
    for index, name in enumerate(names):
        inputs = list(_inputs(probe, 2))
        inputs[index].requires_grad_()
        output, _ = _both(student, *inputs)
        if not expect_tensor(output, (2, QUERIES, VALUE_DIM), "the output").requires_grad:
            cut_off.append(name)
    student.record.append(("without gradient", tuple(cut_off)))
    if cut_off:
        raise Failure(
            f"the output does not depend on {' and '.join(cut_off)}, as far as autograd can tell",
            "a gradient for query, key and value",
            "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy or torch.tensor?",
        )


@scaled_dot_product_attention.check(needs=output_and_weights_have_their_shapes, guard=True)
def the_inputs_are_left_alone(student: Student, probe: Probe) -> None:
    """query, key and value are not changed."""
    student(*_inputs(probe, 2))
    expect_left_alone(student)


@scaled_dot_product_attention.check(needs=the_output_is_a_weighted_mean_of_the_values, worth=0.5, guard=True)
def it_computes_where_its_inputs_lie(student: Student, probe: Probe) -> None:
    """Output and weights lie on the device of the inputs."""
    expect_device_of_input(student, *_inputs(probe, 2))


scaled_dot_product_attention.example("""
>>> query = torch.tensor([[2 * math.log(3), 0.0, 0.0, 0.0]])
>>> key = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
>>> output, weights = scaled_dot_product_attention(query, key, torch.tensor([[10.0], [20.0]]))
>>> weights, output
(tensor([[0.7500, 0.2500]]), tensor([[12.5000]]))
""")


def too_sharp_or_flat(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
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


def applied(weights: Tensor, value: Tensor) -> Pair:
    """Output and weights, where the output is the mean of the values under these weights."""
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def scores_of(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """The scores, one query at a time, times ``scale``, 1 / √head_dim by default."""
    rows = [(key * query[..., [index], :]).sum(-1) for index in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) * (query.shape[-1] ** -0.5 if scale is None else scale)


Tensors = tuple[Tensor, ...]


read_mistakes(scaled_dot_product_attention, __name__)
declare(scaled_dot_product_attention, Edits(quick=True))
