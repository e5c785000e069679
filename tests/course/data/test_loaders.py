from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.course.data.conftest import make_numbered_dataset
from vit_course.data import Augmentation, Batches, shapes

CHANGES = Augmentation(max_shift=2, flip=True, erase=5, randaugment=True)


def collect_labels(batches: Batches) -> list[int]:
    return torch.cat([labels for _, labels in batches]).tolist()


def test_every_image_comes_once_with_its_label() -> None:
    dataset = make_numbered_dataset()
    batches = Batches(dataset, 5, shuffle=True)
    pairs = list(batches)
    assert len(batches) == len(pairs) == 5
    assert [len(labels) for _, labels in pairs] == [5, 5, 5, 5, 3]
    assert sorted(collect_labels(batches)) == list(range(23))
    for images, labels in pairs:
        assert (images.dtype, labels.dtype) == (torch.float32, torch.int64)
        torch.testing.assert_close(images, dataset.normalize(dataset.images[labels]))


def test_without_shuffling_the_order_is_that_of_the_data_set() -> None:
    batches = Batches(make_numbered_dataset(), 5)
    assert collect_labels(batches) == collect_labels(batches) == list(range(23))


def test_each_pass_has_an_order_of_its_own() -> None:
    batches = Batches(make_numbered_dataset(), 5, shuffle=True)
    first, second = collect_labels(batches), collect_labels(batches)
    assert first != second
    assert batches.epoch == 2
    assert [collect_labels(again) for again in [Batches(make_numbered_dataset(), 5, shuffle=True)] * 2] == [
        first,
        second,
    ]
    assert collect_labels(Batches(make_numbered_dataset(), 5, shuffle=True, seed=1)) not in (first, second)


@pytest.mark.parametrize("augmentation", [CHANGES, Augmentation(mixup=1.0, cutmix=1.0)])
def test_a_pass_can_be_repeated_by_its_number(augmentation: Augmentation) -> None:
    batches = Batches(shapes(40), 16, augmentation, shuffle=True, seed=7)
    next(iter(batches))  # a pass that nobody finished
    second = list(batches)
    again = Batches(shapes(40), 16, augmentation, shuffle=True, seed=7)
    again.epoch = 1
    for (images, labels), (same_images, same_labels) in zip(second, again, strict=True):
        assert torch.equal(images, same_images)
        assert torch.equal(labels, same_labels)


def test_the_global_generator_neither_decides_nor_moves() -> None:
    everything = replace(CHANGES, affine=1.0, color=1.0, mixup=0.8, cutmix=1.0)
    torch.manual_seed(3)
    first = [images for images, _ in Batches(shapes(20), 8, everything, shuffle=True)]
    drawn = torch.rand(2)
    torch.manual_seed(3)
    assert torch.equal(torch.rand(2), drawn)
    torch.manual_seed(4)
    assert all(
        torch.equal(one, two)
        for one, (two, _) in zip(first, Batches(shapes(20), 8, everything, shuffle=True), strict=True)
    )


def test_mixing_gives_targets_in_place_of_labels() -> None:
    images, targets = next(iter(Batches(shapes(20), 8, Augmentation(mixup=0.8), shuffle=True)))
    assert (images.shape, targets.shape, targets.dtype) == ((8, 3, 32, 32), (8, 10), torch.float32)
    torch.testing.assert_close(targets.sum(1), torch.ones(8))


@pytest.mark.parametrize("augmentation", [None, CHANGES, Augmentation(max_shift=2, mixup=0.8, cutmix=1.0)])
@pytest.mark.parametrize("world_size", [2, 3])
def test_several_processes_see_together_what_one_sees(augmentation: Augmentation | None, world_size: int) -> None:
    def make_batches_of_rank(rank: int, count: int) -> Batches:
        return Batches(shapes(25), 8, augmentation, shuffle=True, rank=rank, world_size=count)

    alone = list(make_batches_of_rank(0, 1))
    shares = [list(make_batches_of_rank(rank, world_size)) for rank in range(world_size)]
    assert {len(share) for share in shares} == {len(alone)} == {4}
    for step, (images, labels) in enumerate(alone):
        for rank in range(world_size):
            assert torch.equal(shares[rank][step][0], images[rank::world_size])
            assert torch.equal(shares[rank][step][1], labels[rank::world_size])
    assert len(shares[1][3][1]) == 0  # the last batch holds one image


def test_the_data_set_is_left_as_it_was() -> None:
    dataset = shapes(20)
    before = dataset.images.clone()
    list(Batches(dataset, 8, CHANGES, shuffle=True, device="cpu"))
    assert torch.equal(dataset.images, before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"batch_size": 4, "rank": 2, "world_size": 2}, "rank 2 is not between 0 and world_size - 1 = 1"),
        ({"batch_size": 4, "rank": -1}, "rank -1"),
    ],
)
def test_numbers_out_of_range_are_refused(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Batches(make_numbered_dataset(), **arguments)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU, and there is none")
@pytest.mark.parametrize("augmentation", [Augmentation(2, flip=True, erase=5), Augmentation(mixup=0.8, cutmix=1.0)])
def test_a_gpu_sees_the_same_batches(augmentation: Augmentation) -> None:
    on_cpu = Batches(shapes(40), 16, augmentation, shuffle=True)
    on_gpu = Batches(shapes(40), 16, augmentation, shuffle=True, device="cuda")
    for (images, labels), (gpu_images, gpu_labels) in zip(on_cpu, on_gpu, strict=True):
        assert gpu_images.is_cuda
        assert gpu_labels.is_cuda
        torch.testing.assert_close(gpu_images.cpu(), images)  # float32, three operations
        torch.testing.assert_close(gpu_labels.cpu(), labels)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="only a GPU can be waited for, and there is none")
@pytest.mark.parametrize("augmentation", [None, Augmentation(2, flip=True, erase=5, mixup=0.8, cutmix=1.0)])
def test_drawing_a_batch_does_not_wait_for_the_gpu(augmentation: Augmentation | None) -> None:
    batches = iter(Batches(shapes(80), 16, augmentation, shuffle=True, device="cuda"))
    next(batches)
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert sum(1 for _ in batches) == 4
    finally:
        torch.cuda.set_sync_debug_mode("default")
