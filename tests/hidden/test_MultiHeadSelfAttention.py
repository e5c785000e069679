"""Hidden checks of MultiHeadSelfAttention."""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_gradients_of_inputs,
    expect_left_alone,
    expect_modes_kept,
    expect_value_error,
    located,
)
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l03_attention.scaled_dot_product_attention.claims import (
    WEIGHT_AXES,
    both_tensors,
    too_sharp_or_flat,
)
from vit_course.exercises.l03_attention.split_heads.claims import TOKEN_AXES
from vit_course.exercises.repeatability import expect_one_kind, kinds_of_results

PARTS = ("qkv", "projection")
EVERY_LINE = "Write down the shape after every line, and which of its axes is the head's."
AFTER_THE_WEIGHTS = "Are your weights right? Then look at what happens after them: values, merging, projection."


def draw_weights(probe, embed_dim, qkv_bias=True):
    """A value for every parameter; scores come out of order 1."""
    shapes = {
        "qkv.weight": (3 * embed_dim, embed_dim),
        "qkv.bias": (3 * embed_dim,),
        "projection.weight": (embed_dim, embed_dim),
        "projection.bias": (embed_dim,),
    }
    if not qkv_bias:
        del shapes["qkv.bias"]
    return probe.weights(shapes)


def with_weights(whose, weights, *arguments, **options):
    """A module of a Student, with these weights in it."""
    module = whose.build(*arguments, **options)
    module.load(weights)
    return module


def pair(student, reference, probe, num_heads, head_dim, qkv_bias=True):
    """The student's module and the right one, both with the same random weights."""
    embed_dim = num_heads * head_dim
    weights = draw_weights(probe, embed_dim, qkv_bias)
    right = Student({student.name: reference.MultiHeadSelfAttention})
    return tuple(with_weights(whose, weights, embed_dim, num_heads, qkv_bias=qkv_bias) for whose in (student, right))


def more_and_fewer(sizes):
    """(num_heads, head_dim, tokens) with more heads than tokens, and with fewer."""
    least, lower, upper, most = sorted(sizes)
    return (upper, least, lower), (lower, most, upper)


def asked_for_weights(module, x):
    """Output and weights of forward(x, return_weights=True)."""
    result = module(x, return_weights=True)
    return both_tensors(result, "forward with return_weights=True", "the output", "the weights")


def expect_output(module, right, x, described="", look=AFTER_THE_WEIGHTS):
    """Compare forward's output with the right one, and give the student's back."""
    output = module(x)
    where = located(module, right, PARTS, x, axes=TOKEN_AXES)
    expect_equal(output, right(x).detach(), f"the output{described}", TOKEN_AXES, where, look)
    return output


@pytest.mark.exercise("MultiHeadSelfAttention", points=1.75)
def test_the_output_is_right(student, reference, probe):
    """Its parameters are those of qkv and projection, and with any values in them the output is right."""
    batch, *sizes = probe.sizes(5)
    for heads, width, tokens in (*more_and_fewer(sizes), (sizes[0], 4, sizes[1] + 20)):
        module, right = pair(student, reference, probe, heads, width)
        x = probe.normal(batch, tokens, heads * width)
        expect_output(module, right, x, f" (num_heads {heads}, tokens {tokens})")


@pytest.mark.exercise("MultiHeadSelfAttention", points=1.5)
def test_every_head_attends_by_itself(student, reference, probe):
    """Each head's weights are made from its own part of queries and keys, and come with the right output."""
    batch, *sizes = probe.sizes(5)
    for heads, width, tokens in more_and_fewer(sizes):
        module, right = pair(student, reference, probe, heads, width)
        x = probe.normal(batch, tokens, heads * width)
        output, weights = asked_for_weights(module, x)
        right_output, right_weights = (each.detach() for each in right(x, return_weights=True))
        name = f"the weights tensor, with {heads} heads of {width} numbers,"
        expect_equal(weights, right_weights, name, WEIGHT_AXES, too_sharp_or_flat, EVERY_LINE)
        expect_equal(output, right_output, "the output beside the weights", TOKEN_AXES, look=AFTER_THE_WEIGHTS)


