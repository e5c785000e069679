"""Hidden checks of ``normalize_images``.

Statistics are 64ths, which float32 and float64 hold exactly, so that a mean made in either dtype is right.
"""

import pytest
import torch

from exercise_kit.engine.compare import expect_equal, shape, short
from exercise_kit.engine.exercise import expect_example
from exercise_kit.engine.expect import (
    expect_device_of_input,
    expect_left_alone,
    expect_result_of_its_own,
    expect_value_error,
)

AXES = ("image", "channel", "row", "column")
LOOK = "Take that pixel, the mean and the std of its channel, and work it out by hand."


def _statistics(probe, channels):
    """(mean, std), between 1/16 and 1, no two channels alike."""
    return tuple((probe.permutation(60)[:channels] + 4) / 64 for _ in range(2))


def _draw(probe, batch, channels, height, width):
    """Images in [0, 1], with the statistics of their channels."""
    return probe.uniform(batch, channels, height, width), *_statistics(probe, channels)


def _expect_right(student, reference, inputs, described="images"):
    images, mean, _ = inputs
    name = f"normalize_images of {described} {shape(images)} with {len(mean)} mean{'s' * (len(mean) > 1)}"
    expect_equal(student(*inputs), reference.normalize_images(*inputs), name, AXES, look=LOOK)


@pytest.mark.exercise("normalize_images", points=0.5)
def test_every_channel_has_its_own_statistics(student, reference, probe):
    """Each channel has its own mean subtracted and is then divided by its own std, in tall and in wide images."""
    batch, channels, height, width = probe.sizes(4, high=7)
    for sides in ((height, width), (width, height)):
        _expect_right(student, reference, _draw(probe, batch, channels, *sides))


@pytest.mark.exercise("normalize_images", points=0.25)
def test_no_other_axis_passes_for_the_channels(student, reference, probe):
    """Where batch, channels, height and width are equal, the channels are still the second axis."""
    size = probe.choice((2, 4, 5, 6))
    _expect_right(student, reference, _draw(probe, size, size, size, size))


@pytest.mark.exercise("normalize_images", points=0.3)
def test_any_number_of_images_and_channels(student, reference, probe):
    """One image or many, one channel or many, a single pixel: all are normalized alike."""
    batch, height, width = probe.sizes(3, high=6)
    many = probe.choice((7, 11, 13))
    for sizes in ((batch, 1, height, width), (1, many, width, height), (1, batch, 1, 1)):
        _expect_right(student, reference, _draw(probe, *sizes))


@pytest.mark.exercise("normalize_images", points=0.2)
def test_lists_and_tuples_will_do(student, reference, probe):
    """Mean and std may be lists or tuples of numbers."""
    images, mean, std = _draw(probe, *probe.sizes(4, high=6))
    for first, second in ((list, list), (tuple, tuple)):
        _expect_right(student, reference, (images, first(mean.tolist()), second(std.tolist())))


@pytest.mark.exercise("normalize_images", points=0.2)
def test_images_keep_their_dtype(student, reference, probe):
    """Double images give double results, in whatever order their numbers lie in memory, and others their own dtype."""
    images, mean, std = _draw(probe, *probe.sizes(4, high=6))
    for dtype, other in ((torch.float16, torch.float32), (torch.float32, torch.float64)):
        for kind in (lambda each, other=other: each.to(other), torch.Tensor.tolist):
            _expect_right(student, reference, (images.to(dtype), kind(mean), kind(std)), f"{short(dtype)} images")
    far = 1000 + images.double() * 1e-4, mean.double() + 1000, std.double()
    _expect_right(student, reference, far, "double images")
    turned = images.double().permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)
    _expect_right(student, reference, (turned, mean.double(), std.double()), "double images")
    stepped = images.double().repeat_interleave(2, dim=3)[..., ::2]
    _expect_right(student, reference, (stepped, mean.tolist(), std.tolist()), "double images")


@pytest.mark.exercise("normalize_images", points=0.1)
def test_every_call_stands_alone(student, reference, probe, device):
    """Every call answers for what it is given, and leaves images, mean and std as they were."""
    sizes = probe.sizes(4, high=6)
    for _ in range(2):
        inputs = tuple(each.to(device) for each in _draw(probe, *sizes))
        _expect_right(student, reference, inputs)
    _expect_right(student, reference, (inputs[0].transpose(2, 3), *inputs[1:]), "transposed images")
    expect_left_alone(student)
    expect_result_of_its_own(student, inputs, tuple(each.to(device) for each in _draw(probe, *sizes)))


@pytest.mark.exercise("normalize_images", points=0.2)
def test_a_wrong_number_of_means_is_refused(student, reference, probe):
    """Where there are not as many means as channels, ValueError is raised and names both numbers."""
    batch, channels, height, width = probe.sizes(4, low=3, high=8)
    _expect_right(student, reference, _draw(probe, batch, channels, height, width))
    for held, means in ((channels, width), (channels, 1), (1, channels), (channels, channels + 1)):
        images, (mean, std) = probe.uniform(batch, held, height, width), _statistics(probe, means)
        described = f"images of {held} channel{'s' * (held > 1)} with {means} mean{'s' * (means > 1)}"
        expect_value_error(student, (images, mean, std), (held, means), described)
    expect_value_error(student, (images, mean.tolist(), std.tolist()), (held, means), f"{described} in a list")


@pytest.mark.exercise("normalize_images", points=0.15)
def test_it_computes_where_the_images_are(student, reference, probe):
    """The result lies on the device of the images, also where mean and std are plain numbers."""
    images, mean, std = _draw(probe, *probe.sizes(4, high=6))
    _expect_right(student, reference, (images, mean, std))
    expect_device_of_input(student, images, mean.tolist(), tuple(std.tolist()))
    expect_device_of_input(student, images, mean, std)


@pytest.mark.exercise("normalize_images", points=0.1)
def test_its_own_example_comes_out(student, reference, probe):
    """The docstring's example gives the result that it shows, and other numbers give the right results too."""
    _expect_right(student, reference, _draw(probe, *probe.sizes(4, high=6)))
    expect_example(student)
