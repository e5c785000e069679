"""Hidden checks of ``unpatchify``.

Pixels are moved, not computed, so every comparison asks for the very numbers of the patches.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, shape, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_input_gradients,
    expect_left_alone,
    expect_result_of_its_own,
)
from exercise_kit.engine.verdict import Failure

AXES = ("image", "channel", "row", "column")
LOOK = "Undo the steps of patchify one by one, the last one first."
DTYPES = (torch.float64, torch.float16, torch.bfloat16, torch.uint8, torch.int64, torch.bool)


def _expect_right(student, reference, patches, patch_size, image_size, described="patches", look=LOOK):
    """Every pixel in its place, and none rounded on the way."""
    height, width = image_size
    name = f"unpatchify of {described} with patch_size {patch_size} to {height} x {width} pixels"
    images, right = student(patches, patch_size, image_size), reference.unpatchify(patches, patch_size, image_size)
    expect_equal(images, right, name, AXES, look=look)
    if not torch.equal(images, right):
        look = "Which line takes the numbers through another dtype?"
        raise Failure(
            f"{name} has numbers that are a little off, as if rounded", "the very numbers of the patches", look
        )


def _patches(probe, batch, channels, rows, columns, patch_size):
    return probe.normal(batch, rows * columns, channels * patch_size**2)


@pytest.mark.exercise("unpatchify", points=1.1)
def test_every_patch_returns_to_its_place(student, reference, probe):
    """Patches are laid row by row, each row from left to right, in tall images and in wide ones."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    look = "Where does the second patch go, and where the first one of the next row?"
    for grid in ((4 * rows, rows), (rows, columns), (columns, rows)):  # a square of as many tokens is none of them
        patches = probe.normal(batch, grid[0] * grid[1], 1).expand(-1, -1, channels * patch_size**2).contiguous()
        size = tuple(patch_size * side for side in grid)
        _expect_right(student, reference, patches, patch_size, size, "patches of one color", look)


@pytest.mark.exercise("unpatchify", points=1.1)
def test_a_token_is_read_channel_row_column(student, reference, probe):
    """Inside a patch the numbers are read as channel, then pixel row, then pixel column."""
    batch, patch_size, channels = probe.sizes(3, low=3, high=7)
    look = "Which pixel does the second number of a token belong to?"
    for size, held in ((patch_size, channels), (2, probe.choice((4, 6)))):
        patches = _patches(probe, batch, held, 1, 1, size)
        _expect_right(student, reference, patches, size, (size, size), "single patches", look)


@pytest.mark.exercise("unpatchify", points=0.9)
def test_images_of_any_size_come_back(student, reference, probe):
    """Any number of images and of channels, any grid, square or not, any patch_size: every pixel comes home."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    for held, depth, down, across, side in (
        (batch, channels, 4 * rows, rows, patch_size),
        (batch, channels, rows, columns, patch_size),
        (1, probe.choice((4, 6, 7)), columns, rows, 5),
        (channels, 1, rows, columns, 7),
        (batch, channels, rows, 1, 1),
        (batch, channels, rows, rows, 3),
    ):
        patches = _patches(probe, held, depth, down, across, side)
        described = f"patches {shape(patches)}"
        _expect_right(student, reference, patches, side, (down * side, across * side), described)


@pytest.mark.exercise("unpatchify", points=0.5)
def test_the_dtype_is_kept(student, reference, probe):
    """Double, half, bfloat16, integer and boolean patches keep their dtype, and every number to its last digit."""
    batch, channels, rows, columns = probe.sizes(4, high=5)
    for dtype in DTYPES:
        patches = probe.every_digit(batch, rows * columns, channels * 4, dtype=dtype)
        _expect_right(student, reference, patches, 2, (2 * rows, 2 * columns), f"{short(dtype)} patches")


@pytest.mark.exercise("unpatchify", points=0.4)
def test_the_memory_layout_does_not_matter(student, reference, probe):
    """Patches whose numbers do not lie in order in memory are laid like any others."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    size = rows * patch_size, columns * patch_size
    turned = _patches(probe, batch, channels, rows, columns, patch_size).permute(2, 1, 0).contiguous().permute(2, 1, 0)
    _expect_right(student, reference, turned, patch_size, size, "patches with permuted axes")
    stepped = _patches(probe, batch, channels, 2 * rows, columns, patch_size)[:, ::2]
    _expect_right(student, reference, stepped, patch_size, size, "every second one of some patches")
    repeated = _patches(probe, 1, channels, rows, columns, patch_size).expand(batch, -1, -1)
    _expect_right(student, reference, repeated, patch_size, size, "expanded patches")


@pytest.mark.exercise("unpatchify", points=0.2)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for the patches and the size at hand, on their device, and leaves the patches as they were."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    height, width = rows * patch_size, columns * patch_size
    for size in ((height, width), (height, width), (width, height)):
        patches = _patches(probe, batch, channels, rows, columns, patch_size).to(device)
        _expect_right(student, reference, patches, patch_size, size)
    expect_left_alone(student)
    expect_result_of_its_own(student, (patches, patch_size, size), (patches + 1, patch_size, size))


@pytest.mark.exercise("unpatchify", points=0.35)
def test_every_number_gets_its_gradient(student, reference, probe):
    """The gradient of every pixel returns to the number of the patch that it came from."""
    batch, channels, rows, columns, patch_size = probe.sizes(5, high=6)
    patches = _patches(probe, batch, channels, rows, columns, patch_size)
    inputs = patches, patch_size, (rows * patch_size, columns * patch_size)
    axes = ("image", "token", "feature")
    expect_input_gradients(student, inputs, ("patches",), reference.unpatchify, axes)


@pytest.mark.exercise("unpatchify", points=0.25)
def test_it_computes_where_the_patches_are(student, reference, probe):
    """The images lie on the device of the patches."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    patches, size = _patches(probe, batch, channels, rows, columns, 3), (3 * rows, 3 * columns)
    _expect_right(student, reference, patches, 3, size)
    expect_device_of_input(student, patches, 3, size)


@pytest.mark.exercise("unpatchify", points=0.2)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    batch, channels, rows, columns = probe.sizes(4, high=6)
    patches = _patches(probe, batch, channels, rows, columns, 2)
    _expect_right(student, reference, patches, 2, (2 * rows, 2 * columns))
    expect_example(student)