@pytest.mark.exercise("MultiHeadSelfAttention", points=1)
def test_one_of_anything_will_do(student, reference, probe):
    """One head, heads of one number, one token, a batch of one and scattered memory work too."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    for heads, width, sizes in (
        (1, head_dim, (batch, tokens)),
        (num_heads, 1, (1, tokens)),
        (num_heads, head_dim, (batch, 1)),
    ):
        module, right = pair(student, reference, probe, heads, width)
        x = probe.normal(sizes[0], heads * width, sizes[1]).mT
        described = f" (batch {sizes[0]}, tokens {sizes[1]}, num_heads {heads}, head_dim {width})"
        expect_output(module, right, x, described)
        _, weights = asked_for_weights(module, x)
        right_weights = right(x, return_weights=True)[1].detach()
        expect_equal(weights, right_weights, f"the weights tensor{described}", WEIGHT_AXES, look=EVERY_LINE)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.75)
def test_the_bias_of_qkv_can_be_left_out(student, reference, probe):
    """With qkv_bias=False there is no bias in qkv, the projection keeps its own, and the numbers are right."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim, qkv_bias=False)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    expect_output(module, right, x, " without qkv_bias")
    _, weights = asked_for_weights(module, x)
    right_weights = right(x, return_weights=True)[1].detach()
    expect_equal(weights, right_weights, "the weights tensor without qkv_bias", WEIGHT_AXES, look=EVERY_LINE)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_qkv_has_a_bias_unless_told(student, reference, probe):
    """A module that is built without a word about qkv_bias has a bias in qkv, and uses it."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    embed_dim = num_heads * head_dim
    weights, right = draw_weights(probe, embed_dim), Student({student.name: reference.MultiHeadSelfAttention})
    module, twin = (with_weights(whose, weights, embed_dim, num_heads) for whose in (student, right))
    expect_output(module, twin, probe.normal(batch, tokens, embed_dim), " of a module that is built without qkv_bias")


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_one_module_serves_any_batch(student, reference, probe):
    """One and the same module takes more tokens, fewer, and other batches, one call after the other."""
    few, many, num_heads, head_dim = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    look = "What does your module keep from one call to the next?"
    for batch, tokens in ((few, many), (many, few), (1, many + 1), (few, many)):
        x = probe.normal(batch, tokens, num_heads * head_dim)
        expect_output(module, right, x, f" (batch {batch}, tokens {tokens})", look)
        weights, right_weights = asked_for_weights(module, x)[1], right(x, return_weights=True)[1].detach()
        expect_equal(weights, right_weights, "the weights tensor", WEIGHT_AXES, look=look)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_the_tokens_get_their_gradient(student, reference, probe):
    """The tokens get the gradient of attention, through queries, keys and values."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    expect_output(module, right, x)
    expect_gradients_of_inputs(module.input_gradients(x), right.input_gradients(x), ["the tokens"])


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_it_computes_where_the_tokens_lie(student, reference, probe):
    """Moved to another device, it computes there, output and weights."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    expect_output(module, right, x)
    expect_device_of_input(student, x, arguments=(num_heads * head_dim, num_heads), options={"return_weights": True})


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    expect_output(module, right, probe.normal(batch, tokens, num_heads * head_dim))
    expect_example(student)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.75)
def test_the_gradients_are_right(student, reference, probe):
    """Every parameter gets its right gradient, whether the weights are asked for or not."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    x = probe.normal(batch, tokens, num_heads * head_dim)
    wanted = right.gradients(right(x))
    look = "Which line leaves torch's graph: detach, .data, no_grad, a detour through numpy or torch.tensor?"
    for output in (expect_output(module, right, x), None):
        gradients = module.gradients(asked_for_weights(module, x)[0] if output is None else output)
        for name, gradient in wanted.items():
            if gradients.get(name) is None:
                raise Failure(f"no gradient reaches `{name}`", "one for every parameter", look)
            expect_equal(gradients[name], gradient, f"the gradient of `{name}`", look=look)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_it_follows_its_dtype_and_device(student, reference, probe, device):
    """After `.to(...)` parameters and output have the new dtype and place, and float64 has all its digits."""
    batch, num_heads, tokens = probe.sizes(3)
    head_dim = probe.choice((4, 16))  # the root is exact, so that a scale kept as a float32 buffer is right too
    module, right = pair(student, reference, probe, num_heads, head_dim)
    x = probe.normal(batch, tokens, num_heads * head_dim, dtype=torch.float64)
    for each in (module, right):
        each.to(torch.float64)
        each.to(device)
    look = "Which tensor of yours does torch not know about, or which line chooses a dtype or device of its own?"
    expect_output(module, right, x.to(device), f" in float64 on {device.type}", look)
    for name, tensor in module.tensors().items():
        if tensor.is_floating_point() and tensor.dtype != torch.float64:
            raise Failure(f"after .to(torch.float64) `{name}` has dtype {short(tensor.dtype)}", "float64", look)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.75)
