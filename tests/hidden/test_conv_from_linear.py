"""Hidden checks of ``conv_from_linear``.

Tokens by the convolution and by the Linear are sums of the same products in another order: they agree to 1e-6,
and the nearest misconception is off by 1e-1.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.examples import expect_example
from exercise_kit.engine.verdict import Failure
from exercise_kit.judge.claims import as_hidden
from vit_course.exercises.l01_patchify.conv_from_linear import claims

RIGHT = claims.both_give_the_same_tokens
test_the_convolution_strides_by_its_kernel = as_hidden(
    claims.the_convolution_strides_by_its_kernel, RIGHT, conv_from_linear=0.5
)
test_both_give_the_same_tokens = as_hidden(RIGHT, conv_from_linear=2.55)
test_a_linear_without_bias_works_too = as_hidden(claims.a_linear_without_bias_works_too, RIGHT, conv_from_linear=0.7)


def _question(probe):
    """A Linear, images whose patches it reads, and patch_size."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    images = probe.images(2, channels, patch_size, side * patch_size)
    return claims.a_linear(probe, channels, patch_size, embed_dim), images, patch_size


@pytest.mark.exercise("conv_from_linear", points=0.5)
def test_it_is_made_of_the_linear_at_hand(student, probe):
    """Each call makes a convolution of the Linear that it is given, with that Linear's very numbers."""
    linear, images, patch_size = _question(probe)
    another = claims.a_linear(probe, images.shape[1], patch_size, linear.out_features)
    for each in (linear, another):
        made = claims.expect_same_tokens(student, each, images, patch_size)
        kernels = each.weight.unflatten(1, (-1, patch_size, patch_size))
        if not (torch.equal(made.weight, kernels) and torch.equal(made.bias, each.bias)):
            look = "Is anything computed on the way, where copying would do?"
            raise Failure("its weights are a little off those of the Linear", "the very same numbers", look)


@pytest.mark.exercise("conv_from_linear", points=0.5)
def test_the_linear_is_left_alone(student, probe):
    """The Linear keeps its numbers and their shapes, and goes on learning."""
    linear, images, patch_size = _question(probe)
    claims.expect_same_tokens(student, linear, images, patch_size)
    after = dict(student.see(linear, images.shape[1], patch_size).inputs[0].named_parameters())
    for name, before in linear.named_parameters():
        expect_equal(after.get(name), before, f"the Linear's {name} after the call", look="Whose tensor is written to?")
        if not after[name].requires_grad:
            seen, look = f"the Linear's {name} no longer requires a gradient", "Whose parameter does that line freeze?"
            raise Failure(seen, "a Linear that learns after the call as before", look)


@pytest.mark.exercise("conv_from_linear", points=0.25)
def test_its_own_example_comes_out(student, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_same_tokens(student, *_question(probe))
    expect_example(student)
