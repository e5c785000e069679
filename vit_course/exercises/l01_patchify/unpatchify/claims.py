"""`unpatchify`: patches back into images.

The oracle is torch's own ``F.fold``. Pixels are moved, not computed, so numbers are compared to their last digit.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import Describe, expect_equal, expect_tensor, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import expect_device_of_input, expect_input_gradients, expect_inputs_unchanged
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare_pairs
from exercise_kit.engine.verdict import Failure
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patchify.claims import (
    DTYPES,
    PATCH_AXES,
    PIXEL_AXES,
    _describe_numbered_pixel,
    _make_numbered_images,
    patches_of,
)

LOOK = "Undo the steps of patchify one by one, the last one first."

unpatchify = Exercise("unpatchify", LESSON, in_training=InTraining.UNSEEN)


def images_of(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The oracle of unpatchify, by torch's ``F.fold``."""
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)


def expect_right_images(
    student: Student,
    inputs: tuple[Tensor, int, tuple[int, int]],
    name: str = "unpatchify",
    describe: Describe | None = None,
    look: str = LOOK,
) -> None:
    """Every pixel in its place, and no number rounded on its way there."""
    images, right = student(*inputs), images_of(*inputs)
    expect_equal(images, right, name, PIXEL_AXES, describe, look)
    if not torch.equal(images, right):
        look = "Which line takes the numbers through another dtype?"
        seen = f"{name} has numbers that are a little off, as if rounded"
        raise Failure(seen, "the very numbers of the patches", look)


def draw_patches_and_sizes(probe: Probe) -> tuple[Tensor, int, tuple[int, int]]:
    """Patches, their size, and the size of the images that they make."""
    (batch, channels, size), (rows, columns) = probe.sizes(3, low=3, high=6, shown=(2, 3, 2)), _draw_grid(probe)
    return probe.normal(batch, rows * columns, channels * size**2), size, (rows * size, columns * size)


def _draw_grid(probe: Probe) -> tuple[int, int]:
    """Rows and columns of patches, of which neither is the whole root of their number."""
    return probe.choice(((2, 6), (5, 2), (6, 3)), shown=(2, 5))


@unpatchify.check(guard=True)
def images_get_their_size_back(student: Student, probe: Probe) -> None:
    """The result has the shape (batch, channels, height, width)."""
    for (height, width), patch_size in (((16, 4), 2), ((6, 15), 3)):  # a root of 16 tokens is neither side
        # a batch of 2, since in one of 3 the channels of a photo, written down, look like axes exchanged
        patches = probe.normal(2, height * width // patch_size**2, 5 * patch_size**2)
        result = student(patches, patch_size, (height, width))
        expect_tensor(result, (2, 5, height, width), f"unpatchify for {height} x {width} pixels")


@unpatchify.check(needs=images_get_their_size_back, points=0.45)
def every_pixel_returns_to_its_place(student: Student, probe: Probe) -> None:
    """Patches made by a right patchify become the same image again."""
    batch, channels, rows, columns, size = probe.sizes(5, high=6, shown=(2, 3, 2, 5, 3))
    seen: set[tuple[int, int, int]] = set()
    for depth, down, across, side in (
        (channels, rows, columns, size),
        (probe.choice((4, 6, 7)), columns, rows, 5),
        (channels, 4 * rows, rows, size),
        (channels, rows, rows, 2),
        (channels, 1, columns, size),  # one row of patches
        (channels, rows, columns, size),  # other numbers of the first sizes
    ):
        images = _make_numbered_images(probe, batch, depth, down * side, across * side)
        images = images if (depth, down, across) not in seen else images.flip(0, 1)
        seen.add((depth, down, across))

        def describe_first_wrong_pixel(actual: Tensor, expected: Tensor) -> tuple[str, str]:
            place = [int(index) for index in (actual != expected).nonzero()[0]]
            where = ", ".join(f"{axis} {index}" for axis, index in zip(PIXEL_AXES, place, strict=True))
            here = _describe_numbered_pixel(float(actual[tuple(place)]), *expected.shape[1:])
            return f"at {where} there is {here}", "the pixel of that very place"

        expect_right_images(
            student, (patches_of(images, side), side, (down * side, across * side)), describe=describe_first_wrong_pixel
        )


@unpatchify.check(needs=every_pixel_returns_to_its_place, guard=True, points=0.7)
def dtypes_are_kept(student: Student, probe: Probe) -> None:
    """Integer, half and double patches keep their dtype, and non-contiguous patches are read right."""
    (batch, channels, size), (rows, columns) = probe.sizes(3, low=3, high=6, shown=(2, 3, 5)), _draw_grid(probe)
    for dtype in DTYPES:
        patches = probe.every_digit(batch, rows * columns, channels * 4, dtype=dtype)
        expect_right_images(student, (patches, 2, (2 * rows, 2 * columns)), f"unpatchify of {format_dtype(dtype)}")
    turned = probe.normal(channels * size**2, rows * columns, batch).permute(2, 1, 0)
    stepped = probe.normal(batch, 2 * rows * columns, channels * size**2)[:, ::2]
    repeated = probe.normal(1, rows * columns, channels * size**2).expand(batch, -1, -1)
    for patches in (turned, stepped, repeated):
        expect_right_images(
            student, (patches, size, (rows * size, columns * size)), "unpatchify of non-contiguous patches"
        )


@unpatchify.check(needs=every_pixel_returns_to_its_place, worth=0.5, guard=True, points=0.65)
def one_image_comes_back_as_a_batch(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its four axes, and so do images of one channel, or one pixel wide."""
    batch, channels, rows, columns = probe.sizes(4, high=6, shown=(4, 3, 2, 5))
    for held, depth, down, across, size in (
        (1, channels, rows, columns, 2),
        (1, 1, columns, rows, 3),
        (batch, 1, rows, columns, 7),
        (batch, channels, rows, 1, 1),
    ):
        patches = probe.normal(held, down * across, depth * size**2)
        described = f"{'one image' if held == 1 else f'{held} images'} of {depth} channel{'s' * (depth > 1)}"
        expect_right_images(student, (patches, size, (down * size, across * size)), f"unpatchify of {described}")


@unpatchify.check(needs=every_pixel_returns_to_its_place, worth=0.5, guard=True, points=0.35)
def every_number_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every pixel returns to the number of the patch that it came from."""
    expect_input_gradients(student, draw_patches_and_sizes(probe), ("patches",), images_of, PATCH_AXES)


@unpatchify.check(
    needs=every_pixel_returns_to_its_place, worth=0.5, guard=True, points=0.25, first=every_pixel_returns_to_its_place
)
def it_computes_where_the_patches_are(student: Student, probe: Probe) -> None:
    """The images lie on the device of the patches."""
    expect_device_of_input(student, *draw_patches_and_sizes(probe))


@unpatchify.check(guard=True)
def the_patches_are_left_alone(student: Student, probe: Probe) -> None:
    """The patches that go in are not changed."""
    student(probe.normal(2, 6, 12), 2, (4, 6))  # a grid that is taken to be square fits, and raises no error here
    expect_inputs_unchanged(student)


unpatchify.example(
    """
>>> unpatchify(torch.tensor([[[0, 1, 4, 5], [2, 3, 6, 7]]]), 2, (2, 4)).tolist()
[[[[0, 1, 2, 3], [4, 5, 6, 7]]]]
""",
    points=0.2,
    first=every_pixel_returns_to_its_place,
)


read_mistakes(unpatchify, __name__)
declare_pairs(unpatchify, Layout(images_of, (torch.empty(2, 15, 12), 2, (6, 10))))
