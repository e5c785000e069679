"""Hidden checks of scaled_dot_product_attention."""

import pytest
import torch

from exercise_kit.engine.compare import close, expect_equal, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    RANDOM,
    differs,
    expect_device_of_input,
    expect_left_alone,
    expect_result_of_its_own,
)
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    OUTPUT_AXES,
    WEIGHT_AXES,
    both_tensors,
    too_sharp_or_flat,
)

FROM_THE_INSIDE = "Go through the formula from the inside out. Which step did you leave out, or do elsewhere?"
LAST_PRODUCT = "Which two tensors meet in the last product, and which axis do they share?"


def draw(probe, leading, sizes, scale=1.0, dtype=torch.float32):
    """query, key and value for sizes (queries, keys, head_dim, value_dim)."""
    queries, keys, head_dim, value_dim = sizes
    query = probe.normal(*leading, queries, head_dim, scale=scale, dtype=dtype)
    key = probe.normal(*leading, keys, head_dim, scale=scale, dtype=dtype)
    return query, key, probe.normal(*leading, keys, value_dim, dtype=dtype)


def both(student, inputs):
    """The student's output and weights."""
    return both_tensors(student(*inputs), student.name, "the output", "the weights")


def right(reference, inputs):
    """The right output and weights: computed in float64, rounded to the dtype of the inputs."""
    exact = reference.scaled_dot_product_attention(*(each.double() for each in inputs))
    return tuple(each.to(inputs[0].dtype) for each in exact)


def expect_weights(student, inputs, weights, right_weights, name, axes):
    """Compare weights with the right ones; of wrong ones say first whether another call gives others still."""

    def describe(actual, expected):
        return RANDOM if differs(both(student, inputs)[1], actual) else too_sharp_or_flat(actual, expected)

    expect_equal(weights, right_weights, name, axes, describe, FROM_THE_INSIDE)


def expect_both(student, reference, inputs, described=""):
    """Compare output and weights with the right ones; give the student's back."""
    output, weights = both(student, inputs)
    right_output, right_weights = right(reference, inputs)
    axes = 4 - inputs[0].ndim
    named = {axes: (WEIGHT_AXES[axes:], OUTPUT_AXES[axes:])} if 0 <= axes <= 2 else {}
    weight_axes, output_axes = named.get(axes, ((), ()))
    expect_weights(student, inputs, weights, right_weights, f"the weights tensor{described}", weight_axes)
    expect_equal(output, right_output, f"the output{described}", output_axes, look=LAST_PRODUCT)
    return output, weights


@pytest.mark.exercise("scaled_dot_product_attention", points=1.75)
def test_the_weights_follow_the_formula(student, reference, probe):
    """The weights are those of the formula, for any numbers of queries, keys and dimensions."""
    batch, heads, few, many, head_dim, value_dim = probe.sizes(6)
    few, many = sorted((few, many))
    large = probe.sizes(4, low=17, high=40)
    for leading, sizes in (
        ((batch, heads), (few, many, head_dim, value_dim)),
        ((heads, batch), (many, few, value_dim, head_dim)),
        ((2,), large),
    ):
        inputs = draw(probe, leading, sizes)
        name = f"the weights tensor, with a head_dim of {sizes[2]},"
        axes = WEIGHT_AXES[2 - len(leading) :]
        expect_weights(student, inputs, both(student, inputs)[1], right(reference, inputs)[1], name, axes)


@pytest.mark.exercise("scaled_dot_product_attention", points=1.25)
def test_the_output_is_the_mean_of_the_values(student, reference, probe):
    """The output of a query is the mean of the values under its weights, so equal values are returned unchanged."""
    batch, heads, *sizes = probe.sizes(6)
    inputs = draw(probe, (batch, heads), sizes)
    expect_equal(both(student, inputs)[0], right(reference, inputs)[0], "the output", OUTPUT_AXES, look=LAST_PRODUCT)
    inputs = draw(probe, (3,), probe.sizes(4, low=17, high=40))
    expect_equal(
        both(student, inputs)[0], right(reference, inputs)[0], "the output", OUTPUT_AXES[1:], look=LAST_PRODUCT
    )
    query, key, value = draw(probe, (batch, heads), sizes)
    alike = value[..., :1, :].expand_as(value).contiguous()
    output, _ = both(student, (query, key, alike))
    same = alike[..., :1, :].expand(batch, heads, sizes[0], sizes[3])
    look = "What is the mean of equal numbers, whatever their weights?"
    expect_equal(output, same, "the output for values that are equal for all keys", OUTPUT_AXES, look=look)


@pytest.mark.exercise("scaled_dot_product_attention", points=1)
def test_any_leading_axes_will_do(student, reference, probe):
    """It works with any axes in front, with sizes of 1, and on tensors that are scattered in memory."""
    first, second, third, *sizes = probe.sizes(7)
    queries, keys, head_dim, value_dim = sizes
    for leading, these in (
        ((), sizes),
        ((second,), (keys, queries, value_dim, head_dim)),
        ((first, second, third), sizes),
        ((1, 1), (1, keys, head_dim, value_dim)),
        ((second, 1), (queries, 1, 1, 1)),
    ):
        expect_both(student, reference, draw(probe, leading, these), f" with {len(leading) + 2} axes")
    turned = [each.mT for each in draw(probe, (first, second), (queries, keys, head_dim, value_dim))]
    query, key, value = turned[0].contiguous().mT, turned[1].contiguous().mT, turned[2].contiguous().mT
    expect_both(student, reference, (query, key, value), " for non-contiguous inputs")
    scattered = [each.transpose(0, 1) for each in draw(probe, (second, first), sizes)]
    expect_both(student, reference, scattered, " for non-contiguous inputs")


