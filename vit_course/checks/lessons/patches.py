"""Public checks of lesson 01: images into patches, and patches into tokens.

The oracles are torch's own ``F.unfold`` and ``F.fold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_course.checks.common import expect_left_alone, expect_value_error
from vit_course.checks.compare import expect_equal, expect_tensor
from vit_course.checks.exercise import Exercise
from vit_course.checks.probes import TALL, WIDE, Probe
from vit_course.checks.student import Student, StudentModule
from vit_course.checks.verdict import Failure
from vit_course.checks.words import kind_of, shape, short

LESSON = "01_patchify"
PATCH_AXES = ("image", "token", "feature")
PIXEL_AXES = ("image", "channel", "row", "column")
TOKEN_AXES = ("image", "token", "dimension")


def patches_of(images: Tensor, patch_size: int) -> Tensor:
    """The oracle of patchify: (batch, tokens, channels * patch_size**2), by torch's sliding windows."""
    windows = F.unfold(images.double(), patch_size, stride=patch_size)
    return windows.transpose(1, 2).to(images.dtype)


patchify = Exercise("patchify", LESSON)


@patchify.check
def every_patch_becomes_one_token(student: Student, probe: Probe) -> None:
    """Every patch becomes one token, so the shape is (batch, tokens, channels · patch_size²)."""
    for height, width in (TALL, WIDE):
        images = probe.images(3, 5, height, width)
        name = f"{student.name} of a {height} x {width} image"
        expect_tensor(student(images, 2), patches_of(images, 2).shape, name)


@patchify.check(needs=every_patch_becomes_one_token)
def tokens_run_row_by_row(student: Student, probe: Probe) -> None:
    """Tokens follow the image row by row, each row from left to right."""
    height, width, patch_size = 8, 12, 4
    images = _numbered(probe, 2, 3, height, width)
    tokens = expect_tensor(student(images, patch_size), (2, 6, 48), student.name)
    corners = images[:, 0, ::patch_size, ::patch_size].flatten(1)
    wrong = (tokens[:, :, 0] != corners).nonzero()
    if len(wrong):
        image, token = (int(index) for index in wrong[0])
        here = _pixel(int(tokens[image, token, 0]), 3, height, width)
        there = _pixel(int(corners[image, token]), 3, height, width)
        raise Failure(
            f"{student.name} gave (2, 6, 48), as expected, but token {token} of image {image} starts with {here}",
            f"it starts with {there}",
            "Which token comes after the first: the neighbour to the right, or something else?",
        )


@patchify.check(needs=every_patch_becomes_one_token)
def a_token_goes_channel_row_column(student: Student, probe: Probe) -> None:
    """Inside a token the order is channel, then pixel row, then pixel column."""
    images = _numbered(probe, 2, 3, 4, 4)

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        entry = int((actual != expected)[0, 0].nonzero()[0]) if (actual != expected)[0, 0].any() else 0
        here, there = (_pixel(int(each[0, 0, entry]), 3, 4, 4) for each in (actual, expected))
        return f"entry {entry} of the token is {here}", there

    look = "Which of the three axes inside a patch varies fastest when you flatten it?"
    name = f"{student.name} of one patch"
    expect_equal(student(images, 4), patches_of(images, 4), name, PATCH_AXES, describe, look)


@patchify.check(needs=every_patch_becomes_one_token)
def tall_and_wide_images_are_right(student: Student, probe: Probe) -> None:
    """Images that are taller than wide, or wider than tall, with any number of channels, come out right."""
    for (height, width), channels in ((TALL, 2), (WIDE, 5), ((9, 6), 1)):
        patch_size = 3 if height == 9 else 2
        images = probe.images(4, channels, height, width)
        name = f"{student.name} of {channels} x {height} x {width} images"
        expect_equal(student(images, patch_size), patches_of(images, patch_size), name, PATCH_AXES)


@patchify.check(needs=every_patch_becomes_one_token)
def dtype_and_memory_layout_do_not_matter(student: Student, probe: Probe) -> None:
    """Integer, half and double images keep their dtype, and non-contiguous images are read right."""
    for dtype in (torch.float64, torch.float16, torch.uint8):
        images = (probe.uniform(2, 3, 4, 6) * 200).to(dtype)
        name = f"{student.name} of {short(dtype)} images"
        expect_equal(student(images, 2), patches_of(images, 2), name, PATCH_AXES)
    images = probe.images(2, 6, 4, 3).permute(0, 3, 2, 1)
    name = f"{student.name} of non-contiguous images"
    expect_equal(student(images, 2), patches_of(images, 2), name, PATCH_AXES)


@patchify.check
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(probe.images(2, 3, 4, 6), 2)
    expect_left_alone(student)


@patchify.check
def sizes_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """A height or a width that patch_size does not divide raises ValueError naming both numbers."""
    for height, width, side in ((10, 8, 10), (8, 14, 14)):
        expect_value_error(student, (probe.images(2, 3, height, width), 4), (side, 4), f"{height} x {width} images")


fix_patchify = patchify.again("fix_patchify")

unpatchify = Exercise("unpatchify", LESSON)


