"""`conv_from_linear`: the convolution that does what a Linear on patches does.

The oracle is the Linear itself, on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import torch
from torch import nn

from exercise_kit.engine.compare import expect_equal, kind_of, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patch_embedding.claims import TOKEN_AXES
from vit_course.exercises.l01_patchify.patchify.claims import patches_of

conv_from_linear = Exercise("conv_from_linear", LESSON, in_training=InTraining.UNSEEN)


def expect_strided_by_its_kernel(student: Student, made: object, linear: nn.Linear, patch_size: int) -> nn.Conv2d:
    """``made`` of ``linear``, as a convolution from patch to patch; Failure when it is none, or none of these sizes.

    To be called before it is run: its padding, its kernel and its stride decide what that costs.
    """
    if type(made).__name__ == "Conv2d" and "weight" not in getattr(made, "_parameters", ()):
        seen = "conv_from_linear gave a Conv2d whose weight is no parameter of it"
        if not isinstance(made, nn.Conv2d):  # all that a worker sends of a Conv2d that is not as torch makes it
            seen += ", or that computes something else"
        look = "What becomes of an `nn.Parameter` when a plain tensor is assigned in its place?"
        raise Failure(seen, "an nn.Conv2d whose weight learns", look)
    if not isinstance(made, nn.Conv2d):
        look = "Does every path end in a `return`?" if made is None else "What does your `return` line give back?"
        raise Failure(f"conv_from_linear gave {kind_of(made)}", "an nn.Conv2d", look)
    in_channels, out_channels, square = linear.in_features // patch_size**2, linear.out_features, (patch_size,) * 2
    padding = (0, 0) if made.padding == "valid" else made.padding
    wanted = {"in_channels": in_channels, "out_channels": out_channels, "kernel_size": square, "stride": square}
    wanted |= {"padding": (0, 0), "dilation": (1, 1), "groups": 1}
    found = {name: padding if name == "padding" else getattr(made, name) for name in wanted}
    student.record += [str(tuple(found.values())), shape(made.weight)]
    given = f"in_channels is {in_channels}, patch_size {patch_size}, and the Linear goes to {out_channels}"
    if slips := [name for name in wanted if found[name] != wanted[name]]:
        seen, right = (", ".join(f"{name} {each[name]}" for name in slips) for each in (found, wanted))
        raise Failure(f"its {seen}", f"{right}, where {given}")
    if made.weight.shape != (out_channels, in_channels, *square):
        look = "Is one kernel a row of numbers, or one square for each channel?"
        right = f"{shape((out_channels, in_channels, *square))}, where {given}"
        raise Failure(f"its weight has the shape {shape(made.weight)}", right, look)
    return made


def _linear(probe: Probe, patch_dim: int, bias: bool = True) -> nn.Linear:
    linear = nn.Linear(patch_dim, 7, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(probe.normal(*parameter.shape))
    return linear


@conv_from_linear.check(guard=True)
def the_convolution_strides_by_its_kernel(student: Student, probe: Probe) -> None:
    """The convolution's kernel is one patch, and it strides from patch to patch."""
    for channels, patch_size in ((3, 3), (2, 4)):
        linear = _linear(probe, channels * patch_size**2)
        made = student(linear, channels, patch_size)
        expect_strided_by_its_kernel(student, made, linear, patch_size)


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel)
def both_give_the_same_tokens(student: Student, probe: Probe) -> None:
    """On the same image the convolution gives what the Linear gives on the patches."""
    for (height, width), channels in ((TALL, 3), (WIDE, 2)):
        linear = _linear(probe, channels * 4)
        images = probe.images(3, channels, height, width)
        made = expect_strided_by_its_kernel(student, student(linear, channels, 2), linear, 2)
        with torch.no_grad():
            tokens = made(images).flatten(2).transpose(1, 2)
            wanted = linear(patches_of(images, 2))
        student.record.append(tokens)
        look = "In which order does a row of the Linear's weight hold channel, pixel row and pixel column?"
        expect_equal(tokens, wanted, "the convolution's output", TOKEN_AXES, look=look)


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel, guard=True)
def a_linear_without_bias_works_too(student: Student, probe: Probe) -> None:
    """A Linear without a bias becomes a convolution without a bias."""
    linear = _linear(probe, 12, bias=False)
    made = expect_strided_by_its_kernel(student, student(linear, 3, 2), linear, 2)
    student.record.append(made.bias is None)
    if made.bias is not None and made.bias.abs().max() > 0:
        raise Failure("the convolution has a bias", "none, as the Linear has none")


conv_from_linear.example("""
>>> linear = nn.Linear(4, 1)
>>> linear.weight.data = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
>>> conv_from_linear(linear, 1, 2).weight.tolist()
[[[[1.0, 2.0], [3.0, 4.0]]]]
""")

read_mistakes(conv_from_linear, __name__)
