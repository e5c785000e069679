"""`unpatchify`: patches back into images.

The oracle is torch's own ``F.fold``.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, expect_tensor, short
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone
from exercise_kit.engine.probes import TALL, Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Layout, declare
from exercise_kit.engine.verdict import Failure
from exercise_kit.worker.observe import cotangent
from vit_course.exercises.l01_patchify import LESSON
from vit_course.exercises.l01_patchify.patchify.claims import (
    PATCH_AXES,
    PIXEL_AXES,
    _numbered,
    _pixel,
    on_the_cpu,
    patches_of,
)

unpatchify = Exercise("unpatchify", LESSON, in_training=InTraining.UNSEEN)


@unpatchify.check(guard=True)
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


@unpatchify.check(needs=images_get_their_size_back, guard=True)
def dtypes_are_kept(student: Student, probe: Probe) -> None:
    """Integer, half and double patches keep their dtype."""
    for dtype in (torch.float64, torch.float16, torch.uint8):
        images = (probe.uniform(2, 3, 4, 6) * 200).to(dtype)
        expect_equal(student(patches_of(images, 2), 2, (4, 6)), images, f"unpatchify of {short(dtype)}", PIXEL_AXES)


@unpatchify.check(needs=images_get_their_size_back, worth=0.5, guard=True)
def one_image_comes_back_as_a_batch(student: Student, probe: Probe) -> None:
    """A batch of one image keeps its four axes, with several channels or with one."""
    for channels in (3, 1):
        images = probe.images(1, channels, 4, 6)
        result = student(patches_of(images, 2), 2, (4, 6))
        expect_equal(result, images, f"unpatchify of one image of {channels} channels", PIXEL_AXES)


@unpatchify.check(needs=images_get_their_size_back, worth=0.5, guard=True)
def every_number_gets_its_gradient(student: Student, probe: Probe) -> None:
    """The gradient of every pixel returns to the number of the patch that it came from."""
    images = probe.images(2, 3, 4, 6)
    found = student.input_gradients(patches_of(images, 2), 2, (4, 6))[0]
    if found is None:
        look = "Which step hands on bare numbers, and forgets where they came from?"
        raise Failure("no gradient reaches the patches through unpatchify", "one for every number", look)
    expect_equal(found, patches_of(cotangent(images), 2), "the gradient of the patches", PATCH_AXES)


@unpatchify.check(needs=images_get_their_size_back, worth=0.5, guard=True)
def it_computes_where_the_patches_are(student: Student, probe: Probe) -> None:
    """The images lie on the device of the patches."""
    expect_device_of_input(student, probe.normal(2, 6, 12), 2, (4, 6))


@unpatchify.check(guard=True)
def the_patches_are_left_alone(student: Student, probe: Probe) -> None:
    """The patches that go in are not changed."""
    student(probe.normal(2, 7, 12), 2, (2, 14))
    expect_left_alone(student)


unpatchify.example("""
>>> unpatchify(torch.tensor([[[0, 1, 4, 5], [2, 3, 6, 7]]]), 2, (2, 4)).tolist()
[[[[0, 1, 2, 3], [4, 5, 6, 7]]]]
""")


INVERSE = "01_patchify, And back again"


@unpatchify.misconception("Does a row of pixels stand in one patch, or in several?", INVERSE)
def patches_poured_in_memory_order(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A plain reshape pours each patch into the next free pixels, so squares become strips."""
    height, width = image_size
    return patches.reshape(len(patches), -1, height, width)


@unpatchify.misconception("Is the second token the neighbor to the right, or the one below?", INVERSE)
def patches_placed_column_by_column(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The patches are laid down the columns of the grid."""
    rows, columns = image_size[0] // patch_size, image_size[1] // patch_size
    reordered = patches.unflatten(1, (columns, rows)).transpose(1, 2).flatten(1, 2)
    return images_of(reordered, patch_size, image_size)


@unpatchify.misconception("In which order does a token hold channel, row and column?", INVERSE)
def channels_read_last(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A token is read as row, column, channel, where it holds channel, row, column."""
    reordered = patches.unflatten(2, (patch_size**2, -1)).transpose(2, 3).flatten(2)
    return images_of(reordered, patch_size, image_size)


@unpatchify.misconception("Which of the two pixel axes comes first inside a token?", INVERSE)
def patches_laid_on_their_side(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels of each patch are read column by column."""
    inside = patches.unflatten(2, (-1, patch_size, patch_size)).transpose(3, 4).flatten(2)
    return images_of(inside, patch_size, image_size)


@unpatchify.misconception("What is first in image_size?", INVERSE)
def width_taken_for_height(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """image_size is read as (width, height)."""
    return images_of(patches, patch_size, (image_size[1], image_size[0]))


@unpatchify.misconception("How do you know the grid when the image is not square?", INVERSE)
def square_grid_assumed(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The grid is taken to be square, with as many rows as columns."""
    side = int(patches.shape[1] ** 0.5)
    return images_of(patches, patch_size, (side * patch_size, patches.shape[1] // side * patch_size))


def _opened(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """(batch, rows, columns, channels, patch_size, patch_size)."""
    grid = image_size[0] // patch_size, image_size[1] // patch_size
    return patches.unflatten(2, (-1, patch_size, patch_size)).unflatten(1, grid)


@unpatchify.misconception("Which two axes make up the height, and do they stand side by side?", INVERSE)
def grid_apart_from_its_pixels(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """Rows and columns of the grid are joined first and those of the pixels last, so each patch becomes a strip."""
    return _opened(patches, patch_size, image_size).permute(0, 3, 1, 2, 4, 5).reshape(len(patches), -1, *image_size)


@unpatchify.misconception("Which permutation undoes a permutation?", INVERSE)
def permuted_as_in_patchify(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The axes are permuted as patchify does it, where its inverse is needed."""
    return _opened(patches, patch_size, image_size).permute(0, 2, 4, 1, 3, 5).reshape(len(patches), -1, *image_size)


@unpatchify.misconception("How many pixels has a square of 3 x 3?", INVERSE)
def patch_size_doubled(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """A patch is taken to have patch_size * 2 pixels, which is right for a patch_size of 2 only."""
    channels = patches.shape[2] // (patch_size * 2)
    rows, columns = image_size[0] // patch_size, image_size[1] // patch_size
    patches.reshape(len(patches), rows, columns, channels, patch_size, patch_size)  # raises where that is wrong
    return images_of(patches, patch_size, image_size)


@unpatchify.misconception("Which dtype does your new tensor get, and which had the patches?", INVERSE)
def pixels_as_float32(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels are filled into a new float32 tensor, whatever the dtype of the patches."""
    return images_of(patches, patch_size, image_size).float()


@unpatchify.misconception("On which device does your new tensor lie, and on which the patches?", INVERSE)
def pixels_made_on_the_cpu(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The pixels are filled into a new tensor on the CPU, wherever the patches are."""
    return on_the_cpu(images_of(patches, patch_size, image_size))


@unpatchify.misconception("By which operations does a gradient get from your result back to the patches?", INVERSE)
def patches_cut_from_their_gradient(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The patches are copied as bare numbers, so no gradient finds its way back to them."""
    return images_of(patches.detach(), patch_size, image_size)


@unpatchify.misconception("How many axes has a batch of one image?", INVERSE)
def single_image_squeezed(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image loses its first axis."""
    return images_of(patches, patch_size, image_size).squeeze()


def images_of(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The oracle of unpatchify, by torch's ``F.fold``."""
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)


declare(unpatchify, Layout(images_of, (torch.empty(2, 15, 12), 2, (6, 10))))
