"""`patchify`: images into patches; and `fix_patchify`, its bug hunt.

The oracles are torch's own ``F.unfold`` and ``F.fold``. The known mistakes start from ``F.unfold`` or from a plain
reshape and go wrong.
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
from exercise_kit.engine.two_mistakes import Layout, declare
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON

PATCH_AXES = ("image", "token", "feature")
PIXEL_AXES = ("image", "channel", "row", "column")


def patches_of(images: Tensor, patch_size: int) -> Tensor:
    """The oracle of patchify: (batch, tokens, channels * patch_size**2), by torch's sliding windows."""
    windows = F.unfold(images.double(), patch_size, stride=patch_size)
    return windows.transpose(1, 2).to(images.dtype)


patchify = Exercise("patchify", LESSON)


@patchify.check(guard=True)
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
            "Which token comes after the first: the neighbor to the right, or something else?",
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


@patchify.check(needs=every_patch_becomes_one_token, guard=True)
def dtype_and_memory_layout_do_not_matter(student: Student, probe: Probe) -> None:
    """Integer, half and double images keep their dtype, and non-contiguous images are read right."""
    for dtype in (torch.float64, torch.float16, torch.uint8):
        images = (probe.uniform(2, 3, 4, 6) * 200).to(dtype)
        name = f"{student.name} of {short(dtype)} images"
        expect_equal(student(images, 2), patches_of(images, 2), name, PATCH_AXES)
    images = probe.images(2, 6, 4, 3).permute(0, 3, 2, 1)
    name = f"{student.name} of non-contiguous images"
    expect_equal(student(images, 2), patches_of(images, 2), name, PATCH_AXES)


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5, guard=True)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes, and so does an image of one patch."""
    for sizes in ((1, 3, 4, 6), (1, 3, 2, 2)):
        images = probe.images(*sizes)
        expect_equal(student(images, 2), patches_of(images, 2), f"{student.name} of one image", PATCH_AXES)


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5, guard=True)
def every_pixel_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every number in a token returns to the pixel that it came from."""
    expect_input_gradients(student, (probe.images(2, 3, 4, 6), 2), ("images",), patches_of, PIXEL_AXES)


@patchify.check(needs=every_patch_becomes_one_token, worth=0.5, guard=True)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The tokens lie on the device of the images."""
    expect_device_of_input(student, probe.images(2, 3, 4, 6), 2)


@patchify.check(guard=True)
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(probe.images(2, 3, 4, 6), 2)
    expect_left_alone(student)


@patchify.check(guard=True)
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

fix_patchify = patchify.share_checks("fix_patchify")
fix_patchify.example("""
>>> fix_patchify(torch.arange(8).reshape(1, 1, 2, 4), 2)[0].tolist()
[[0, 1, 4, 5], [2, 3, 6, 7]]
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


TOKEN = "01_patchify, What a token is"
ORDER = "01_patchify, Two kinds of axes"


