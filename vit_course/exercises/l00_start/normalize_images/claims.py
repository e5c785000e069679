"""`normalize_images`: each channel's mean and standard deviation.

The oracle is batch normalization in evaluation mode, which subtracts and divides by given statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal, format_dtype
from exercise_kit.engine.exercise import Exercise
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_inputs_unchanged,
    expect_value_error,
    ignore_wrong_numbers,
)
from exercise_kit.engine.in_training import InTraining
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare_pairs
from vit_course.exercises.l00_start import LESSON

Statistics = Tensor | Sequence[float]

AXES = ("image", "channel", "row", "column")
LOOK = "Put that pixel into the formula by hand. At which step does your function go another way?"


def compute_expected_images(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The oracle of normalize_images, (batch, channels, height, width)."""
    means, stds = (torch.as_tensor(each, dtype=torch.float64, device=images.device) for each in (mean, std))
    no_eps = 1e-300  # torch 2.11 refuses 0; added to a variance it is lost
    return F.batch_norm(images.double(), means, stds.square(), eps=no_eps).to(images.dtype)


def draw_mean_and_std(probe: Probe, channels: int) -> tuple[Tensor, Tensor]:
    """(mean, std), between 1/16 and 1, no two channels alike.

    They are 16ths, exact in float32 and float64 alike, so that a mean made in either dtype is right.
    """
    mean, std = ((probe.permutation(15)[:channels] + 1) / 16 for _ in range(2))
    return mean, std


