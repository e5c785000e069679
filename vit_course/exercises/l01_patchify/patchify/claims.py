"""`patchify`: images into patches; and `fix_patchify`, its bug hunt.

The oracle is torch's own ``F.unfold``. Patches are moved, not computed, so numbers are compared to their last digit.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import (
    Describe,
    expect_equal,
    expect_tensor,
    find_nan_or_zeros,
    format_dtype,
    format_shape,
)
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import TALL, WIDE, Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON

PATCH_AXES = ("image", "token", "feature")
PIXEL_AXES = ("image", "channel", "row", "column")
DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool)


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


@patchify.check(needs=every_patch_becomes_one_token, points={"patchify": 1.75, "fix_patchify": 0.55})
def tokens_run_row_by_row(student: Student, probe: Probe) -> None:
    """Tokens follow the image row by row, each row from left to right."""
    (batch, rows, columns, size), channels = probe.sizes(4, high=6, shown=(2, 2, 3, 4)), _draw_channels(probe)
    for down, across in ((rows, columns), (columns, rows)):
        images = _make_numbered_images(probe, batch, channels, down * size, across * size)
        right = patches_of(images, size)
        tokens = expect_tensor(student(images, size), right.shape, student.name)
        gave = f"{student.name} gave {format_shape(right)}, as expected, but"
        if empty := find_nan_or_zeros(tokens, images):
            seen, wanted, look = empty
            raise Failure(f"{gave} {seen}", wanted, look)
        wrong = (tokens[:, :, 0] != right[:, :, 0]).nonzero()
        if len(wrong):
            image, token = (int(index) for index in wrong[0])
            here, there = (
                _describe_numbered_pixel(float(each[image, token, 0]), *images.shape[1:]) for each in (tokens, right)
            )
            look = f"Count the patches of a {down} x {across} grid from 0, row by row: where is number {token}?"
            raise Failure(
                f"{gave} token {token} of image {image} starts with {here}",
                f"it starts with {there}",
                _find_changed_number(tokens, images) or look,
            )


@patchify.check(needs=every_patch_becomes_one_token, points={"patchify": 1.5, "fix_patchify": 0.45})
def a_token_goes_channel_row_column(student: Student, probe: Probe) -> None:
    """Inside a token the order is channel, then pixel row, then pixel column."""
    batch, size, channels = probe.sizes(3, low=3, high=7, shown=(2, 4, 3))
    for side, held in ((size, channels), (2, probe.choice((4, 6))), (size, 3)):
        images = _make_numbered_images(probe, batch, held, side, side)

        def describe_entry_of_token(actual: Tensor, expected: Tensor, images: Tensor = images) -> tuple[str, str]:
            entry = int((actual != expected)[0, 0].nonzero()[0]) if (actual != expected)[0, 0].any() else 0
            here, there = (
                _describe_numbered_pixel(float(each[0, 0, entry]), *images.shape[1:]) for each in (actual, expected)
            )
            return f"entry {entry} of the token is {here}", there

        look = "Which of the three axes inside a patch varies fastest when you flatten it?"
        _expect_right_tokens(student, images, side, "one patch", describe_entry_of_token, look)


@patchify.check(needs=every_patch_becomes_one_token, points={"patchify": 1.5, "fix_patchify": 0.5})
def tall_and_wide_images_are_right(student: Student, probe: Probe) -> None:
    """Images that are taller than wide, or wider than tall, with any number of channels, come out right."""
    batch, channels, rows, columns, size = probe.sizes(5, high=6, shown=(4, 2, 6, 5, 3))
    for held, depth, down, across, side in (
        (batch, channels, rows, columns, size),
        (2, 3, rows, columns, size),
        (1, probe.choice((4, 6, 7)), columns, rows, 5),
        (channels, 1, rows, columns, 7),
        (batch, channels, rows, 1, 1),
        (batch, channels, 1, columns, size),  # one row of patches
        (batch, channels, rows, rows, 3),
        (1, 3, 2, 1, probe.choice((16, 20, 32))),
    ):
        images = probe.images(held, depth, down * side, across * side)
        _expect_right_tokens(student, images, side, f"{depth} x {down * side} x {across * side} images")


@patchify.check(needs=tall_and_wide_images_are_right, guard=True, points={"patchify": 1.25, "fix_patchify": 0.35})
def dtype_and_memory_layout_do_not_matter(student: Student, probe: Probe) -> None:
    """Integer, half and double images keep their dtype, and non-contiguous images are read right."""
    batch, channels, rows, columns = probe.sizes(4, low=4, high=7, shown=(2, 3, 4, 6))
    for dtype in DTYPES:
        images = probe.every_digit(batch, channels, 2 * rows, 2 * columns, dtype=dtype)
        _expect_right_tokens(student, images, 2, f"{format_dtype(dtype)} images")
    turned = probe.normal(3 * columns, 3 * rows, channels, batch).permute(3, 2, 1, 0)
    stepped = probe.images(batch, channels, 3 * rows, 6 * columns)[..., ::2]
    repeated = probe.images(1, 1, 3 * rows, 3 * columns).expand(batch, channels, -1, -1)
    for images in (turned, stepped, repeated):
        _expect_right_tokens(student, images, 3, "non-contiguous images")


@patchify.check(needs=tokens_run_row_by_row, worth=0.5, guard=True)
def one_image_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its three axes, and so does an image of one patch."""
    (rows, columns, size), channels = probe.sizes(3, high=6, shown=(2, 3, 2)), _draw_channels(probe)
    for down, across in ((rows, columns), (1, 1)):
        _expect_right_tokens(student, probe.images(1, channels, down * size, across * size), size, "one image")


