"""Hidden checks of ``conv_from_linear``.

Tokens by the convolution and by the Linear are sums of the same products in another order: they agree to 1e-6,
and the nearest misconception is off by 1e-1.
"""

import pytest
import torch
from torch import nn

from exercise_kit.engine.compare import expect_equal, shape
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quoted
from vit_course.exercises.l01_patchify.conv_from_linear.claims import expect_strided_by_its_kernel

AXES = ("image", "token", "dimension")


def _linear(probe, channels, patch_size, embed_dim, bias=True):
    with torch.random.fork_rng(devices=()):  # a student's own layer may draw from torch's generator, here and there
        linear = nn.Linear(channels * patch_size**2, embed_dim, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(probe.normal(*parameter.shape))
    return linear


def _convolved(convolution, images):
    try:
        return convolution(images)
    except (RuntimeError, IndexError) as error:
        seen = f"the convolution, with a weight of shape {shape(convolution.weight)}, raised {quoted(error)}"
        raise Failure(seen, f"an answer on images of shape {shape(images)}", "Are its sizes right?") from None


def _expect_same_tokens(student, reference, linear, images, patch_size, described="the convolution's output"):
    """The convolution made of ``linear``; Failure unless it gives the Linear's tokens of ``images``."""
    made = expect_strided_by_its_kernel(student, student(linear, images.shape[1], patch_size), linear, patch_size)
    with torch.no_grad():
        tokens = _convolved(made, images).flatten(2).transpose(1, 2)
        wanted = linear(reference.patchify(images, patch_size))
    student.record.append(tokens)
    look = "In which order does a row of the Linear's weight hold channel, pixel row and pixel column?"
    expect_equal(tokens, wanted, described, AXES, look=look)
    return made


@pytest.mark.exercise("conv_from_linear", points=0.5)
def test_its_kernel_is_one_patch_and_so_is_its_stride(student, reference, probe):
    """It goes from in_channels to embed_dim; its kernel is one patch, with the right numbers, and so is its stride."""
    for _ in range(2):
        channels, patch_size, embed_dim = probe.sizes(3)
        linear = _linear(probe, channels, patch_size, embed_dim)
        made = expect_strided_by_its_kernel(student, student(linear, channels, patch_size), linear, patch_size)
        given = f"for a Linear to {embed_dim}, in_channels {channels} and patch_size {patch_size}"
        kernels = reference.conv_from_linear(linear, channels, patch_size).weight
        look = "Is one kernel a row of numbers, or one square for each channel, and where do its numbers come from?"
        expect_equal(made.weight, kernels, f"its weight {given}", ("output", "channel", "row", "column"), look=look)


@pytest.mark.exercise("conv_from_linear", points=1.6)
def test_both_give_the_same_tokens(student, reference, probe):
    """On tall and on wide images the convolution gives what the Linear gives on the patches."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    linear = _linear(probe, channels, patch_size, probe.choice((7, 8, 9)))
    for down, across in ((rows, columns), (columns, rows)):
        images = probe.images(batch, channels, down * patch_size, across * patch_size)
        _expect_same_tokens(student, reference, linear, images, patch_size)


@pytest.mark.exercise("conv_from_linear", points=0.95)
def test_any_number_of_channels_and_any_patch_size(student, reference, probe):
    """One channel or many, patches of one pixel or of many, one output or many: the tokens are the same."""
    batch, rows, columns = probe.sizes(3, high=6)
    for held, channels, patch_size, embed_dim in (
        (1, 1, probe.choice((5, 6, 7)), 4),
        (batch, probe.choice((4, 6, 7)), 1, 5),
        (batch, 5, 3, 1),
        (1, 2, 2, 8),  # as many outputs as inputs
    ):
        linear = _linear(probe, channels, patch_size, embed_dim)
        images = probe.images(held, channels, rows * patch_size, columns * patch_size)
        sizes = f"for in_channels {channels}, patch_size {patch_size} and a Linear to {embed_dim}"
        _expect_same_tokens(student, reference, linear, images, patch_size, f"the output of the convolution {sizes}")


@pytest.mark.exercise("conv_from_linear", points=0.7)
def test_a_linear_without_bias_works_too(student, reference, probe):
    """A Linear without a bias becomes a convolution without a bias, which gives the same tokens."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    images = probe.images(1, channels, side * patch_size, patch_size)
    linear = _linear(probe, channels, patch_size, embed_dim, bias=False)
    made = _expect_same_tokens(student, reference, linear, images, patch_size, "without a bias, the output")
    student.record.append(made.bias is None)
    if made.bias is not None and made.bias.abs().max() > 0:
        raise Failure("the convolution has a bias", "none, as the Linear has none")


@pytest.mark.exercise("conv_from_linear", points=0.5)
def test_it_is_made_of_the_linear_at_hand(student, reference, probe):
    """Each call makes a convolution of the Linear that it is given, with that Linear's very numbers."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    images = probe.images(2, channels, patch_size, side * patch_size)
    for _ in range(2):
        linear = _linear(probe, channels, patch_size, embed_dim)
        made = _expect_same_tokens(student, reference, linear, images, patch_size)
        right = reference.conv_from_linear(linear, channels, patch_size)
        if not (torch.equal(made.weight, right.weight) and torch.equal(made.bias, right.bias)):
            look = "Is anything computed on the way, where copying would do?"
            raise Failure("its weights are a little off those of the Linear", "the very same numbers", look)


@pytest.mark.exercise("conv_from_linear", points=0.5)
def test_the_linear_is_left_alone(student, reference, probe):
    """The Linear keeps its numbers and their shapes, and goes on learning."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    linear = _linear(probe, channels, patch_size, embed_dim)
    _expect_same_tokens(
        student, reference, linear, probe.images(1, channels, patch_size, side * patch_size), patch_size
    )
    after = dict(student.see(linear, channels, patch_size).inputs[0].named_parameters())
    for name, before in linear.named_parameters():
        expect_equal(after.get(name), before, f"the Linear's {name} after the call", look="Whose tensor is written to?")
        if not after[name].requires_grad:
            seen, look = f"the Linear's {name} no longer requires a gradient", "Whose parameter does that line freeze?"
            raise Failure(seen, "a Linear that learns after the call as before", look)


@pytest.mark.exercise("conv_from_linear", points=0.25)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    linear = _linear(probe, channels, patch_size, embed_dim)
    images = probe.images(2, channels, patch_size, side * patch_size)
    _expect_same_tokens(student, reference, linear, images, patch_size)
    expect_example(student)
