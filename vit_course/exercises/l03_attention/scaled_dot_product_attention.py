"""`scaled_dot_product_attention`: scores, softmax, and the mixed values.

The oracle is torch's fused ``F.scaled_dot_product_attention``; for one-hot values it returns the weights. The known
mistakes are made with it or with naive loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_same_twice
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
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

LOOK_UP = "03_attention, A soft look-up"
TOKENS = "03_attention, Every token asks, every token answers"
ROOT = "03_attention, Why divide by the root"


def applied(weights: Tensor, value: Tensor) -> Pair:
    """Output and weights, where the output is the mean of the values under these weights."""
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


def scores_of(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """The scores, one query at a time, times ``scale``, 1 / √head_dim by default."""
    rows = [(key * query[..., [index], :]).sum(-1) for index in range(query.shape[-2])]
    return torch.stack(rows, dim=-2) * (query.shape[-1] ** -0.5 if scale is None else scale)


@scaled_dot_product_attention.misconception("How large does a dot product get when head_dim grows?", ROOT)
def scaling_forgotten(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores go into the softmax as they are, so the rows grow sharper with every dimension of a head."""
    return applied(weights_of(query, key, scale=1.0), value)


@scaled_dot_product_attention.misconception("Which grows like head_dim: the scores' variance, or their size?", ROOT)
def divided_by_head_dim_without_the_root(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are divided by head_dim itself, so the rows come out too flat."""
    return applied(weights_of(query, key, scale=1 / query.shape[-1]), value)


@scaled_dot_product_attention.misconception("Should the scaling make the scores larger or smaller?", ROOT)
def multiplied_by_the_root(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are multiplied by the root, so the rows come out sharper still than without any scaling."""
    return applied(weights_of(query, key, scale=query.shape[-1] ** 0.5), value)


@scaled_dot_product_attention.misconception("Over how many terms does one dot product sum?", ROOT)
def root_of_the_number_of_keys(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are divided by the root of the number of keys, the size of another axis."""
    return applied(weights_of(query, key, scale=key.shape[-2] ** -0.5), value)


@scaled_dot_product_attention.misconception("What does a softmax do to sums, and what does a factor after it?", ROOT)
def scaled_after_the_softmax(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scaling stands behind the softmax, so the weights no longer sum to one."""
    return applied(weights_of(query, key, scale=1.0) * query.shape[-1] ** -0.5, value)


@scaled_dot_product_attention.misconception(
    "Whose weights have to sum to one: those of each query, or those of each key?", TOKENS
)
def softmax_over_the_queries(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The softmax runs down the queries, so the weights of each key sum to one, and not those of each query."""
    return applied(weights_of(key, query).mT, value)


@scaled_dot_product_attention.misconception("Which axis does your softmax run over when no dim is given?", TOKENS)
def softmax_without_a_dim(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Without a dim torch guesses an axis counted from the front: the batch's or the heads'."""
    scores = scores_of(query, key)
    dim = 0 if scores.ndim in (1, 3) else 1
    return applied(scores.softmax(dim), value)


@scaled_dot_product_attention.misconception("Over which axis does the sum run when no dim is given?", TOKENS)
def one_softmax_for_everything(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The exponentials are divided by the sum of all of them, so one query's attention depends on all the others."""
    scores = scores_of(query, key)
    return applied(scores.flatten().softmax(0).reshape(scores.shape), value)


@scaled_dot_product_attention.misconception("What makes a row of scores sum to one?", TOKENS)
def softmax_forgotten(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores themselves weigh the values: they may be negative, and do not sum to one."""
    return applied(scores_of(query, key), value)


@scaled_dot_product_attention.misconception("What is exp(1000) in a computer?", TOKENS)
def softmax_that_overflows(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """exp is taken of the scores as they are: infinite from 89 on in float32, and from 12 on in float16."""
    exponentials = torch.exp(scores_of(query, key))
    return applied(exponentials / exponentials.sum(-1, keepdim=True), value)


@scaled_dot_product_attention.misconception("Does a patch have to wait for those to its right?", TOKENS)
def causal_mask(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A query sees only the keys up to its own place, as in a language model; an image has no such order."""
    return applied(weights_of(query, key, causal=True), value)


@scaled_dot_product_attention.misconception(
    "Which number of key stands in row 0, column 1 of what you multiply by?", TOKENS
)
def key_reshaped_where_transposed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """key is reshaped to (head_dim, keys): the right shape, but the numbers of different keys are mixed."""
    mixed = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]).mT
    return applied(weights_of(query, mixed), value)


@scaled_dot_product_attention.misconception("Which of the three tensors holds what is mixed in the end?", LOOK_UP)
def values_never_used(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The weights mix the keys, and the values are never read."""
    return applied(weights_of(query, key), key)


@scaled_dot_product_attention.misconception("Which tensor comes first in the `return` that was asked for?", TOKENS)
def weights_before_output(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Both tensors are right, in the wrong order."""
    return weights_of(query, key), output_of(query, key, value)


@scaled_dot_product_attention.misconception("What did the exercise ask for besides the output?", TOKENS)
def output_alone(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Only the output is returned."""
    return output_of(query, key, value)


@scaled_dot_product_attention.misconception("Which of your intermediate tensors has rows that sum to one?", TOKENS)
def scores_returned_as_weights(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output is right, but the second tensor holds the scores from before the softmax."""
    return output_of(query, key, value), scores_of(query, key)


@scaled_dot_product_attention.misconception("Is the tensor that you scale yours, or the caller's?", ROOT)
def query_scaled_in_place(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The query is divided in place, so the caller's tensor shrinks with every call."""
    query /= query.shape[-1] ** 0.5
    return applied(weights_of(query, key, scale=1.0), value)


@scaled_dot_product_attention.misconception("Which line takes a tensor out of the graph?", TOKENS)
def weights_out_of_the_graph(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The weights are detached, so query and key never learn."""
    return applied(weights_of(query, key).detach(), value)


@scaled_dot_product_attention.misconception("Which dtype came in, and which one goes out?", TOKENS)
def left_in_float32(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """Everything is turned into float32 first, and nothing is turned back."""
    return applied(weights_of(query.float(), key.float()), value.float())


@scaled_dot_product_attention.misconception("Which number is the root of 8, and what is left of it?", ROOT)
def root_cut_to_a_whole_number(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The root of head_dim is cut to a whole number, which is right for 4 and 64 and wrong for 8 and 32."""
    return applied(weights_of(query, key, scale=1 / math.isqrt(query.shape[-1])), value)


@scaled_dot_product_attention.misconception("With which of the three tensors have the queries to be compared?", TOKENS)
def queries_compared_with_queries(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The scores are products of queries with queries, so no key is ever read."""
    return applied(weights_of(query, query), value)


@scaled_dot_product_attention.misconception("What has to shrink before the softmax: the scores, or its result?", ROOT)
def output_scaled_and_not_the_scores(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """The output is divided by the root of head_dim, and the scores go into the softmax as they are."""
    output, weights = applied(weights_of(query, key, scale=1.0), value)
    return output * query.shape[-1] ** -0.5, weights


@scaled_dot_product_attention.misconception("Should two calls with the same inputs agree?", TOKENS)
def weights_dropped(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A dropout that nobody asked for sets some weights to zero, other ones in every call."""
    return applied(F.dropout(weights_of(query, key), 0.1), value)


@scaled_dot_product_attention.misconception("What does squeeze do to a batch of one?", TOKENS)
def axes_of_size_one_squeezed(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A squeeze takes the first axis away where it has the size 1, as a batch of one image has."""
    return output_of(query, key, value).squeeze(0), weights_of(query, key).squeeze(0)


@scaled_dot_product_attention.misconception("Where does torch put a new tensor when you do not say where?", TOKENS)
def mask_made_on_the_cpu(query: Tensor, key: Tensor, value: Tensor) -> Pair:
    """A tensor is made on the CPU and meets the scores, which lie on the GPU when the inputs do."""
    nothing_hidden = torch.zeros(query.shape[-2], key.shape[-2], device="cpu", dtype=query.dtype)
    weights = (query @ key.mT * query.shape[-1] ** -0.5 + nothing_hidden).softmax(-1)
    return applied(weights, value)


Tensors = tuple[Tensor, ...]


def _made(
    *given: Tensor,
    scale: Callable[[Tensor, Tensor], float] = lambda query, key: query.shape[-1] ** -0.5,
    transform_key: Callable[[Tensor], Tensor] = lambda key: key,
    compute_weights: Callable[[Tensor, Tensor, float], Tensor] = weights_of,
    rescale_weights: Callable[[Tensor, Tensor], Tensor] = lambda weights, query: weights,
    transform_weights: Callable[[Tensor], Tensor] = lambda weights: weights,
    mixed: int = 2,
    postprocess: Callable[[Tensor, Tensor, Tensor], Any] = lambda output, weights, scores: (output, weights),
    preprocess: Callable[[Tensors], Tensors] = lambda inputs: inputs,
) -> Any:
    query, key, value = preprocess(given)
    factor, turned_key = scale(query, key), transform_key(key)
    weights = transform_weights(rescale_weights(compute_weights(query, turned_key, factor), query))
    output = torch.einsum("...qk,...kv->...qv", weights, (query, key, value)[mixed])
    return postprocess(output, weights, scores_of(query, turned_key, factor))


def _without_dim(query: Tensor, key: Tensor, scale: float) -> Tensor:
    scores = scores_of(query, key, scale)
    return scores.softmax(0 if scores.ndim in (1, 3) else 1)


def _over_everything(query: Tensor, key: Tensor, scale: float) -> Tensor:
    scores = scores_of(query, key, scale)
    return scores.flatten().softmax(0).reshape(scores.shape)


def _overflowing(query: Tensor, key: Tensor, scale: float) -> Tensor:
    exponentials = torch.exp(scores_of(query, key, scale))
    return exponentials / exponentials.sum(-1, keepdim=True)


def _reshaped(key: Tensor) -> Tensor:
    return key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]).mT


def _shrunk(inputs: Tensors) -> Tensors:
    query, key, value = inputs
    before = query.clone()
    query /= query.shape[-1] ** 0.5
    return before, key, value


declare(
    scaled_dot_product_attention,
    Parts(
        _made,
        {
            scaling_forgotten: {"scale": lambda query, key: 1.0},
            divided_by_head_dim_without_the_root: {"scale": lambda query, key: 1 / query.shape[-1]},
            multiplied_by_the_root: {"scale": lambda query, key: query.shape[-1] ** 0.5},
            root_cut_to_a_whole_number: {"scale": lambda query, key: 1 / math.isqrt(query.shape[-1])},
            root_of_the_number_of_keys: {"scale": lambda query, key: key.shape[-2] ** -0.5},
            scaled_after_the_softmax: {
                "scale": lambda query, key: 1.0,
                "rescale_weights": lambda weights, query: weights * query.shape[-1] ** -0.5,
            },
            softmax_over_the_queries: {"compute_weights": lambda query, key, scale: weights_of(key, query, scale).mT},
            softmax_without_a_dim: {"compute_weights": _without_dim},
            one_softmax_for_everything: {"compute_weights": _over_everything},
            softmax_forgotten: {"compute_weights": scores_of},
            softmax_that_overflows: {"compute_weights": _overflowing},
            causal_mask: {"compute_weights": lambda query, key, scale: weights_of(query, key, scale, causal=True)},
            key_reshaped_where_transposed: {"transform_key": _reshaped},
            values_never_used: {"mixed": 1},
            weights_before_output: {"postprocess": lambda output, weights, scores: (weights, output)},
            output_alone: {"postprocess": lambda output, weights, scores: output},
            scores_returned_as_weights: {"postprocess": lambda output, weights, scores: (output, scores)},
            query_scaled_in_place: {"preprocess": _shrunk},
            weights_out_of_the_graph: {"transform_weights": torch.Tensor.detach},
            left_in_float32: {"preprocess": lambda inputs: tuple(each.float() for each in inputs)},
        },
        quick=True,
    ),
)