@patchify.check(
    needs=tall_and_wide_images_are_right, worth=0.5, guard=True, points={"patchify": 0.5, "fix_patchify": 0.15}
)
def every_pixel_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every number in a token returns to the pixel that it came from."""
    inputs = draw_images_and_patch_size(probe)
    expect_input_gradients(student, inputs, ("images",), patches_of, PIXEL_AXES)


@patchify.check(
    needs=tall_and_wide_images_are_right,
    worth=0.5,
    guard=True,
    points={"patchify": 0.3, "fix_patchify": 0.15},
    first=tall_and_wide_images_are_right,
)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The tokens lie on the device of the images."""
    expect_device_of_input(student, *draw_images_and_patch_size(probe))


@patchify.check(guard=True)
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(*draw_images_and_patch_size(probe))
    expect_inputs_unchanged(student)


@patchify.check(
    guard=True,
    points={"patchify": 0.5, "fix_patchify": 0.45},
    first=ignore_wrong_numbers(tall_and_wide_images_are_right),
)
def sizes_that_do_not_fit_are_refused(student: Student, probe: Probe) -> None:
    """A height or a width that patch_size does not divide raises ValueError naming both numbers."""
    batch, channels, small, large = probe.sizes(4, low=2, high=8, shown=(2, 3, 2, 3))
    size = probe.choice((4, 6), shown=4)
    for height, width, side in (
        (small * size + 2, (small + 1) * size, "height"),
        (large * size, (large + 1) * size - 1, "width"),
        (3 * size // 2, 2 * size, "height"),  # as many pixels as whole patches have
        (size - 1, size, "height"),  # not even one patch fits
    ):
        numbers = {"height": height, "width": width}[side], size
        inputs = probe.images(batch, channels, height, width), size
        expect_value_error(student, inputs, numbers, f"{height} x {width} images", side)


patchify.example(
    """
>>> patchify(torch.arange(16).reshape(1, 1, 4, 4), 2)[0].tolist()
[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
""",
    points={"patchify": 0.2, "fix_patchify": 0.1},
    first=tall_and_wide_images_are_right,
)

fix_patchify = patchify.share_checks("fix_patchify")
fix_patchify.example("""
>>> fix_patchify(torch.arange(8).reshape(1, 1, 2, 4), 2)[0].tolist()
[[0, 1, 4, 5], [2, 3, 6, 7]]
""")


def _gather_tokens_by_pixel_index(images: Tensor, size: int, in_a_row: int, of_a_channel: int) -> Tensor:
    """Tokens fetched from the flattened images: so many patches in a row, and rows of pixels in a channel."""
    channels, height, width = images.shape[1:]
    for name, side in (("height", height), ("width", width)):
        if side % size:
            raise ValueError(f"{name} {side} is not divisible by patch_size {size}")
    token = torch.arange(height // size * (width // size), device=images.device)[:, None]
    channel, inside = (each(torch.arange(channels * size**2, device=images.device), size**2) for each in _DIVIDED)
    row, column = (each(token, in_a_row) * size + each(inside, size) for each in _DIVIDED)
    return images.flatten(1)[:, (channel * of_a_channel + row) * width + column]


_DIVIDED = torch.floor_divide, torch.remainder


@patchify.misconception(
    "How many patches stand in one row of the grid?", f"{LESSON}, Two kinds of axes", InTraining.UNSEEN
)
def patches_in_a_row_by_the_height(images: Tensor, patch_size: int) -> Tensor:
    """A patch's row and column come from a division by the number of patches down, which should be those across."""
    return _gather_tokens_by_pixel_index(images, patch_size, images.shape[2] // patch_size, images.shape[2])


@patchify.misconception("How many rows of pixels has one channel?", f"{LESSON}, Two kinds of axes", InTraining.UNSEEN)
def rows_of_a_channel_by_the_width(images: Tensor, patch_size: int) -> Tensor:
    """The next channel is looked for after as many rows as the image has columns, so the colors do not fit together."""
    return _gather_tokens_by_pixel_index(images, patch_size, images.shape[3] // patch_size, images.shape[3])


def _expect_right_tokens(
    student: Student, images: Tensor, size: int, described: str, describe: Describe | None = None, look: str = ""
) -> None:
    """Right tokens, and no number rounded on its way into one."""
    name, right = f"{student.name} of {described}", patches_of(images, size)
    tokens = expect_tensor(student(images, size), right.shape, name)
    expect_equal(tokens, right, name, PATCH_AXES, describe, _find_changed_number(tokens, images) or look)
    if not torch.equal(tokens, right):
        look = "Which line takes the numbers through another dtype?"
        raise Failure(f"{name} has numbers that are a little off, as if rounded", "the very numbers of the image", look)


def _find_changed_number(tokens: Tensor, images: Tensor) -> str:
    """Where to look if a number is none of the images': then their order is not the first question.

    A 0 says nothing: it may be left where no pixel was written.
    """
    moved = torch.isin(tokens[tokens != 0].double(), images.double()).all()
    return "" if moved else "A pixel is moved, never changed: which line changes its number?"


def draw_images_and_patch_size(probe: Probe) -> tuple[Tensor, int]:
    """(batch, channels, rows * patch_size, columns * patch_size) and patch_size."""
    (batch, rows, columns, size), channels = probe.sizes(4, high=6, shown=(2, 4, 6, 2)), _draw_channels(probe)
    return probe.images(batch, channels, rows * size, columns * size), size


def _draw_channels(probe: Probe) -> int:
    """3 in `check`, and never in grading, where a 3 that is written down is wrong in every draw."""
    return probe.choice((7, 8), shown=3)


def _make_numbered_images(probe: Probe, batch: int, channels: int, height: int, width: int) -> Tensor:
    """Images whose pixels count up from 1, so that a 0 is told from a pixel."""
    return probe.numbered_images(batch, channels, height, width) + 1


def _describe_numbered_pixel(number: float, channels: int, height: int, width: int) -> str:
    """Which pixel of numbered images a value is."""
    if number < 1 or not number.is_integer():
        return f"{number:g}, which is no pixel of the images"
    image, rest = divmod(int(number) - 1, channels * height * width)
    channel, rest = divmod(rest, height * width)
    row, column = divmod(rest, width)
    return f"the pixel of image {image}, channel {channel}, row {row}, column {column}"


def copy_to_cpu(tensor: Tensor) -> Tensor:
    """The same numbers in a new tensor, which nobody has told where to lie."""
    made = torch.zeros(tensor.shape, dtype=tensor.dtype)
    made[:] = tensor
    return made


read_mistakes(patchify, __name__)
declare_pairs(patchify, Layout(patches_of, (torch.empty(2, 3, 6, 10), 2)))
