"""What only grading asks of ``conv_from_linear``.

Tokens by the convolution and by the Linear are sums of the same products in another order: they agree to 1e-6,
and the nearest misconception is off by 1e-1.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.examples import expect_docstring_example
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify.conv_from_linear import claims


def _draw_linear_and_images(probe: Probe) -> tuple[nn.Linear, Tensor, int]:
    """A Linear, images whose patches it reads, and patch_size."""
    channels, patch_size, embed_dim, side = probe.sizes(4, high=7)
    images = probe.images(2, channels, patch_size, side * patch_size)
    return claims.draw_linear(probe, channels, patch_size, embed_dim), images, patch_size


@claims.conv_from_linear.check(graded_only=True, points=0.5)
def it_is_made_of_the_linear_at_hand(student: Student, probe: Probe) -> None:
    """Each call makes a convolution of the Linear that it is given, with that Linear's very numbers."""
    linear, images, patch_size = _draw_linear_and_images(probe)
    another = claims.draw_linear(probe, images.shape[1], patch_size, linear.out_features)
    for each in (linear, another):
        made = claims.expect_same_tokens(student, each, images, patch_size)
        kernels = each.weight.unflatten(1, (-1, patch_size, patch_size))
        same_bias = made.bias is not None and torch.equal(made.bias, each.bias)
        if not (torch.equal(made.weight, kernels) and same_bias):
            look = "Is anything computed on the way, where copying would do?"
            raise Failure("its weights are a little off those of the Linear", "the very same numbers", look)


@claims.conv_from_linear.check(graded_only=True, points=0.5)
def the_linear_is_left_alone(student: Student, probe: Probe) -> None:
    """The Linear keeps its numbers and their shapes, and goes on learning."""
    linear, images, patch_size = _draw_linear_and_images(probe)
    claims.expect_same_tokens(student, linear, images, patch_size)
    after = dict(student.see(linear, images.shape[1], patch_size).inputs[0].named_parameters())
    for name, before in linear.named_parameters():
        expect_equal(after.get(name), before, f"the Linear's {name} after the call", look="Whose tensor is written to?")
        if not after[name].requires_grad:
            seen, look = f"the Linear's {name} no longer requires a gradient", "Whose parameter does that line freeze?"
            raise Failure(seen, "a Linear that learns after the call as before", look)


@claims.conv_from_linear.check(graded_only=True, points=0.25)
def its_own_example_comes_out(student: Student, probe: Probe) -> None:
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    claims.expect_same_tokens(student, *_draw_linear_and_images(probe))
    expect_docstring_example(student)