@pytest.mark.exercise("scaled_dot_product_attention", points=1)
def test_large_scores_do_no_harm(student, reference, probe):
    """Scores in the thousands give finite and right numbers, in float16 scores of a hundred do."""
    batch, queries, keys, value_dim = probe.sizes(4)
    # integers, and a head_dim whose root is a power of two: scores are exact, so no rounding can be magnified
    for dtype, largest in ((torch.float32, 64), (torch.float16, 8)):
        query = probe.integers(batch, queries, 16, high=2 * largest + 1).to(dtype) - largest
        key = probe.integers(batch, keys, 16, high=2 * largest + 1).to(dtype) - largest
        inputs = query, key, probe.normal(batch, keys, value_dim, dtype=dtype)
        output, weights = both(student, inputs)
        right_output, right_weights = right(reference, inputs)
        look = "What does exp make of large numbers, and what may you take away from all scores of a row?"
        described = f"in {short(dtype)} with large scores"
        expect_equal(weights, right_weights, f"the weights tensor {described}", WEIGHT_AXES[1:], look=look)
        expect_equal(output, right_output, f"the output {described}", OUTPUT_AXES[1:], look=look)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.75)
def test_the_dtype_is_kept(student, reference, probe):
    """float64 gives the precision of float64, and float16 stays float16."""
    batch, heads, queries, keys, value_dim = probe.sizes(5)
    # the root of head_dim is exact, so that one that was taken in float32 is right too
    sizes = queries, keys, probe.choice((4, 9, 16)), value_dim
    # scores of 10 and more in float64, so that a detour through float32 shows; a score of 10 in float16 is right
    # to 0.005, which moves a weight by less than the tolerance of 1e-2
    for dtype, scale in ((torch.float64, 2.5), (torch.float16, 1.0)):
        inputs = draw(probe, (batch, heads), sizes, scale, dtype)
        expect_both(student, reference, inputs, f" for {short(dtype)}")


@pytest.mark.exercise("scaled_dot_product_attention", points=0.75)
def test_the_gradients_are_right(student, reference, probe):
    """query, key and value get the gradients of attention."""
    batch, *sizes = probe.sizes(5)
    inputs = draw(probe, (batch,), sizes)
    expect_both(student, reference, inputs)

    def cut_off(*given):
        output, weights = reference.scaled_dot_product_attention(*given)
        return output, weights.detach()

    found = student.input_gradients(*inputs)
    whole = Student({student.name: reference.scaled_dot_product_attention}).input_gradients(*inputs)
    through_output = Student({student.name: cut_off}).input_gradients(*inputs)  # nobody asked for more
    if all(each is not None and close(each, wanted) for each, wanted in zip(found, through_output, strict=True)):
        return
    look = "Which line leaves torch's graph, or rounds: detach, .data, no_grad, a detour through numpy or torch.tensor?"
    for name, gradient, wanted in zip(("query", "key", "value"), found, whole, strict=True):
        if gradient is None:
            raise Failure(f"no gradient reaches {name}", "a gradient for query, key and value", look)
        expect_equal(gradient, wanted, f"the gradient of {name}", look=look)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.5)
def test_nobody_else_is_looked_at(student, reference, probe):
    """An image alone gets the answer it gets in a batch, and shuffled keys and values change no output."""
    batch, heads, *sizes = probe.sizes(6)
    query, key, value = draw(probe, (batch, heads), sizes)
    output, _ = expect_both(student, reference, (query, key, value))
    alone, _ = both(student, [each[batch - 1 :] for each in (query, key, value)])
    look = "Along which axes do you sum, and whom do they join?"
    expect_equal(alone, output.detach()[batch - 1 :], "the output of an image alone", OUTPUT_AXES, look=look)
    order = probe.permutation(sizes[1])
    shuffled, _ = both(student, (query, key[:, :, order], value[:, :, order]))
    look = "Where do you use the number of a key, where only what it holds should count?"
    expect_equal(shuffled, output.detach(), "the output for shuffled keys and values", OUTPUT_AXES, look=look)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.25)
def test_the_inputs_are_left_alone(student, reference, probe):
    """query, key and value are not changed, and each call answers for its own inputs, with results of its own."""
    batch, *sizes = probe.sizes(5)
    for _ in range(2):
        expect_both(student, reference, draw(probe, (batch,), sizes))
        expect_left_alone(student)
    expect_result_of_its_own(student, *(draw(probe, (batch,), sizes) for _ in range(2)))


@pytest.mark.exercise("scaled_dot_product_attention", points=0.5)
def test_it_computes_where_its_inputs_lie(student, reference, probe, device):
    """Output and weights lie on the device of the inputs."""
    batch, *sizes = probe.sizes(5)
    inputs = [each.to(device) for each in draw(probe, (batch,), sizes)]
    expect_both(student, reference, inputs, f" on {device.type}")
    expect_device_of_input(student, *inputs)


@pytest.mark.exercise("scaled_dot_product_attention", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, *sizes = probe.sizes(5)
    expect_both(student, reference, draw(probe, (batch,), sizes))
    expect_example(student)
