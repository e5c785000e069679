"""`normalize_images`: each channel's mean and standard deviation.

The oracle is batch normalization in evaluation mode, which subtracts and divides by given statistics. The known
mistakes go through the pictures channel by channel, and go wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from exercise_kit.engine.compare import expect_equal
from exercise_kit.engine.exercise import Exercise, InTraining
from exercise_kit.engine.expect import expect_device_of_input, expect_left_alone, expect_value_error
from exercise_kit.engine.probes import Probe
from exercise_kit.engine.student import Student
from exercise_kit.engine.two_mistakes import Parts, declare
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


Statistics = Tensor | Sequence[float]

FORMULA = "00_start, One number per channel"
BROADCAST = "00_start, Broadcasting, or which axis meets which"
YOURS = "00_start, Your turn"


def _by_channel(
    images: Tensor, mean: Statistics, std: Statistics, formula: Callable[[Tensor, float, float], Tensor]
) -> Tensor:
    """``formula(channel, mean, std)`` for every channel, after the channels have been counted."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    made = torch.empty_like(images)
    for channel, (center, spread) in enumerate(zip(mean, std, strict=True)):
        made[:, channel] = formula(images[:, channel], float(center), float(spread))
    return made


@normalize_images.misconception("Which comes first in the formula, the minus or the division?", FORMULA)
def divided_before_subtracting(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by std first, and the mean is subtracted from what is left."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: pixels / spread - center)


@normalize_images.misconception("What does Python work out first in `a - b / c`?", FORMULA, InTraining.WORSE)
def only_the_mean_divided(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The mean is divided by std and then subtracted, and the images themselves are not divided."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: pixels - center / spread)


@normalize_images.misconception("Which of your two statistics is not used yet?", FORMULA)
def std_forgotten(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The mean is subtracted and nothing is divided."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: pixels - center)


@normalize_images.misconception("Which of your two statistics is not used yet?", FORMULA, InTraining.WORSE)
def mean_forgotten(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by std, and nothing is subtracted."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: pixels / spread)


@normalize_images.misconception("Should a channel with a large spread become larger, or smaller?", FORMULA)
def multiplied_by_std(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """After the subtraction the images are multiplied by std."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: (pixels - center) * spread)


@normalize_images.misconception("Is std a standard deviation, or its square?", FORMULA)
def divided_by_the_variance(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The division is by the square of std."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: (pixels - center) / spread**2)


@normalize_images.misconception("Do you go from pixels to numbers around zero, or back?", FORMULA, InTraining.WORSE)
def undone_in_place_of_done(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Multiplying by std and adding the mean is the way back, from normalized images to pixels."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: pixels * spread + center)


@normalize_images.misconception(
    "Between which two numbers do the pixels lie when they come in?", FORMULA, InTraining.STUCK
)
def divided_by_255_once_more(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by 255, though they lie between 0 and 1 already."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: (pixels / 255 - center) / spread)


@normalize_images.misconception("Where do mean and std come from: this batch, or the caller?", FORMULA)
def statistics_of_this_batch(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std are computed from the images at hand, and those given are not used."""
    return _by_channel(images, mean, std, lambda pixels, center, spread: (pixels - pixels.mean()) / pixels.std())


@normalize_images.misconception("Where do mean and std come from, and how many of each are there?", FORMULA)
def statistics_of_all_pixels(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """One mean and one std are computed from all pixels of all channels, and those given are not used."""
    center, spread = images.mean(), images.std()
    return _by_channel(images, mean, std, lambda pixels, _, __: (pixels - center) / spread)


@normalize_images.misconception("How many means are there, and how many of them do you use?", BROADCAST)
def first_channel_for_all(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Every channel is normalized with the mean and std of channel 0."""
    first, spread = float(mean[0]), float(std[0])
    return _by_channel(images, mean, std, lambda pixels, _, __: (pixels - first) / spread)


def _along(axis: int, images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std laid along an axis of the images, 0 to 3."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    lying = [1, 1, 1, 1]
    lying[axis] = len(mean)
    means, stds = (torch.as_tensor(each, dtype=images.dtype).reshape(lying) for each in (mean, std))
    return (images - means) / stds


@normalize_images.misconception(
    "Line the two shapes up from the right: which axis meets the means?", BROADCAST, InTraining.STOPS
)
def a_mean_for_every_column(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The means fall on the last axis, so every pixel column gets one, where every channel should."""
    return _along(3, images, mean, std)


@normalize_images.misconception("How many ones stand to the right of your channels?", BROADCAST, InTraining.STOPS)
def a_mean_for_every_row(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The means fall on the height, so every pixel row gets one, where every channel should."""
    return _along(2, images, mean, std)


@normalize_images.misconception("How many ones stand to the right of your channels?", BROADCAST, InTraining.STOPS)
def a_mean_for_every_image(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The means fall on the batch, so every image gets one, where every channel should."""
    return _along(0, images, mean, std)


@normalize_images.misconception("What does Python make of a tensor's method on a list?", YOURS, InTraining.STOPS)
def tensors_taken_for_granted(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """A method of tensors is called on mean and std, which a plain list or tuple does not have."""
    if not isinstance(mean, Tensor):
        raise AttributeError("'list' object has no attribute 'reshape'")
    return _made(images, mean, std)


@normalize_images.misconception(
    "What does Python say when you index a plain list like a tensor?", YOURS, InTraining.STOPS
)
def lists_indexed_like_tensors(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std are indexed or subtracted as only tensors can be, and a plain list is none."""
    if not isinstance(mean, Tensor):
        raise TypeError("list indices must be integers or slices, not tuple")
    return _made(images, mean, std)


@normalize_images.misconception("Where could the number of channels come from?", YOURS, InTraining.UNSEEN)
def three_channels_hard_coded(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The number of channels is written into the code as 3."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    if len(mean) != 3:
        raise RuntimeError(f"shape '[1, 3, 1, 1]' is invalid for input of size {len(mean)}")
    return _made(images, mean, std)


@normalize_images.misconception(
    "Over which numbers does your loop run when there are five channels?", YOURS, InTraining.UNSEEN
)
def only_three_channels_normalized(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """A loop goes through three channels, and any others stay as they were."""
    made = _made(images, mean, std)
    return torch.cat([made[:, :3], images[:, 3:]], dim=1)


@normalize_images.misconception("Which dtype does your result get, and which had the images?", YOURS, InTraining.UNSEEN)
def float32_whatever_the_input(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The result is float32, whatever the dtype of the images."""
    return _made(images, mean, std).float()


@normalize_images.misconception("Is the tensor that you write into yours, or the caller's?", YOURS, InTraining.UNSEEN)
def images_changed_in_place(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images themselves are changed, so the caller's picture is no longer the same."""
    return images.copy_(_made(images, mean, std))


@normalize_images.misconception("What does broadcasting make of an axis of length 1?", BROADCAST, InTraining.UNSEEN)
def channels_never_counted(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Nothing compares the number of means with the channels, and a single mean is used for all of them."""
    (channels,) = torch.broadcast_shapes((images.shape[1],), (len(mean),))
    made = images.new_empty(len(images), channels, *images.shape[2:])
    for channel in range(channels):
        pixels, here = images[:, channel % images.shape[1]], channel % len(mean)
        made[:, channel] = (pixels - mean[here]) / std[here]
    return made


@normalize_images.misconception(
    "On which device is a tensor that you make of a list, and where are the images?", YOURS, InTraining.UNSEEN
)
def statistics_left_on_the_cpu(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std become tensors on the CPU, and cannot be combined with images on a GPU."""
    return _along(1, images, mean, std)


@normalize_images.misconception("How many axes has a batch of one image?", BROADCAST, InTraining.UNSEEN)
def batch_of_one_squeezed(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image loses its first axis."""
    return _made(images, mean, std).squeeze()


def _refuse(images: Tensor, mean: Statistics) -> None:
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")


def _want_tensors(images: Tensor, mean: Statistics) -> None:
    if not isinstance(mean, Tensor):
        raise AttributeError("'list' object has no attribute 'reshape'")


def _index_tensors(images: Tensor, mean: Statistics) -> None:
    if not isinstance(mean, Tensor):
        raise TypeError("list indices must be integers or slices, not tuple")


def _want_three(images: Tensor, mean: Statistics) -> None:
    if len(mean) != 3:
        raise RuntimeError(f"shape '[1, 3, 1, 1]' is invalid for input of size {len(mean)}")


def _no_demand(images: Tensor, mean: Statistics) -> None:
    pass


def _made(
    images: Tensor,
    mean: Statistics,
    std: Statistics,
    *,
    types: Callable[[Tensor, Statistics], None] = _no_demand,
    count: Callable[[Tensor, Statistics], None] = _no_demand,
    axis: int = 1,
    formula: Callable[[Tensor, Any, Any], Tensor] = lambda pixels, center, spread: (pixels - center) / spread,
    scaled: float = 1.0,
    first: bool = False,
    loop: int | None = None,
    postprocess: Callable[[Tensor, Tensor], Tensor] = lambda result, images: result,
) -> Tensor:
    _refuse(images, mean)
    types(images, mean)
    count(images, mean)
    lying = [1, 1, 1, 1]
    lying[axis] = len(mean)
    means, stds = (
        torch.as_tensor(each, dtype=torch.float64, device=images.device).reshape(lying) for each in (mean, std)
    )
    if first:
        means, stds = (each.flatten()[0].reshape(1, 1, 1, 1) for each in (means, stds))
    made = formula(images.double() * scaled, means, stds).to(images.dtype)
    made = made if loop is None else torch.cat([made[:, :loop], images[:, loop:]], dim=1)
    return postprocess(made, images)


declare(
    normalize_images,
    Parts(
        _made,
        {
            divided_before_subtracting: {"formula": lambda x, mean, std: x / std - mean},
            only_the_mean_divided: {"formula": lambda x, mean, std: x - mean / std},
            std_forgotten: {"formula": lambda x, mean, std: x - mean},
            mean_forgotten: {"formula": lambda x, mean, std: x / std},
            multiplied_by_std: {"formula": lambda x, mean, std: (x - mean) * std},
            divided_by_the_variance: {"formula": lambda x, mean, std: (x - mean) / std**2},
            undone_in_place_of_done: {"formula": lambda x, mean, std: x * std + mean},
            divided_by_255_once_more: {"scaled": 1 / 255},
            first_channel_for_all: {"first": True, "axis": 1},
            a_mean_for_every_column: {"axis": 3},
            a_mean_for_every_row: {"axis": 2},
            a_mean_for_every_image: {"axis": 0},
            tensors_taken_for_granted: {"types": _want_tensors},
            lists_indexed_like_tensors: {"types": _index_tensors},
            three_channels_hard_coded: {"count": _want_three},
            only_three_channels_normalized: {"loop": 3},
            float32_whatever_the_input: {"postprocess": lambda result, images: result.float()},
            images_changed_in_place: {"postprocess": lambda result, images: images.copy_(result)},
        },
        quick=True,
    ),
)
