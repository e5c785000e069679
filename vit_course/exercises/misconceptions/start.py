"""Known mistakes of lesson 00: first steps. Each goes through the pictures channel by channel, and goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.start import normalize_images, normalized

Statistics = Tensor | Sequence[float]

FORMULA = "00_start, Three numbers against a whole picture"
BROADCAST = "00_start, Broadcasting, or which axis meets which"
YOURS = "00_start, Your turn"


def _by_channel(
    images: Tensor, mean: Statistics, std: Statistics, formula: Callable[[Tensor, float, float], Tensor]
) -> Tensor:
    """``formula(channel, mean, std)`` for every channel, after the channels have been counted."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    made = torch.empty_like(images)
    for channel, (centre, spread) in enumerate(zip(mean, std, strict=True)):
        made[:, channel] = formula(images[:, channel], float(centre), float(spread))
    return made


def _right(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The oracle, for mistakes that lie elsewhere."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    return normalized(images, tuple(float(each) for each in mean), tuple(float(each) for each in std))


@normalize_images.misconception("Which comes first in the formula, the minus or the division?", FORMULA)
def divided_before_subtracting(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by std first, and the mean is subtracted from what is left."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: pixels / spread - centre)


@normalize_images.misconception("What does Python work out first in `a - b / c`?", FORMULA, InTraining.WORSE)
def only_the_mean_divided(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The mean is divided by std and then subtracted, and the images themselves are not divided."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: pixels - centre / spread)


@normalize_images.misconception("Which of your two statistics is not used yet?", FORMULA)
def std_forgotten(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The mean is subtracted and nothing is divided."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: pixels - centre)


@normalize_images.misconception("Which of your two statistics is not used yet?", FORMULA, InTraining.WORSE)
def mean_forgotten(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by std, and nothing is subtracted."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: pixels / spread)


@normalize_images.misconception("Should a channel with a large spread become larger, or smaller?", FORMULA)
def multiplied_by_std(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """After the subtraction the images are multiplied by std."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: (pixels - centre) * spread)


@normalize_images.misconception("Is std a standard deviation, or its square?", FORMULA)
def divided_by_the_variance(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The division is by the square of std."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: (pixels - centre) / spread**2)


@normalize_images.misconception("Do you go from pixels to numbers around zero, or back?", FORMULA, InTraining.WORSE)
def undone_in_place_of_done(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Multiplying by std and adding the mean is the way back, from normalised images to pixels."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: pixels * spread + centre)


@normalize_images.misconception(
    "Between which two numbers do the pixels lie when they come in?", FORMULA, InTraining.STUCK
)
def divided_by_255_once_more(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images are divided by 255, though they lie between 0 and 1 already."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: (pixels / 255 - centre) / spread)


@normalize_images.misconception("Where do mean and std come from: this batch, or the caller?", FORMULA)
def statistics_of_this_batch(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std are computed from the images at hand, and those given are not used."""
    return _by_channel(images, mean, std, lambda pixels, centre, spread: (pixels - pixels.mean()) / pixels.std())


@normalize_images.misconception("Where do mean and std come from, and how many of each are there?", FORMULA)
def statistics_of_all_pixels(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """One mean and one std are computed from all pixels of all channels, and those given are not used."""
    centre, spread = images.mean(), images.std()
    return _by_channel(images, mean, std, lambda pixels, _, __: (pixels - centre) / spread)


@normalize_images.misconception("How many means are there, and how many of them do you use?", BROADCAST)
def first_channel_for_all(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Every channel is normalised with the mean and std of channel 0."""
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
    return _right(images, mean, std)


@normalize_images.misconception(
    "What does Python say when you index a plain list like a tensor?", YOURS, InTraining.STOPS
)
def lists_indexed_like_tensors(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Mean and std are indexed or subtracted as only tensors can be, and a plain list is none."""
    if not isinstance(mean, Tensor):
        raise TypeError("list indices must be integers or slices, not tuple")
    return _right(images, mean, std)


@normalize_images.misconception("Where could the number of channels come from?", YOURS, InTraining.UNSEEN)
def three_channels_hard_coded(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The number of channels is written into the code as 3."""
    if len(mean) != images.shape[1]:
        raise ValueError(f"{images.shape[1]} channels but {len(mean)} means")
    if len(mean) != 3:
        raise RuntimeError(f"shape '[1, 3, 1, 1]' is invalid for input of size {len(mean)}")
    return _right(images, mean, std)


@normalize_images.misconception(
    "Over which numbers does your loop run when there are five channels?", YOURS, InTraining.UNSEEN
)
def only_three_channels_normalised(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """A loop goes through three channels, and any others stay as they were."""
    made = _right(images, mean, std)
    return torch.cat([made[:, :3], images[:, 3:]], dim=1)


@normalize_images.misconception("Which dtype does your result get, and which had the images?", YOURS, InTraining.UNSEEN)
def float32_whatever_the_input(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The result is float32, whatever the dtype of the images."""
    return _right(images, mean, std).float()


@normalize_images.misconception("Is the tensor that you write into yours, or the caller's?", YOURS, InTraining.UNSEEN)
def images_changed_in_place(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """The images themselves are changed, so the caller's picture is spoilt."""
    return images.copy_(_right(images, mean, std))


@normalize_images.misconception("What does broadcasting make of an axis of length 1?", BROADCAST, InTraining.UNSEEN)
def channels_never_counted(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Nothing compares the number of means with the channels, and one mean fits any number of them in silence."""
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
    """Mean and std become tensors on the CPU, and images on a GPU cannot meet them."""
    return _along(1, images, mean, std)


@normalize_images.misconception("How many axes has a batch of one image?", BROADCAST, InTraining.UNSEEN)
def batch_of_one_squeezed(images: Tensor, mean: Statistics, std: Statistics) -> Tensor:
    """Axes of length 1 are squeezed away, so a batch of one image is a batch no more."""
    return _right(images, mean, std).squeeze()
