"""`conv_from_linear`: the convolution that does what a Linear on patches does.

The oracle is the Linear itself, on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import describe_kind, expect_equal, format_shape
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patch_embedding.claims import TOKEN_AXES
from vit_course.exercises.l01_patchify.patchify.claims import patches_of

conv_from_linear = Exercise("conv_from_linear", LESSON, in_training=InTraining.UNSEEN)


def expect_convolution_of_patches(student: Student, made: object, linear: nn.Linear, patch_size: int) -> nn.Conv2d:
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
        raise Failure(f"conv_from_linear gave {describe_kind(made)}", "an nn.Conv2d", look)
    in_channels, out_channels, square = linear.in_features // patch_size**2, linear.out_features, (patch_size,) * 2
    padding = (0, 0) if made.padding == "valid" else made.padding
    wanted = {"in_channels": in_channels, "out_channels": out_channels, "kernel_size": square, "stride": square}
    wanted |= {"padding": (0, 0), "dilation": (1, 1), "groups": 1}
    found = {name: padding if name == "padding" else getattr(made, name) for name in wanted}
    student.note(str(tuple(found.values())))
    student.note(format_shape(made.weight))
    given = f"in_channels is {in_channels}, patch_size {patch_size}, and the Linear goes to {out_channels}"
    if slips := [name for name in wanted if found[name] != wanted[name]]:
        seen, right = (", ".join(f"{name} is {each[name]}" for name in slips) for each in (found, wanted))
        raise Failure(f"its {seen}", f"{right}, where {given}")
    if made.weight.shape != (out_channels, in_channels, *square):
        look = "Is one kernel a row of numbers, or one square for each channel?"
        right = f"{format_shape((out_channels, in_channels, *square))}, where {given}"
        raise Failure(f"its weight has the shape {format_shape(made.weight)}", right, look)
    return made


def draw_linear(probe: Probe, channels: int, patch_size: int, embed_dim: int, bias: bool = True) -> nn.Linear:
    """A Linear on patches, of drawn numbers."""
    with torch.random.fork_rng(devices=()):  # a student's own layer may draw from torch's generator, here and there
        linear = nn.Linear(channels * patch_size**2, embed_dim, bias=bias)
    with torch.no_grad():
        for parameter in linear.parameters():
            parameter.copy_(probe.normal(*parameter.shape))
    return linear


@conv_from_linear.check(guard=True, points=0.5, first="both_give_the_same_tokens")
def the_convolution_strides_by_its_kernel(student: Student, probe: Probe) -> None:
    """The convolution's kernel is one patch, and it strides from patch to patch."""
    for shown in ((3, 3, 7), (2, 4, 7)):
        channels, patch_size, embed_dim = probe.sizes(3, shown=shown)
        linear = draw_linear(probe, channels, patch_size, embed_dim)
        made = student(linear, channels, patch_size)
        expect_convolution_of_patches(student, made, linear, patch_size)


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel, points=2.55)
def both_give_the_same_tokens(student: Student, probe: Probe) -> None:
    """On the same image the convolution gives what the Linear gives on the patches."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6, shown=(4, 3, 6, 5, 2))
    for held, depth, down, across, side, embed_dim, bias in (
        (batch, channels, rows, columns, patch_size, probe.choice((7, 8, 9)), True),
        (batch, channels, columns, rows, patch_size, 7, True),
        (1, 1, rows, columns, probe.choice((5, 6, 7)), 4, True),
        (batch, probe.choice((4, 6, 7)), rows, columns, 1, 5, True),
        (batch, 5, rows, columns, 3, 1, True),
        (1, 2, rows, columns, 2, 8, True),  # as many outputs as inputs
        (1, channels, rows, 1, patch_size, 7, False),
    ):
        linear = draw_linear(probe, depth, side, embed_dim, bias)
        expect_same_tokens(student, linear, probe.images(held, depth, down * side, across * side), side)


def expect_same_tokens(student: Student, linear: nn.Linear, images: Tensor, patch_size: int) -> nn.Conv2d:
    """The convolution that is made of ``linear``; Failure unless it gives the Linear's tokens of ``images``."""
    channels = images.shape[1]
    made = expect_convolution_of_patches(student, student(linear, channels, patch_size), linear, patch_size)
    with torch.no_grad():
        tokens = _apply_convolution(made, images).flatten(2).transpose(1, 2)
        wanted = linear(patches_of(images, patch_size))
    student.note(tokens)
    sizes = f"in_channels {channels}, patch_size {patch_size} and a Linear to {linear.out_features}"
    look = "In which order does a row of the Linear's weight hold channel, pixel row and pixel column?"
    if torch.equal(made.weight.detach().flatten(), linear.weight.detach().flatten()):
        look = "The weight is right. What else has a Linear, and where is it in your convolution?"
    expect_equal(tokens, wanted, f"the convolution's output for {sizes}", TOKEN_AXES, look=look)
    return made


def _apply_convolution(convolution: nn.Conv2d, images: Tensor) -> Tensor:
    try:
        output: Tensor = convolution(images)
    except (RuntimeError, IndexError) as error:
        raised = quote_first_line(error)
        seen = f"the convolution, with a weight of shape {format_shape(convolution.weight)}, raised {raised}"
        raise Failure(seen, f"an answer on images of shape {format_shape(images)}", "Are its sizes right?") from None
    return output


@conv_from_linear.check(
    needs=the_convolution_strides_by_its_kernel, guard=True, points=0.7, first=both_give_the_same_tokens
)
def a_linear_without_bias_works_too(student: Student, probe: Probe) -> None:
    """A Linear without a bias becomes a convolution without a bias."""
    channels, patch_size, embed_dim = probe.sizes(3, high=7, shown=(3, 2, 7))
    linear = draw_linear(probe, channels, patch_size, embed_dim, bias=False)
    made = expect_convolution_of_patches(student, student(linear, channels, patch_size), linear, patch_size)
    student.note(made.bias is None)
    if made.bias is not None and made.bias.abs().max() > 0:
        raise Failure("the convolution has a bias", "none, as the Linear has none")


conv_from_linear.example("""
>>> linear = nn.Linear(4, 1)
>>> linear.weight.data = torch.tensor([[1.0, 2.0, 3.0, 4.0]])
>>> conv_from_linear(linear, 1, 2).weight.tolist()
[[[[1.0, 2.0], [3.0, 4.0]]]]
""")

read_mistakes(conv_from_linear, __name__)
