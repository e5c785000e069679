"""`normalize_images`: each channel's mean and standard deviation.

The oracle is batch normalization in evaluation mode, which subtracts and divides by given statistics.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.mistakes import read_mistakes
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Edits, declare
from vit_course.exercises.l00_start import LESSON

AXES = ("image", "channel", "row", "column")
# binary fractions: exact in float32 and float64 alike, so that a mean made in either dtype is right
MEANS = (0.25, 0.5, 0.125, 0.375, 0.625)
STDS = (0.5, 0.25, 0.125, 0.375, 0.75)


def normalized(images: Tensor, mean: tuple[float, ...], std: tuple[float, ...]) -> Tensor:
    """The oracle of normalize_images, (batch, channels, height, width)."""
    means, stds = (torch.tensor(each, dtype=torch.float64, device=images.device) for each in (mean, std))
    no_eps = 1e-300  # torch 2.11 refuses 0; added to a variance it is lost
    return F.batch_norm(images.double(), means, stds.square(), eps=no_eps).to(images.dtype)


normalize_images = Exercise("normalize_images", LESSON, in_training=InTraining.HIDDEN)


def _expect_normalized(
    student: Student, images: Tensor, kind: Callable[[tuple[float, ...]], object] = torch.tensor, called: str = ""
) -> None:
    """Compare on ``images``, with mean and std given as ``kind`` makes them: a tensor, a list or a tuple."""
    channels = images.shape[1]
    mean, std = MEANS[:channels], STDS[:channels]

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        place = [int(index) for index in (~actual.isclose(expected, atol=1e-5)).nonzero()[0]]
        where = ", ".join(f"{axis} {index}" for axis, index in zip(AXES, place, strict=True))
        pixel, channel = float(images[tuple(place)]), place[1]
        came, wanted = (float(each[tuple(place)]) for each in (actual, expected))
        became = "stayed as it was" if came == pixel else f"became {came:.4g}"
        pixel_statistics = f"a pixel of {pixel:.4g} whose channel has mean {mean[channel]} and std {std[channel]}"
        return f"at {where} {pixel_statistics} {became}", f"{wanted:.4g} for that pixel"

    result = student(images, kind(mean), kind(std))
    look = "Put that pixel into the formula by hand. At which step does your function go another way?"
    expect_equal(result, normalized(images, mean, std), called or "normalize_images", AXES, describe, look)


@normalize_images.check
def every_channel_has_its_own_statistics(student: Student, probe: Probe) -> None:
    """Each channel has its own mean subtracted, and is then divided by its own std."""
    for batch, channels, height, width in ((2, 5, 4, 6), (3, 2, 6, 4)):
        _expect_normalized(student, probe.integers(batch, channels, height, width, high=11) / 10)


@normalize_images.check(needs=every_channel_has_its_own_statistics, worth=0.5)
def one_image_of_one_channel_is_a_batch_too(student: Student, probe: Probe) -> None:
    """A single image, with one channel or with several, is normalized like any other, and keeps its four axes."""
    for channels, height, width in ((1, 6, 4), (3, 4, 6)):
        _expect_normalized(student, probe.integers(1, channels, height, width, high=11) / 10)


@normalize_images.check
def no_other_axis_is_taken_for_the_channels(student: Student, probe: Probe) -> None:
    """Three images of 3 channels, 3 pixels high and 3 wide, are still normalized by channel."""
    _expect_normalized(student, probe.integers(3, 3, 3, 3, high=11) / 10)


@normalize_images.check(needs=every_channel_has_its_own_statistics)
def lists_and_tuples_will_do(student: Student, probe: Probe) -> None:
    """Mean and std may be tensors, lists or tuples of numbers."""
    images = probe.integers(2, 3, 4, 6, high=11) / 10
    _expect_normalized(student, images, list, "normalize_images with lists")
    _expect_normalized(student, images, tuple, "normalize_images with tuples")


@normalize_images.check(needs=every_channel_has_its_own_statistics, guard=True)
def images_keep_their_dtype(student: Student, probe: Probe) -> None:
    """Images keep their dtype, whichever mean and std have, and those not contiguous in memory are read right."""
    images = probe.integers(2, 3, 4, 6, high=11) / 10
    for kind in (lambda numbers: torch.tensor(numbers, dtype=torch.float64), list):
        _expect_normalized(student, images, kind, "normalize_images of float32 images")
    images = probe.uniform(2, 6, 4, 3).double().permute(0, 3, 2, 1)
    _expect_normalized(student, images, called="normalize_images of double images")


@normalize_images.check(needs=every_channel_has_its_own_statistics, guard=True)
def the_images_are_left_alone(student: Student, probe: Probe) -> None:
    """The images that go in are not changed."""
    student(probe.uniform(2, 3, 4, 6), torch.tensor(MEANS[:3]), torch.tensor(STDS[:3]))
    expect_left_alone(student)


@normalize_images.check(needs=lists_and_tuples_will_do, worth=0.5, guard=True)
def it_computes_where_the_images_are(student: Student, probe: Probe) -> None:
    """The result lies on the device of the images, also where mean and std are plain numbers."""
    images = probe.uniform(2, 3, 4, 6)
    expect_device_of_input(student, images, list(MEANS[:3]), STDS[:3])
    expect_device_of_input(student, images, torch.tensor(MEANS[:3]), torch.tensor(STDS[:3]))


@normalize_images.check(guard=True)
def a_wrong_number_of_means_is_refused(student: Student, probe: Probe) -> None:
    """Images and means that differ in their number of channels raise ValueError naming both numbers."""
    for channels, means in ((4, 3), (3, 1), (1, 3)):
        inputs = (probe.uniform(2, channels, 5, 6), torch.tensor(MEANS[:means]), torch.tensor(STDS[:means]))
        expect_value_error(student, inputs, (channels, means), f"images of {channels} channels with {_count(means)}")


normalize_images.example("""
>>> image = torch.tensor([0.5, 1.0, 0.25, 0.75]).reshape(1, 2, 1, 2)
>>> normalize_images(image, (0.5, 0.25), (0.5, 0.25)).flatten().tolist()
[0.0, 1.0, 0.0, 2.0]
""")


def _count(means: int) -> str:
    return f"{means} mean{'' if means == 1 else 's'}"


read_mistakes(normalize_images, __name__)
declare(normalize_images, Edits(quick=True))