@patchify.misconception("Read a picture row by row: where do the first 16 of its pixels lie?", TOKEN)
def strips_not_squares(images: Tensor, patch_size: int) -> Tensor:
    """A plain reshape cuts the pixels row after row, so a token is a thin strip and not a square."""
    batch, _, height, width = images.shape
    return images.reshape(batch, height // patch_size * (width // patch_size), -1)


@patchify.misconception("Which grid axis varies fastest in your reshape?", ORDER)
def column_order(images: Tensor, patch_size: int) -> Tensor:
    """The tokens run down the columns of the grid, so the second token is the patch below the first."""
    columns_first = patches_of(images.transpose(2, 3), patch_size)
    inside = columns_first.unflatten(2, (images.shape[1], patch_size, patch_size))
    return inside.transpose(3, 4).flatten(2)


@patchify.misconception("After your permute, which axis stands last?", ORDER)
def channels_last_inside_a_token(images: Tensor, patch_size: int) -> Tensor:
    """Red, green and blue of one pixel stand side by side, where the whole red patch should come first."""
    return patches_of(images, patch_size).unflatten(2, (images.shape[1], -1)).transpose(2, 3).flatten(2)


@patchify.misconception("Which of the two pixel axes of a patch comes first in your permute?", ORDER)
def pixel_rows_and_columns_swapped(images: Tensor, patch_size: int) -> Tensor:
    """Each patch lies on its side: its pixels are read column by column."""
    inside = patches_of(images, patch_size).unflatten(2, (images.shape[1], patch_size, patch_size))
    return inside.transpose(3, 4).flatten(2)


@patchify.misconception("Did height and width trade places before you cut?", ORDER)
def the_whole_image_transposed(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are swapped everywhere: tokens run down the columns, and so do the pixels inside."""
    return patches_of(images.transpose(2, 3), patch_size)


@patchify.misconception("Which axis should a token lie along: the last one, or the one before?", TOKEN)
def tokens_on_the_last_axis(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are right, but the last two axes are the wrong way round."""
    return patches_of(images, patch_size).transpose(1, 2)


@patchify.misconception("How many patches fit across, and how many down?", ORDER)
def grid_from_one_side(images: Tensor, patch_size: int) -> Tensor:
    """The number of patches down is used across too, which is right for square images only."""
    batch, channels, height, _ = images.shape
    side = height // patch_size
    return patches_of(images.reshape(batch, channels, side * patch_size, side * patch_size), patch_size)


@patchify.misconception("Is patch_size counted in pixels or in patches?", TOKEN)
def number_of_patches_for_patch_size(images: Tensor, patch_size: int) -> Tensor:
    """The image is cut into patch_size patches a side, where each patch should have patch_size pixels a side."""
    kernel = images.shape[2] // patch_size, images.shape[3] // patch_size
    return F.unfold(images.double(), kernel, stride=kernel).transpose(1, 2).to(images.dtype)


@patchify.misconception("How far apart do two neighboring patches start?", TOKEN)
def overlapping_patches(images: Tensor, patch_size: int) -> Tensor:
    """The window moves by less than a patch, so patches overlap and there are too many of them."""
    step = max(patch_size // 2, 1)
    return F.unfold(images.double(), patch_size, stride=step).transpose(1, 2).to(images.dtype)


@patchify.misconception("What happens to the pixels that are left over at the edge?", TOKEN)
def remainder_dropped_in_silence(images: Tensor, patch_size: int) -> Tensor:
    """Where patch_size does not divide a side, the rest of the image is dropped without an error."""
    return patches_of(images, patch_size)


@patchify.misconception("Where could the number of channels come from?", TOKEN)
def three_channels_hard_coded(images: Tensor, patch_size: int) -> Tensor:
    """The number of channels is written into the code as 3."""
    batch, _, height, width = images.shape
    return patches_of(images.reshape(batch, 3, height, width), patch_size)


@patchify.misconception("Which dtype does your new tensor get, and which had the images?", TOKEN)
def float32_whatever_the_input(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are filled into a new float32 tensor, whatever the dtype of the images."""
    return patches_of(images, patch_size).float()


@patchify.misconception("Is the tensor that you write into yours, or the caller's?", TOKEN)
def input_changed_in_place(images: Tensor, patch_size: int) -> Tensor:
    """The images are written to on the way, so the caller's picture is no longer the same."""
    tokens = patches_of(images, patch_size)
    images.zero_()
    return tokens


@patchify.misconception("Which axis of the result still belongs to the batch?", ORDER)
def batch_and_tokens_mixed(images: Tensor, patch_size: int) -> Tensor:
    """The token axis is moved in front of the batch before the reshape, so images get each other's patches."""
    tokens = patches_of(images, patch_size)
    return tokens.transpose(0, 1).reshape(tokens.shape)


def _six_axes(images: Tensor, patch_size: int) -> Tensor:
    """(batch, channels, patch_size, rows, patch_size, columns), with height and width split the wrong way round."""
    batch, channels, height, width = images.shape
    for side in (height, width):
        if side % patch_size:
            raise ValueError(f"{side} is not divisible by {patch_size}")
    return images.reshape(batch, channels, patch_size, height // patch_size, patch_size, width // patch_size)


@patchify.misconception(
    "When you split an axis in two, which part tells neighbors apart: the first, or the last?", ORDER
)
def pixels_from_all_over_the_image(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are split the wrong way round, so a token gathers pixels that lie far apart."""
    return _six_axes(images, patch_size).permute(0, 3, 5, 1, 2, 4).flatten(3).flatten(1, 2)


@patchify.misconception("How long is each of the six axes after your split, and which of them count patches?", ORDER)
def patch_size_counted_as_patches(images: Tensor, patch_size: int) -> Tensor:
    """Height and width are split into patch_size parts each, and the last reshape hides that by cutting them anew."""
    batch, channels, _, _ = images.shape
    return _six_axes(images, patch_size).permute(0, 2, 4, 1, 3, 5).reshape(batch, -1, channels * patch_size**2)


def on_the_cpu(tensor: Tensor) -> Tensor:
    """The same numbers in a new tensor, which nobody has told where to lie."""
    made = torch.zeros(tensor.shape, dtype=tensor.dtype)
    made[:] = tensor
    return made


@patchify.misconception("On which device does your new tensor lie, and on which the images?", TOKEN, InTraining.UNSEEN)
def tokens_made_on_the_cpu(images: Tensor, patch_size: int) -> Tensor:
    """The tokens are filled into a new tensor on the CPU, wherever the images are."""
    return on_the_cpu(patches_of(images, patch_size))


@patchify.misconception(
    "By which operations does a gradient get from your result back to the images?", TOKEN, InTraining.UNSEEN
)
def pixels_cut_from_their_gradient(images: Tensor, patch_size: int) -> Tensor:
    """The pixels are copied as bare numbers, so no gradient finds its way back to the images."""
    return patches_of(images.detach(), patch_size)


@patchify.misconception("How many axes has a batch of one image?", TOKEN, InTraining.UNSEEN)
def batch_of_one_squeezed(images: Tensor, patch_size: int) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image loses its first axis."""
    return patches_of(images, patch_size).squeeze()


declare(patchify, Layout(patches_of, (torch.empty(2, 3, 6, 10), 2)))
