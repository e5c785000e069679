"""Hidden checks of ``patchify``, and of ``fix_patchify``, which mends a broken one.

Patches are moved, not computed, so every comparison asks for the very numbers of the image.
"""

import re

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, shape, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)
from exercise_kit.engine.verdict import Failure

AXES = ("image", "token", "feature")
LOOK = "Where in the image do the first numbers of token 1 stand, and where those of your token 1?"
DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool)


def _expect_right(student, reference, images, patch_size, described="images", describe=None, look=LOOK):
    """Right tokens, and no number rounded on its way into one."""
    name = f"{student.name} of {described} {shape(images)} with patch_size {patch_size}"
    tokens, right = student(images, patch_size), reference.patchify(images, patch_size)
    expect_equal(tokens, right, name, AXES, describe, look)
    if not torch.equal(tokens, right):
        look = "Which line takes the numbers through another dtype?"
        raise Failure(f"{name} has numbers that are a little off, as if rounded", "the very numbers of the image", look)


@pytest.mark.exercise("patchify", points=1.75)
@pytest.mark.exercise("fix_patchify", points=0.55)
def test_tokens_run_row_by_row(student, reference, probe):
    """Tokens follow the image row by row, each row from left to right, in tall images and in wide ones."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    for grid in ((rows, columns), (columns, rows)):
        numbers = probe.permutation(batch * rows * columns).float().reshape(batch, 1, *grid) + 1  # one for each patch
        images = numbers.repeat_interleave(patch_size, 2).repeat_interleave(patch_size, 3)
        images = images.repeat(1, channels, 1, 1)

        def describe(actual, expected, numbers=numbers):
            image, token = (int(index) for index in (actual != expected).any(2).nonzero()[0])
            found, right = (
                [int(index) for index in (numbers[:, 0] == each[image, token, 0]).nonzero()[0]]
                for each in (actual, expected)
            )
            patches = (f"the patch of image {i}, patch row {r}, patch column {c}" for i, r, c in (found, right))
            here, there = patches
            return (f"token {token} of image {image} starts with {here}", there) if here != there else None

        look = "Which patch comes after the first one, and which after the last one of a row?"
        _expect_right(student, reference, images, patch_size, "images", describe, look)


@pytest.mark.exercise("patchify", points=1.5)
@pytest.mark.exercise("fix_patchify", points=0.45)
def test_a_token_goes_channel_row_column(student, reference, probe):
    """Inside a token the order is channel, then pixel row, then pixel column."""
    batch, patch_size, channels = probe.sizes(3, low=3, high=7)
    look = "Which of channel, pixel row and pixel column varies fastest along your token, and which slowest?"
    for size, held in ((patch_size, channels), (2, probe.choice((4, 6))), (patch_size, 3)):
        images = probe.images(batch, held, size, size)
        _expect_right(student, reference, images, size, "images of one patch", look=look)


@pytest.mark.exercise("patchify", points=1.5)
@pytest.mark.exercise("fix_patchify", points=0.5)
def test_images_of_any_size_are_right(student, reference, probe):
    """Any number of images and of channels, any grid, square or not, any patch_size: all are cut alike."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    for held, depth, down, across, side in (
        (batch, channels, rows, columns, patch_size),
        (2, 3, rows, columns, patch_size),
        (1, probe.choice((4, 6, 7)), columns, rows, 5),
        (channels, 1, rows, columns, 7),
        (batch, channels, rows, 1, 1),
        (batch, channels, rows, rows, 3),
        (1, 3, 2, 1, probe.choice((16, 20, 32))),
    ):
        _expect_right(student, reference, probe.images(held, depth, down * side, across * side), side)


@pytest.mark.exercise("patchify", points=0.75)
@pytest.mark.exercise("fix_patchify", points=0.2)
def test_the_dtype_is_kept(student, reference, probe):
    """Double, half, bfloat16, integer and boolean images keep their dtype, and every number to its last digit."""
    batch, channels, rows, columns = probe.sizes(4, low=4, high=7)
    for dtype in DTYPES:
        images = probe.every_digit(batch, channels, 2 * rows, 2 * columns, dtype=dtype)
        _expect_right(student, reference, images, 2, f"{short(dtype)} images")


