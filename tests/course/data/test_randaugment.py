"""RandAugment image by image, against torchvision's, which changes all images of a call alike."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.course.data.conftest import make_generator
from vit_course.data.randaugment import (
    apply_operations_at_once,
    apply_operations_in_groups,
    apply_random_operation,
    list_operations,
    randaugment,
)

CPU = torch.device("cpu")
BLENDED = torch.linspace(0.0, 0.9, 31)[9].item()  # 0.27 in float32: another rounding is a gray level here and there


def list_unsigned_calls() -> dict[str, Callable[[Tensor], Tensor]]:
    """torchvision's own calls that have no sign."""
    from torchvision.transforms.v2 import functional

    return {
        "identity": lambda images: images,
        "posterize": partial(functional.posterize, bits=7),
        "solarize": partial(functional.solarize, threshold=178.5),
        "autocontrast": functional.autocontrast,
        "equalize": functional.equalize,
    }


def make_random_pixels(*shape: int) -> Tensor:
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=make_generator(3))


def list_signed_calls(sign: int, height: int, width: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """torchvision's own calls at level 9 of 30."""
    from torchvision.transforms.v2 import functional

    shear, factor = sign * math.degrees(math.atan(0.09)), 1 + sign * BLENDED
    right, down = (sign * math.floor(150 / 331 * 9 / 30 * length) for length in (width, height))
    affine = partial(functional.affine, angle=0.0, scale=1.0)
    return {
        "shear x": partial(affine, translate=[0, 0], shear=[shear, 0.0], center=[0, 0]),
        "shear y": partial(affine, translate=[0, 0], shear=[0.0, shear], center=[0, 0]),
        "translate x": partial(affine, translate=[right, 0], shear=[0.0, 0.0]),
        "translate y": partial(affine, translate=[0, down], shear=[0.0, 0.0]),
        "rotate": partial(functional.rotate, angle=sign * 9.0),
        "brightness": partial(functional.adjust_brightness, brightness_factor=factor),
        "color": partial(functional.adjust_saturation, saturation_factor=factor),
        "contrast": partial(functional.adjust_contrast, contrast_factor=factor),
        "sharpness": partial(functional.adjust_sharpness, sharpness_factor=factor),
    }


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (9, 14), (64, 47), (2, 5)])
@pytest.mark.parametrize("channels", [1, 3])
def test_each_operation_is_torchvisions(channels: int, size: tuple[int, int]) -> None:
    images = make_random_pixels(40, channels, *size)
    images[0] = 7  # of one color, which autocontrast and equalize leave alone
    images[1, :, :1] = 255
    expected = [
        *list_signed_calls(1, *size).items(),
        *list_unsigned_calls().items(),
        *list_signed_calls(-1, *size).items(),
    ]
    for (name, theirs), ours in zip(expected, list_operations(*size, CPU), strict=True):
        assert torch.equal(ours(images), theirs(images)), name


def count_distinct_images(images: Iterator[Tensor] | Tensor) -> Counter[bytes]:
    return Counter(image.numpy().tobytes() for image in images)


def test_operations_come_as_often_as_torchvisions() -> None:
    from torchvision.transforms import v2

    image, draws = make_random_pixels(1, 3, 16, 16), 1400
    transform = v2.RandAugment(num_ops=1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        theirs = count_distinct_images(transform(image)[0] for _ in range(draws))
    ours = count_distinct_images(apply_random_operation(image.repeat(draws, 1, 1, 1), make_generator()))
    assert set(ours) == set(theirs)
    assert len(ours) == 23  # nine operations with a sign and five without
    without_sign = {operation(image)[0].numpy().tobytes() for operation in list_unsigned_calls().values()}
    for outcome in theirs:
        expected = draws / 14 if outcome in without_sign else draws / 28
        for counts in (ours, theirs):
            assert abs(counts[outcome] - expected) < 5 * math.sqrt(expected)  # five standard deviations


def test_every_image_of_a_batch_has_its_own_two_operations() -> None:
    image = make_random_pixels(1, 3, 32, 32)
    result = randaugment(image.repeat(256, 1, 1, 1), make_generator())
    assert len(count_distinct_images(result)) > 128  # 529 pairs, of which the likeliest comes once in 49 times
    source = make_generator()
    twice = apply_random_operation(apply_random_operation(image.repeat(256, 1, 1, 1), source), source)
    assert torch.equal(result, twice)


@pytest.mark.parametrize("size", [(32, 32), (9, 14), (2, 5)])
@pytest.mark.parametrize("channels", [1, 3])
def test_all_at_once_is_what_groups_are(channels: int, size: tuple[int, int]) -> None:
    """Nothing reads what was drawn, as a GPU needs it."""
    images = make_random_pixels(230, channels, *size)
    drawn = torch.arange(230) % 23
    assert torch.equal(apply_operations_at_once(images, drawn), apply_operations_in_groups(images, drawn))


def test_no_image_is_no_change() -> None:
    assert randaugment(make_random_pixels(0, 3, 8, 8), make_generator()).shape == (0, 3, 8, 8)


class Waits(TorchDispatchMode):
    """Notes copies between devices for which one of them waits."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.aten._to_copy.default:
            moved = kwargs.get("device", args[0].device) != args[0].device
            if moved and not kwargs.get("non_blocking", False):
                self.seen.append(str(func))
        return func(*args, **kwargs)


def test_nothing_waits_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device of shapes without numbers stands in for it: no number can be read there."""
    from torchvision.transforms.v2 import functional

    images = make_random_pixels(256, 3, 32, 32).to("meta")
    randaugment(images, make_generator())  # once, where each pixel comes from is copied
    refusal = AssertionError("torch.tensor copies to a GPU and waits")
    monkeypatch.setattr(torch, "tensor", Mock(side_effect=refusal))
    with Waits() as waits:
        result = randaugment(images, make_generator(1))
    assert waits.seen == []
    assert (result.device.type, result.shape, result.dtype) == ("meta", images.shape, torch.uint8)
    with Waits() as waits:
        make_random_pixels(1, 1, 2, 2).to("meta")
    assert len(waits.seen) == 1  # what the test rests on, as on the next
    with pytest.raises(AssertionError, match="copies to a GPU and waits"):
        functional.adjust_sharpness(images, 1.27)
