from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from tests.course.data.conftest import make_generator
from vit_course.data import Augmentation, augment, mix, shapes

EACH = {
    "shift": Augmentation(max_shift=3),
    "flip": Augmentation(flip=True),
    "erase": Augmentation(erase=6),
    "randaugment": Augmentation(randaugment=True),
    "affine": Augmentation(affine=1.0),
    "color": Augmentation(color=1.0),
}


def repeat_image(count: int, height: int = 7, width: int = 9, channels: int = 2) -> Tensor:
    """Many copies of one image, each pixel of which has its own value."""
    image = torch.arange(channels * height * width, dtype=torch.uint8).view(1, channels, height, width)
    return image.repeat(count, 1, 1, 1)


def shift_pixel_by_pixel(image: Tensor, down: int, right: int) -> Tensor:
    """Pixel by pixel: the result's pixel (row, column) was at (row + down, column + right), or at the edge."""
    _, height, width = image.shape
    result = torch.empty_like(image)
    for row in range(height):
        for column in range(width):
            source = min(max(row + down, 0), height - 1), min(max(column + right, 0), width - 1)
            result[:, row, column] = image[:, source[0], source[1]]
    return result


def find_equal_candidate(image: Tensor, candidates: dict[object, Tensor]) -> object:
    found = [key for key, candidate in candidates.items() if torch.equal(image, candidate)]
    assert len(found) == 1, "not one of the images that could come out"
    return found[0]


class TestShiftAndFlip:
    def test_each_image_has_its_own_shift_and_flip(self) -> None:
        images = repeat_image(600)
        candidates = {
            (down, right, flipped): shift_pixel_by_pixel(images[0], down, right).flip(-1)
            if flipped
            else shift_pixel_by_pixel(images[0], down, right)
            for down in range(-2, 3)
            for right in range(-2, 3)
            for flipped in (False, True)
        }
        seen = [
            find_equal_candidate(each, candidates)
            for each in augment(images, Augmentation(2, flip=True), make_generator())
        ]
        assert set(seen) == set(candidates)  # 600 draws from 50: a missing one has a chance of 3e-4
        assert max(seen.count(key) for key in candidates) < 35  # 12 expected

    def test_without_a_shift_half_are_mirrored(self) -> None:
        images = repeat_image(400)
        result = augment(images, Augmentation(flip=True), make_generator())
        mirrored = sum(bool(torch.equal(each, images[0].flip(-1))) for each in result)
        assert mirrored + sum(bool(torch.equal(each, images[0])) for each in result) == 400
        assert 150 < mirrored < 250  # five standard deviations

    def test_a_shift_larger_than_the_image_repeats_an_edge(self) -> None:
        images = repeat_image(50, 2, 3)
        shifts = itertools.product(range(-9, 10), repeat=2)
        candidates = [shift_pixel_by_pixel(images[0], down, right).flatten().tolist() for down, right in shifts]
        found = augment(images, Augmentation(max_shift=9), make_generator()).flatten(1).tolist()
        assert all(each in candidates for each in found)
        assert any(len(set(each)) == 2 for each in found), "one pixel of each channel alone is seen"


class TestErase:
    def test_a_square_of_the_mean_color_covers_some_place(self) -> None:
        images = torch.randint(0, 200, (300, 3, 12, 15), dtype=torch.uint8, generator=make_generator(5))
        result = augment(images, Augmentation(erase=4), make_generator())
        changed = (result != images).any(1)  # (300, 12, 15)
        for image, before, mask in zip(result, images, changed, strict=True):
            rows, columns = mask.any(1).nonzero(), mask.any(0).nonzero()
            assert 0 < rows.max() - rows.min() + 1 <= 4
            assert 0 < columns.max() - columns.min() + 1 <= 4
            color = image[:, rows.min(), columns.min()]
            assert color.tolist() == before.float().mean((1, 2)).floor().tolist()
        assert changed.any(0).all()  # every pixel is hit in some image
        assert (changed.sum((1, 2)) >= 14).float().mean() > 0.5  # most squares lie inside as a whole


class TestRandAugment:
    def test_gray_images_can_be_changed(self) -> None:
        images = shapes(32).images[:, :1]
        result = augment(images, EACH["randaugment"], make_generator())
        assert (result.dtype, result.shape) == (torch.uint8, images.shape)
        assert not torch.equal(result, images)

    def test_two_channels_are_refused(self) -> None:
        with pytest.raises(ValueError, match="1 or 3 channels, not 2"):
            augment(repeat_image(3), EACH["randaugment"], make_generator())


class TestTurn:
    def test_half_are_turned_and_each_in_its_own_way(self) -> None:
        images = shapes(1).images.repeat(200, 1, 1, 1)
        result = augment(images, EACH["affine"], make_generator())
        turned = [each for each, before in zip(result, images, strict=True) if not torch.equal(each, before)]
        assert 65 < len(turned) < 135  # five standard deviations
        assert len({each.numpy().tobytes() for each in turned}) == len(turned)

    def test_at_no_strength_to_speak_of_every_pixel_stays(self) -> None:
        images = shapes(40).images
        assert torch.equal(augment(images, Augmentation(affine=1e-6, color=1e-6), make_generator()), images)

    def test_pixels_move_around_the_middle(self) -> None:
        image = torch.zeros(1, 1, 33, 33, dtype=torch.uint8)
        image[0, 0, 14:19, 14:19] = 255
        for each in augment(image.repeat(60, 1, 1, 1), EACH["affine"], make_generator()):
            weights = each[0].float() / each.sum()
            assert abs((weights.sum(1) * torch.arange(33)).sum() - 16) < 0.2
            assert abs((weights.sum(0) * torch.arange(33)).sum() - 16) < 0.2