@pytest.mark.exercise("patchify", points=0.5)
@pytest.mark.exercise("fix_patchify", points=0.15)
def test_the_memory_layout_does_not_matter(student, reference, probe):
    """Images whose numbers do not lie in order in memory are cut like any others."""
    (batch, channels), (rows, columns, patch_size) = probe.sizes(2, low=4, high=7), probe.sizes(3, high=4)
    height, width = rows * patch_size, columns * patch_size
    turned = probe.normal(width, height, channels, batch).permute(3, 2, 1, 0)
    _expect_right(student, reference, turned, patch_size, "images with permuted axes")
    stepped = probe.images(batch, channels, height, 2 * width)[..., ::2]
    _expect_right(student, reference, stepped, patch_size, "images that skip every second column")
    repeated = probe.images(1, 1, height, width).expand(batch, channels, -1, -1)
    _expect_right(student, reference, repeated, patch_size, "expanded images")


@pytest.mark.exercise("patchify", points=0.25)
@pytest.mark.exercise("fix_patchify", points=0.1)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for the images at hand, on their device, and leaves them as they were."""
    (batch, channels), (rows, columns, patch_size) = probe.sizes(2, low=4, high=7), probe.sizes(3, high=4)
    for _ in range(2):
        images = probe.images(batch, channels, rows * patch_size, columns * patch_size).to(device)
        _expect_right(student, reference, images, patch_size)
    expect_left_alone(student)
    expect_result_of_its_own(student, (images, patch_size), (probe.images(*images.shape), patch_size))


@pytest.mark.exercise("patchify", points=0.5)
@pytest.mark.exercise("fix_patchify", points=0.15)
def test_every_pixel_gets_its_gradient(student, reference, probe):
    """The gradient of every number in a token returns to the pixel that it came from."""
    (batch, channels), (rows, columns, patch_size) = probe.sizes(2, low=4, high=7), probe.sizes(3, high=4)
    inputs = probe.images(batch, channels, rows * patch_size, columns * patch_size), patch_size
    axes = ("image", "channel", "row", "column")
    expect_input_gradients(student, inputs, ("images",), reference.patchify, axes)


@pytest.mark.exercise("patchify", points=0.5)
@pytest.mark.exercise("fix_patchify", points=0.45)
def test_sizes_that_do_not_fit_are_refused(student, reference, probe):
    """A height or a width that patch_size does not divide raises ValueError naming that side and patch_size."""
    batch, channels, small, large = probe.sizes(4, low=2, high=8)
    patch_size = probe.choice((4, 6))
    _expect_right(student, reference, probe.images(batch, channels, small * patch_size, large * patch_size), patch_size)
    half = patch_size // 2
    for height, width, side in (
        (small * patch_size + 1, (small + 1) * patch_size, "height"),
        (large * patch_size, (large + 1) * patch_size - 1, "width"),
        (3 * half, 2 * patch_size, "height"),  # as many pixels as whole patches have
        (patch_size - 1, patch_size, "height"),  # not even one patch fits
    ):
        wrong = {"height": height, "width": width}[side]
        described = f"{height} x {width} images with patch_size {patch_size}"
        images = probe.images(batch, channels, height, width)
        expect_value_error(student, (images, patch_size), (wrong, patch_size), described, side)


@pytest.mark.exercise("patchify", points=0.25)
@pytest.mark.exercise("fix_patchify", points=0.2)
def test_two_sides_that_do_not_fit_are_refused(student, reference, probe):
    """Where patch_size divides neither height nor width, ValueError names one of the two, and patch_size."""
    batch, channels, rows, columns = probe.sizes(4, low=2, high=8)
    patch_size = probe.choice((6, 8))
    height, width = rows * patch_size + 2, (columns + 1) * patch_size - 2  # in sum they fit
    _expect_right(student, reference, probe.images(batch, channels, patch_size, columns * patch_size), patch_size)
    inputs = probe.images(batch, channels, height, width), patch_size
    error = student.error_of(*inputs)
    named = re.findall(r"\d+", error.words) if error else []
    side, number = ("width", width) if str(width) in named else ("height", height)
    described = f"{height} x {width} images with patch_size {patch_size}"
    expect_value_error(student, inputs, (number, patch_size), described, side)


@pytest.mark.exercise("patchify", points=0.3)
@pytest.mark.exercise("fix_patchify", points=0.15)
def test_it_computes_where_the_images_are(student, reference, probe):
    """The tokens lie on the device of the images."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    images = probe.images(batch, channels, 3 * rows, 3 * columns)
    _expect_right(student, reference, images, 3)
    expect_device_of_input(student, images, 3)


@pytest.mark.exercise("patchify", points=0.2)
@pytest.mark.exercise("fix_patchify", points=0.1)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    _expect_right(student, reference, probe.images(batch, channels, 2 * rows, 2 * columns), 2)
    expect_example(student)