def test_nothing_depends_on_the_mode(student, reference, probe):
    """train() and eval() give the same output, call after call, and asking for the weights changes nothing."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    look = "Which part of yours behaves differently in training, draws numbers, or remembers the last call?"
    for change, mode in ((module.train, "train"), (module.eval, "eval"), (module.train, "train")):
        change()
        x = probe.normal(batch, tokens, num_heads * head_dim)
        right_output, right_weights = (each.detach() for each in right(x, return_weights=True))
        expect_output(module, right, x, f" after {mode}()", look)
        output, weights = asked_for_weights(module, x)
        expect_equal(output, right_output, "the output with return_weights=True", TOKEN_AXES, look=look)
        expect_equal(weights, right_weights, f"after {mode}() the weights tensor", WEIGHT_AXES, look=look)
    expect_one_kind(kinds_of_results(student, lambda: module(x), x.shape))  # the last mode was training
    expect_modes_kept(student, (8, 2), probe.normal(2, 3, 8))


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.25)
def test_shuffled_tokens_come_out_shuffled(student, reference, probe):
    """Shuffled tokens come out shuffled, an image alone as in the batch, and the tokens that go in stay as they are."""
    batch, num_heads, head_dim, tokens = probe.sizes(4)
    module, right = pair(student, reference, probe, num_heads, head_dim)
    x, order = probe.normal(batch, tokens, num_heads * head_dim), probe.permutation(tokens)
    output = expect_output(module, right, x).detach()
    look = "What in your module treats the first token differently from the last?"
    expect_equal(module(x[:, order]), output[:, order], "the output for shuffled tokens", TOKEN_AXES, look=look)
    look = "Along which axis do the tokens of one image lie, and along which do you attend?"
    expect_equal(module(x[batch - 1 :]), output[batch - 1 :], "the output of an image alone", TOKEN_AXES, look=look)
    expect_left_alone(student)


@pytest.mark.exercise("MultiHeadSelfAttention", points=0.5)
def test_a_number_of_heads_that_does_not_fit_is_refused(student, reference, probe):
    """If num_heads does not divide embed_dim, building it raises a ValueError that names both numbers."""
    batch, tokens, num_heads, head_dim = probe.sizes(4, low=3)
    fitting = num_heads * head_dim
    module, right = pair(student, reference, probe, num_heads, head_dim)
    expect_output(module, right, probe.normal(batch, tokens, fitting))
    for embed_dim, heads in ((fitting + 1, num_heads), (num_heads, fitting)):
        described = f"embed_dim {embed_dim} with {heads} heads"
        expect_value_error(student, (embed_dim, heads), (embed_dim, heads), described)
