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
from exercise_kit.engine.mistakes import read_mistakes
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


def images_of(patches: Tensor, patch_size: int, image_size: tuple[int, int]) -> Tensor:
    """The oracle of unpatchify, by torch's ``F.fold``."""
    columns = patches.double().transpose(1, 2)
    return F.fold(columns, image_size, patch_size, stride=patch_size).to(patches.dtype)


read_mistakes(unpatchify, __name__)
declare(unpatchify, Layout(images_of, (torch.empty(2, 15, 12), 2, (6, 10))))
