"""Known mistakes of lesson 06: the split. Each deals the indices with Python's own generators, card by card."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.exercise import InTraining
from vit_course.exercises.checks.splitting import split_indices

PILES = "06_cifar, Three piles of pictures"


def _dealt(num_samples: int, seed: object) -> list[int]:
    """0 to num_samples - 1 in an order that depends on the seed alone."""
    cards, generator = list(range(num_samples)), random.Random(str(seed))
    generator.shuffle(cards)
    return cards


def _parts(cards: Sequence[int], num_validation: int) -> tuple[Tensor, Tensor]:
    return torch.tensor(cards[num_validation:]), torch.tensor(cards[:num_validation])


def _refuse(num_samples: int, num_validation: int) -> None:
    if num_validation not in range(1, num_samples):
        raise ValueError(f"{num_validation} of {num_samples} images leave a part empty")


@split_indices.misconception("Which part is the larger one, and which comes first?", PILES, InTraining.WORSE)
def parts_the_wrong_way_round(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The parts come in the wrong order, or num_validation was taken for the number of training images."""
    _refuse(num_samples, num_validation)
    train, validation = _parts(_dealt(num_samples, seed), num_validation)
    return validation, train


@split_indices.misconception("What would be in validation if the images were sorted by class?", PILES)
def the_first_images_validate(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Nothing is shuffled before the cut: the first num_validation images become the validation part."""
    _refuse(num_samples, num_validation)
    return _parts(range(num_samples), num_validation)


@split_indices.misconception("What would be in validation if the images were sorted by class?", PILES)
def the_last_images_validate(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Nothing is shuffled before the cut: the last num_validation images become the validation part."""
    _refuse(num_samples, num_validation)
    return _parts(
        [*range(num_samples - num_validation, num_samples), *range(num_samples)][:num_samples], num_validation
    )


@split_indices.misconception("How many shuffled orders does one split need?", PILES, InTraining.FLATTERED)
def two_parts_from_two_orders(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The two parts are drawn apart from each other, so some images are in both and others in neither."""
    _refuse(num_samples, num_validation)
    first, second = _dealt(num_samples, seed), _dealt(num_samples, seed + 1000)
    return _parts(first, num_validation)[0], _parts(second, num_validation)[1]


@split_indices.misconception(
    "Which images are left for training once the validation images are chosen?", PILES, InTraining.FLATTERED
)
def all_images_train(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The training part holds every image, the validation images too, so the model is judged by what it has seen."""
    _refuse(num_samples, num_validation)
    return torch.arange(num_samples), _parts(_dealt(num_samples, seed), num_validation)[1]


@split_indices.misconception("Can a number come up twice in your draw?", PILES, InTraining.FLATTERED)
def drawn_with_putting_back(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The indices are drawn as by dice, so some come up twice and others never."""
    _refuse(num_samples, num_validation)
    dice = random.Random(seed)
    return _parts([dice.randrange(num_samples) for _ in range(num_samples)], num_validation)


@split_indices.misconception("Which index has the first image?", PILES, InTraining.STOPS)
def counted_from_one(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The indices run from 1 to num_samples, so the first image is never used and the last one is not there."""
    _refuse(num_samples, num_validation)
    return _parts([card + 1 for card in _dealt(num_samples, seed)], num_validation)


@split_indices.misconception("Is the image at the cut in one of the parts?", PILES)
def one_lost_at_the_cut(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """One index at the cut, or at the end, is in neither part."""
    _refuse(num_samples, num_validation)
    return _parts(_dealt(num_samples, seed)[:-1], num_validation)


@split_indices.misconception("Which generator draws your numbers, and who has set its seed?", PILES)
def no_seed_at_all(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The order is drawn from the global generator as it happens to stand, so every call gives another split."""
    _refuse(num_samples, num_validation)
    return _parts(_dealt(num_samples, torch.rand(()).item()), num_validation)


@split_indices.misconception("Who else draws from the generator that you have set to a seed?", PILES)
def the_global_generator_is_seeded(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The global generator is set to the seed, so whoever draws after the split gets the same numbers each time."""
    _refuse(num_samples, num_validation)
    torch.manual_seed(seed)
    return _parts(_dealt(num_samples, torch.rand(()).item()), num_validation)


@split_indices.misconception("Where does the seed enter?", PILES)
def seed_not_used(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The seed is written into the function, whatever the one is that it is given."""
    _refuse(num_samples, num_validation)
    return _parts(_dealt(num_samples, 42), num_validation)


@split_indices.misconception("Which split can be cut, and which cannot?", PILES, InTraining.UNSEEN)
def empty_parts_accepted(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """A split that leaves a part empty is made without a word."""
    return _parts(_dealt(num_samples, seed), num_validation)


@split_indices.misconception("How many images train when num_validation is num_samples?", PILES, InTraining.UNSEEN)
def no_image_left_to_train(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Too many validation images are refused, but as many as there are images are not, so none is left to train."""
    if num_validation != num_samples:
        _refuse(num_samples, num_validation)
    return _parts(_dealt(num_samples, seed), num_validation)


@split_indices.misconception("Is zero validation images a split?", PILES, InTraining.UNSEEN)
def no_image_left_to_judge(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Too many validation images are refused, but none at all, or fewer than none, are not."""
    if num_validation >= num_samples:
        _refuse(num_samples, num_validation)
    return _parts(_dealt(num_samples, seed), num_validation)


@split_indices.misconception("What becomes of an assert when Python runs with -O?", PILES, InTraining.UNSEEN)
def asserted_and_not_raised(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """An impossible split ends in an AssertionError, where a ValueError with a text is asked for."""
    if num_validation not in range(1, num_samples):
        raise AssertionError(num_validation)
    return _parts(_dealt(num_samples, seed), num_validation)


@split_indices.misconception("Which function turns a mask into the places where it is True?", PILES, InTraining.UNSEEN)
def masks_for_indices(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """Each part is a mask with a bool for every image, and not a list of the images that are in it."""
    _refuse(num_samples, num_validation)
    chosen = set(_dealt(num_samples, seed)[:num_validation])
    mask = torch.tensor([each in chosen for each in range(num_samples)])
    return ~mask, mask


@split_indices.misconception("What would torch.cat say to the two parts?", PILES, InTraining.UNSEEN)
def lists_for_tensors(num_samples: int, num_validation: int, seed: int) -> tuple[list[int], list[int]]:
    """The parts are lists of numbers, and int64 tensors were asked for."""
    _refuse(num_samples, num_validation)
    train, validation = _parts(_dealt(num_samples, seed), num_validation)
    return train.tolist(), validation.tolist()


@split_indices.misconception("Which function makes a tensor of an array?", PILES, InTraining.UNSEEN)
def arrays_for_tensors(num_samples: int, num_validation: int, seed: int) -> tuple[Any, Any]:
    """The parts are NumPy arrays, and int64 tensors were asked for."""
    _refuse(num_samples, num_validation)
    train, validation = _parts(_dealt(num_samples, seed), num_validation)
    return train.numpy(), validation.numpy()


@split_indices.misconception("Which dtype has an index in torch?", PILES, InTraining.UNSEEN)
def indices_of_32_bits(num_samples: int, num_validation: int, seed: int) -> tuple[Tensor, Tensor]:
    """The indices are int32, and int64 was asked for, the dtype that torch gives to an index."""
    _refuse(num_samples, num_validation)
    train, validation = _parts(_dealt(num_samples, seed), num_validation)
    return train.int(), validation.int()


@split_indices.misconception("What does the function's last line give back?", PILES, InTraining.STOPS)
def one_shuffled_order(num_samples: int, num_validation: int, seed: int) -> Any:
    """The order is shuffled and given back whole, without a cut."""
    _refuse(num_samples, num_validation)
    return torch.tensor(_dealt(num_samples, seed))