@unpatchify.check
def images_get_their_size_back(student: Student, probe: Probe) -> None:
    """The result has the shape (batch, channels, height, width)."""
    for (height, width), patch_size in ((TALL, 2), ((6, 15), 3)):
        patches = probe.normal(3, height * width // patch_size**2, 5 * patch_size**2)
        result = student(patches, patch_size, (height, width))
        expect_tensor(result, (3, 5, height, width), f"unpatchify for {height} x {width} pixels")


@unpatchify.check(needs=images_get_their_size_back)
def every_pixel_returns_to_its_place(student: Student, probe: Probe) -> None:
    """Patches made by a right patchify become the same image again."""
    for (height, width), channels, patch_size in ((TALL, 3, 2), ((6, 15), 2, 3)):
        images = _numbered(probe, 2, channels, height, width)

        def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
            place = [int(index) for index in (actual != expected).nonzero()[0]]
            where = ", ".join(f"{axis} {index}" for axis, index in zip(PIXEL_AXES, place, strict=True))
            here = _pixel(int(actual[tuple(place)]), *expected.shape[1:])
            return f"at {where} there is {here}", "the pixel of that very place"

        look = "Undo the steps of patchify one by one, the last one first."
        result = student(patches_of(images, patch_size), patch_size, (height, width))
        expect_equal(result, images, "unpatchify", PIXEL_AXES, describe, look)


@unpatchify.check(needs=images_get_their_size_back)
def dtypes_are_kept(student: Student, probe: Probe) -> None:
    """Integer, half and double patches keep their dtype."""
    for dtype in (torch.float64, torch.float16, torch.uint8):
        images = (probe.uniform(2, 3, 4, 6) * 200).to(dtype)
        expect_equal(student(patches_of(images, 2), 2, (4, 6)), images, f"unpatchify of {short(dtype)}", PIXEL_AXES)


@unpatchify.check
def the_patches_are_left_alone(student: Student, probe: Probe) -> None:
    """The patches that go in are not changed."""
    student(probe.normal(2, 6, 12), 2, (4, 6))
    expect_left_alone(student)


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
    _embedding(student, probe, 3, 4)


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


@PatchEmbedding.check(needs=its_parameters_are_one_linear)
def it_follows_its_dtype(student: Student, probe: Probe) -> None:
    """After `.double()` it embeds float64 images."""
    module, weights = _embedding(student, probe, 3, 2)
    module.module.double()
    images = probe.images(2, 3, 4, 6, dtype=torch.float64)
    doubled = {name: tensor.double() for name, tensor in weights.items()}
    expect_equal(module(images), _embedded(doubled, images, 2), "the embedding in float64", TOKEN_AXES)


conv_from_linear = Exercise("conv_from_linear", LESSON)


def _convolution(student: Student, linear: nn.Linear, channels: int, patch_size: int) -> nn.Conv2d:
    made = student(linear, channels, patch_size)
    if not isinstance(made, nn.Conv2d):
        look = "Does every path end in a `return`?" if made is None else "What does your `return` line give back?"
        raise Failure(f"conv_from_linear gave {kind_of(made)}", "an nn.Conv2d", look)
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
    made = _convolution(student, _linear(probe, 27), 3, 3)
    padding = (0, 0) if made.padding == "valid" else made.padding
    found = (made.in_channels, made.out_channels, made.kernel_size, made.stride, padding)
    student.record += [str(found), shape(made.weight)]
    wanted = (3, 7, (3, 3), (3, 3), (0, 0))
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding")
    slips = [number for number in range(5) if found[number] != wanted[number]]
    if slips:
        seen, right = (", ".join(f"{names[number]} {each[number]}" for number in slips) for each in (found, wanted))
        raise Failure(f"its {seen}", f"{right}, where in_channels is 3, patch_size 3, and the Linear goes to 7")
    if made.weight.shape != (7, 3, 3, 3):
        look = "Is one kernel a row of numbers, or one square for each channel?"
        raise Failure(f"its weight has the shape {shape(made.weight)}", "(7, 3, 3, 3)", look)


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel)
def both_give_the_same_tokens(student: Student, probe: Probe) -> None:
    """On the same image the convolution gives what the Linear gives on the patches."""
    for (height, width), channels in ((TALL, 3), (WIDE, 2)):
        linear = _linear(probe, channels * 4)
        images = probe.images(3, channels, height, width)
        made = _convolution(student, linear, channels, 2)
        with torch.no_grad():
            tokens = made(images).flatten(2).transpose(1, 2)
            wanted = linear(patches_of(images, 2))
        student.record.append(tokens)
        look = "In which order does a row of the Linear's weight hold channel, pixel row and pixel column?"
        expect_equal(tokens, wanted, "the convolution's output", TOKEN_AXES, look=look)


@conv_from_linear.check(needs=the_convolution_strides_by_its_kernel)
def a_linear_without_bias_works_too(student: Student, probe: Probe) -> None:
    """A Linear without a bias becomes a convolution without a bias."""
    made = _convolution(student, _linear(probe, 12, bias=False), 3, 2)
    student.record.append(made.bias is None)
    if made.bias is not None and made.bias.abs().max() > 0:
        raise Failure("the convolution has a bias", "none, as the Linear has none")


def _numbered(probe: Probe, batch: int, channels: int, height: int, width: int) -> Tensor:
    """Images whose pixels count up from 1, so that a 0 is told from a pixel."""
    return probe.numbered_images(batch, channels, height, width) + 1


def _pixel(number: int, channels: int, height: int, width: int) -> str:
    """Which pixel of numbered images a value is."""
    if number < 1:
        return f"{number}, which is no pixel of the images"
    image, rest = divmod(number - 1, channels * height * width)
    channel, rest = divmod(rest, height * width)
    row, column = divmod(rest, width)
    return f"the pixel of image {image}, channel {channel}, row {row}, column {column}"