class TestColor:
    def test_gray_images_stay_gray_and_move_by_no_more_than_the_peaks(self) -> None:
        images = torch.full((300, 3, 4, 4), 120, dtype=torch.uint8)  # without contrast, so that brightness is all
        result = augment(images, EACH["color"], make_generator()).float()
        assert torch.equal(result, result[:, :1, :1, :1].expand_as(result))
        moved = (result[:, 0, 0, 0] - 120).abs()
        assert 55 < moved.max() <= 64
        assert 105 < (moved > 0).sum() < 195  # five standard deviations around a half

    def test_saturation_pulls_channels_apart_or_together(self) -> None:
        images = torch.tensor([100, 128, 156], dtype=torch.uint8).view(1, 3, 1, 1).repeat(300, 1, 4, 4)
        result = augment(images, EACH["color"], make_generator())[:, :, 0, 0].float()
        inside = result[(result.amin(1) > 0) & (result.amax(1) < 255)]
        spread = (inside[:, 2] - inside[:, 0]) / 56
        assert spread.min() < 0.6
        assert spread.max() > 1.4
        assert (
            inside[:, 1] * 2 - inside[:, 0] - inside[:, 2]
        ).abs().max() <= 2  # the middle stays between, but for rounding


@pytest.mark.parametrize("name", EACH)
class TestEachChange:
    def test_it_gives_images_like_those_it_took(self, name: str) -> None:
        images = shapes(40).images
        before = images.clone()
        result = augment(images, EACH[name], make_generator())
        assert (result.dtype, result.shape) == (torch.uint8, images.shape)
        assert torch.equal(images, before)
        assert not torch.equal(result, images)

    def test_the_generator_decides(self, name: str) -> None:
        images = shapes(40).images
        first, again, other = (augment(images, EACH[name], make_generator(seed)) for seed in (1, 1, 2))
        assert torch.equal(first, again)
        assert not torch.equal(first, other)

    def test_an_image_does_not_look_at_its_neighbors(self, name: str) -> None:
        images = shapes(40).images
        others = images.roll(1, 0)
        others[17] = images[17]
        first, second = (augment(batch, EACH[name], make_generator()) for batch in (images, others))
        assert torch.equal(first[17], second[17])


def test_nothing_is_the_default() -> None:
    images = repeat_image(3)
    assert augment(images, Augmentation(), make_generator()) is images


@pytest.mark.parametrize("name", ["max_shift", "erase", "mixup", "cutmix", "affine", "color"])
def test_negative_numbers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must not be negative, but it is -1"):
        Augmentation(**{name: -1})


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU, and there is none")
def test_a_gpu_sees_the_same_shifts_flips_and_squares() -> None:
    images = shapes(64).images
    # the others blend with means or between pixels, which each device rounds in its way
    changes = Augmentation(max_shift=3, flip=True, erase=6)
    on_gpu = augment(images.cuda(), changes, make_generator())
    assert torch.equal(on_gpu.cpu(), augment(images, changes, make_generator()))


class TestMix:
    images = torch.rand(6, 3, 16, 16, generator=make_generator(9))
    labels = torch.tensor([0, 1, 2, 3, 4, 4])

    def test_mixup_adds_two_images_and_two_labels_in_one_proportion(self) -> None:
        mixed, targets = mix(self.images, self.labels, 5, Augmentation(mixup=1.0), make_generator())
        share = targets[0, 0].item()
        assert 0 < share < 1
        expected = share * self.images + (1 - share) * self.images.roll(1, 0)
        torch.testing.assert_close(mixed, expected)  # float32, one sum of two products
        one_hot = torch.eye(5)[self.labels]
        torch.testing.assert_close(targets, share * one_hot + (1 - share) * one_hot.roll(1, 0))

    def test_cutmix_pastes_a_rectangle_and_labels_by_its_area(self) -> None:
        mixed, targets = mix(self.images, self.labels, 5, Augmentation(cutmix=1.0), make_generator(1))
        foreign = (mixed != self.images).any(1)  # (6, 16, 16)
        assert torch.equal(foreign, foreign[:1].expand_as(foreign))
        rows, columns = foreign[0].any(1).nonzero(), foreign[0].any(0).nonzero()
        assert foreign[0].sum() == (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1) > 0
        expected = torch.where(foreign[:, None], self.images.roll(1, 0), self.images)
        assert torch.equal(mixed, expected)
        assert targets[0, 0].item() == pytest.approx(1 - foreign[0].float().mean().item())

    def test_with_both_each_batch_gets_one(self) -> None:
        both, source = Augmentation(mixup=1.0, cutmix=1.0), make_generator()
        untouched = [(mix(self.images, self.labels, 5, both, source)[0] == self.images).any().item() for _ in range(40)]
        assert 8 < sum(untouched) < 36  # CutMix leaves pixels as they are, MixUp none

    def test_with_neither_images_stay_and_targets_are_one_hot(self) -> None:
        mixed, targets = mix(self.images, self.labels, 5, Augmentation(), make_generator())
        assert mixed is self.images
        assert torch.equal(targets, torch.eye(5)[self.labels])
