"""Public checks of lesson 01: patches into tokens, by a Linear and by a convolution.

The oracle is ``F.linear`` on the patches of torch's own ``F.unfold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exercise_kit.engine.compare import expect_equal, expect_tensor, kind_of, shape
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student, StudentModule
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.checks.patches import LESSON, patches_of

TOKEN_AXES = ("image", "token", "dimension")

PatchEmbedding = Exercise("PatchEmbedding", LESSON, is_class=True)


def _embedding(
    student: Student, probe: Probe, channels: int, patch_size: int
) -> tuple[StudentModule, dict[str, Tensor]]:
    module = student.build(channels, patch_size, 7)
    weights = probe.weights({"projection.weight": (7, channels * patch_size**2), "projection.bias": (7,)})
    module.load(weights)
    return module, weights


def _embedded(weights: dict[str, Tensor], images: Tensor, patch_size: int) -> Tensor:
    return F.linear(patches_of(images, patch_size), weights["projection.weight"], weights["projection.bias"])


@PatchEmbedding.check
def its_parameters_are_one_linear(student: Student, probe: Probe) -> None:
    """Its parameters are those of one Linear called projection."""
    for channels, patch_size in ((3, 4), (2, 3)):  # 2**patch_size is patch_size**2 for 2 and 4
        _embedding(student, probe, channels, patch_size)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def tokens_are_projected_patches(student: Student, probe: Probe) -> None:
    """A token is the projection of its patch, for tall and wide images alike."""
    for (height, width), channels, patch_size in ((TALL, 3, 4), (WIDE, 5, 2)):
        module, weights = _embedding(student, probe, channels, patch_size)
        images = probe.images(2, channels, height, width)
        expect_equal(module(images), _embedded(weights, images, patch_size), "the embedding", TOKEN_AXES)


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def every_parameter_learns(student: Student, probe: Probe) -> None:
    """A gradient reaches the weight and the bias of the projection."""
    module, _ = _embedding(student, probe, 3, 2)
    output = expect_tensor(module(probe.images(2, 3, 4, 6)), (2, 6, 7), "the embedding")
    if names := module.without_gradient(output):
        raise Failure(f"no gradient reaches {', '.join(names)}", "one for every parameter")


@PatchEmbedding.check(needs=tokens_are_projected_patches)
def one_embedding_takes_any_images(student: Student, probe: Probe) -> None:
    """One and the same embedding takes many images or one, of any size, and the same images twice."""
    module, weights = _embedding(student, probe, 3, 2)
    first = probe.images(3, 3, 4, 6)
    for images in (first, probe.images(2, 3, 8, 4), probe.images(1, 3, 4, 6), first):
        name = f"an embedding that is used several times, of images {shape(images)},"
        expect_equal(module(images), _embedded(weights, images, 2), name, TOKEN_AXES)


@PatchEmbedding.check(needs=tokens_are_projected_patches, worth=0.5)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """Moved to another device, it gives tokens that lie there."""
    expect_device_of_input(student, probe.images(2, 3, 4, 6), arguments=(3, 2, 7))


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it embeds float64 images."""
    module, weights = _embedding(student, probe, 3, 2)
    module.double()
    images = probe.images(2, 3, 4, 6, dtype=torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    expect_equal(module(images), _embedded(doubled, images, 2), "the embedding in float64", TOKEN_AXES)


PatchEmbedding.example("""
>>> tuple(PatchEmbedding(3, 4, 10)(torch.zeros(2, 3, 8, 12)).shape)
(2, 6, 10)
""")

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


@conv_from_linear.check
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


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel)
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