def draw_images_and_statistics(probe: Probe, *sizes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Images in [0, 1], in tenths, with mean and std; ``sizes``: batch, channels, height, width."""
    drawn = probe.sizes(3, high=6, shown=(2, 4, 6))
    batch, channels, height, width = sizes or (drawn[0], probe.choice((7, 9, 11), shown=5), *drawn[1:])
    return probe.integers(batch, channels, height, width, high=11) / 10, *draw_mean_and_std(probe, channels)


normalize_images = Exercise("normalize_images", LESSON, in_training=InTraining.HIDDEN)


def expect_normalized(
    student: Student, images: Tensor, mean: Statistics, std: Statistics, name: str = "normalize_images"
) -> None:
    """Every pixel right; mean and std are tensors, lists or tuples."""

    def describe_first_wrong_pixel(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        place = [int(index) for index in (~actual.isclose(expected, atol=1e-5)).nonzero()[0]]
        where = ", ".join(f"{axis} {index}" for axis, index in zip(AXES, place, strict=True))
        pixel, channel = float(images[tuple(place)]), place[1]
        came, wanted = (float(each[tuple(place)]) for each in (actual, expected))
        digits = next((each for each in range(4, 9) if f"{came:.{each}g}" != f"{wanted:.{each}g}"), 9)
        became = "stayed as it was" if came == pixel else f"became {came:.{digits}g}"
        statistics = f"mean {float(mean[channel])} and std {float(std[channel])}"
        seen = f"at {where} a pixel of {pixel:.4g} whose channel has {statistics} {became}"
        return seen, f"{wanted:.{digits}g} for that pixel"

    expect_equal(
        student(images, mean, std),
        compute_expected_images(images, mean, std),
        name,
        AXES,
        describe_first_wrong_pixel,
        LOOK,
    )


@normalize_images.check(points=0.45)
def every_channel_has_its_own_statistics(student: Student, probe: Probe) -> None:
    """Each channel has its own mean subtracted, and is then divided by its own std."""
    images, mean, std = draw_images_and_statistics(probe)
    expect_normalized(student, images, mean, std)
    batch, channels, height, width = images.shape
    expect_normalized(student, *draw_images_and_statistics(probe, batch, channels + 2, width, height))
    expect_normalized(
        student, *draw_images_and_statistics(probe, batch, channels, height, width)
    )  # other numbers of the first sizes


@normalize_images.check(needs=every_channel_has_its_own_statistics, worth=0.5, points=0.3)
def one_image_of_one_channel_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A single image, a single channel and a single pixel are normalized like any others, and keep their four axes."""
    batch, height, width = probe.sizes(3, high=6, shown=(3, 4, 6))
    many = probe.choice((7, 11, 13), shown=3)
    for sizes in ((1, 1, width, height), (1, many, height, width), (batch, 1, height, width), (1, batch, 1, 1)):
        expect_normalized(student, *draw_images_and_statistics(probe, *sizes))


@normalize_images.check(points=0.25)
def no_other_axis_is_taken_for_the_channels(student: Student, probe: Probe) -> None:
    """As many images as channels, as high and as wide, are still normalized by channel."""
    size = probe.choice((4, 5, 6), shown=3)
    expect_normalized(student, *draw_images_and_statistics(probe, size, size, size, size))


@normalize_images.check(needs=every_channel_has_its_own_statistics, points=0.25)
def lists_and_tuples_will_do(student: Student, probe: Probe) -> None:
    """Mean and std may be tensors, lists or tuples of numbers."""
    images, *statistics = draw_images_and_statistics(probe)
    mean, std = (each.tolist() for each in statistics)
    expect_normalized(student, images, mean, std, "normalize_images with lists")
    expect_normalized(student, images, tuple(mean), tuple(std), "normalize_images with tuples")


@normalize_images.check(needs=every_channel_has_its_own_statistics, guard=True, points=0.2)
def images_keep_their_dtype(student: Student, probe: Probe) -> None:
    """Images keep their dtype, whichever mean and std have, and those not contiguous in memory are read right."""
    images, mean, std = draw_images_and_statistics(probe)
    for dtype, other in ((torch.float32, torch.float64), (torch.float16, torch.float32)):
        name = f"normalize_images of {format_dtype(dtype)} images"
        expect_normalized(student, images.to(dtype), mean.to(other), std.to(other), name)
        expect_normalized(student, images.to(dtype), mean.tolist(), std.tolist(), name)
    images, mean, std = probe.uniform(*images.shape).double(), mean.double(), std.double()
    turned = images.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    stepped = images.repeat_interleave(2, dim=3)[..., ::2]
    name = "normalize_images of double images"
    expect_normalized(student, turned, mean, std, name)
    expect_normalized(student, stepped, mean.tolist(), std.tolist(), name)
    expect_normalized(student, 1000 + images * 1e-4, mean + 1000, std, name)  # which float32 holds to 1e-4


@normalize_images.check(needs=every_channel_has_its_own_statistics, guard=True)
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(*draw_images_and_statistics(probe))
    expect_inputs_unchanged(student)


@normalize_images.check(
    needs=lists_and_tuples_will_do, worth=0.5, guard=True, points=0.15, first=every_channel_has_its_own_statistics
)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the images, also where mean and std are plain numbers."""
    images, mean, std = draw_images_and_statistics(probe)
    expect_device_of_input(student, images, mean.tolist(), tuple(std.tolist()))
    expect_device_of_input(student, images, mean, std)


@normalize_images.check(guard=True, points=0.2, first=ignore_wrong_numbers(every_channel_has_its_own_statistics))
def a_wrong_number_of_means_is_refused(student: Student, probe: Probe) -> None:
    """Images and means that differ in their number of channels raise ValueError naming both numbers."""
    some, other = probe.sizes(2, low=3, high=8, shown=(4, 3))
    for channels, means in ((some, other), (other, 1), (1, other), (some, some + 1)):
        images, statistics = probe.uniform(2, channels, 5, 6), draw_mean_and_std(probe, means)
        described = f"images of {channels} channels with {means} mean{'s' * (means > 1)}"
        expect_value_error(student, (images, *statistics), (channels, means), described)
    lists = [each.tolist() for each in statistics]
    expect_value_error(student, (images, *lists), (channels, means), f"{described} in a list")


normalize_images.example(
    """
>>> image = torch.tensor([0.5, 1.0, 0.25, 0.75]).reshape(1, 2, 1, 2)
>>> normalize_images(image, (0.5, 0.25), (0.5, 0.25)).flatten().tolist()
[0.0, 1.0, 0.0, 2.0]
""",
    points=0.1,
    first=every_channel_has_its_own_statistics,
)


read_mistakes(normalize_images, __name__)
declare_pairs(normalize_images, Edits(quick=True))
