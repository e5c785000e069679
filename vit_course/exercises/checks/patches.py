"""Public checks of lesson 01: images into patches, and patches into tokens.

The oracles are torch's own ``F.unfold`` and ``F.fold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, short, without_content
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_value_error,
)
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from exercise_kit.worker.calls import cotangent

LESSON = "01_patchify"
PATCH_AXES = ("image", "token", "feature")
PIXEL_AXES = ("image", "channel", "row", "column")


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
    if empty := without_content(tokens, images):
        seen, wanted, look = empty
        raise Failure(f"{student.name} gave (2, 6, 48), as expected, but {seen}", wanted, look)
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
    for (height, width), channels, patch_size in ((TALL, 2, 2), (WIDE, 5, 2), ((9, 6), 1, 3), ((32, 16), 3, 16)):
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


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes, and so does an image of one patch."""
    for sizes in ((1, 3, 4, 6), (1, 3, 2, 2)):
        images = probe.images(*sizes)
        expect_equal(student(images, 2), patches_of(images, 2), f"{student.name} of one image", PATCH_AXES)


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5)
def every_pixel_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every number in a token returns to the pixel that it came from."""
    expect_input_gradients(student, (probe.images(2, 3, 4, 6), 2), ("images",), patches_of, PIXEL_AXES)


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The tokens lie on the device of the images."""
    expect_device_of_input(student, probe.images(2, 3, 4, 6), 2)


@patchify.check
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(probe.images(2, 3, 4, 6), 2)
    expect_left_alone(student)


@patchify.check
def sizes_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """A height or a width that patch_size does not divide raises ValueError naming both numbers."""
    for height, width, side in ((10, 8, "height"), (8, 14, "width")):
        numbers = {"height": height, "width": width}[side], 4
        inputs = probe.images(2, 3, height, width), 4
        expect_value_error(student, inputs, numbers, f"{height} x {width} images", side)


patchify.example("""
>>> patchify(torch.arange(16).reshape(1, 1, 4, 4), 2)[0].tolist()
[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
""")

fix_patchify = patchify.again("fix_patchify")
fix_patchify.example("""
>>> fix_patchify(torch.arange(8).reshape(1, 1, 2, 4), 2)[0].tolist()
[[0, 1, 4, 5], [2, 3, 6, 7]]
""")

unpatchify = Exercise("unpatchify", LESSON, in_training=InTraining.UNSEEN)


@unpatchify.check
def images_get_their_size_back(student: Student, probe: Probe) -> None:
    """The result has the shape (batch, channels, height, width)."""
    for (height, width), patch_size in (((16, 4), 2), ((6, 15), 3)):  # a root of 16 tokens is neither side
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


@unpatchify.check(needs=images_get_their_size_back, worth=0.5)
def one_image_comes_back_as_a_batch(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its four axes, with several channels or with one."""
    for channels in (3, 1):
        images = probe.images(1, channels, 4, 6)
        result = student(patches_of(images, 2), 2, (4, 6))
        expect_equal(result, images, f"unpatchify of one image of {channels} channels", PIXEL_AXES)


@unpatchify.check(needs=images_get_their_size_back, worth=0.5)
def every_number_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every pixel returns to the number of the patch that it came from."""
    images = probe.images(2, 3, 4, 6)
    found = student.input_gradients(patches_of(images, 2), 2, (4, 6))[0]
    if found is None:
        look = "Which step hands on bare numbers, and forgets where they came from?"
        raise Failure("no gradient reaches the patches through unpatchify", "one for every number", look)
    expect_equal(found, patches_of(cotangent(images), 2), "the gradient of the patches", PATCH_AXES)


@unpatchify.check(needs=images_get_their_size_back, worth=0.5)
def it_computes_where_the_patches_are(student: Student, probe: Probe) -> None:
    """The images lie on the device of the patches."""
    expect_device_of_input(student, probe.normal(2, 6, 12), 2, (4, 6))


@unpatchify.check
def the_patches_are_left_alone(student: Student, probe: Probe) -> None:
    """The patches that go in are not changed."""
    student(probe.normal(2, 7, 12), 2, (2, 14))
    expect_left_alone(student)


unpatchify.example("""
>>> unpatchify(torch.tensor([[[0, 1, 4, 5], [2, 3, 6, 7]]]), 2, (2, 4)).tolist()
[[[[0, 1, 2, 3], [4, 5, 6, 7]]]]
""")


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
