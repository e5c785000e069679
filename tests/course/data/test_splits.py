from __future__ import annotations

import pytest
import torch

from vit_course.data import split_indices


def test_each_number_is_in_one_part() -> None:
    train, validation = split_indices(20, 6, seed=3)
    assert (train.dtype, train.shape) == (torch.int64, (14,))
    assert (validation.dtype, validation.shape) == (torch.int64, (6,))
    assert sorted(torch.cat([train, validation]).tolist()) == list(range(20))


def test_both_parts_are_shuffled() -> None:
    train, validation = split_indices(1000, 500, seed=0)
    for part in (train, validation):
        assert part.tolist() != sorted(part.tolist())
        assert 400 < part.float().mean() < 600  # neither is the head of the data set, nor its tail


def test_the_seed_decides() -> None:
    first, again, other = (split_indices(50, 10, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_global_generator_is_left_alone() -> None:
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    split_indices(50, 10, seed=1)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("num_validation", [0, -1, 20, 21])
def test_no_part_is_empty(num_validation: int) -> None:
    with pytest.raises(ValueError, match=f"num_validation {num_validation} is not between 1 and 19"):
        split_indices(20, num_validation, seed=0)
