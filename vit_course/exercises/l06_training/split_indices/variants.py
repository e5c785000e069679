"""Right answers in other styles: what no check may refuse."""

import random

import numpy as np
import torch

from vit_course.data import split_indices


def _refuse_impossible_sizes(num_samples, num_validation):
    if num_validation <= 0 or num_validation >= num_samples:
        raise ValueError(f"cannot take {num_validation} of {num_samples} images")


def by_numpy(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(num_samples))
    return order[num_validation:], order[:num_validation]


def by_random_sample(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    validation = random.Random(seed).sample(range(num_samples), num_validation)
    chosen = set(validation)
    train = [index for index in range(num_samples) if index not in chosen]
    return torch.tensor(train), torch.tensor(validation)


def by_sorted_noise(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    generator = torch.Generator()
    generator.manual_seed(seed)
    order = torch.rand(num_samples, generator=generator).argsort()
    return order[: num_samples - num_validation], order[num_samples - num_validation :].sort().values


def by_a_mask(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    generator = torch.Generator().manual_seed(seed)
    mask = torch.zeros(num_samples, dtype=torch.bool)
    mask[torch.randperm(num_samples, generator=generator)[:num_validation]] = True
    return (~mask).nonzero().flatten(), mask.nonzero().squeeze(1)


def by_a_fork_of_the_global_generator(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        order = torch.randperm(num_samples)
    return list(order.split([num_samples - num_validation, num_validation]))


def by_random_split(num_samples, num_validation, seed):
    _refuse_impossible_sizes(num_samples, num_validation)
    lengths = [num_samples - num_validation, num_validation]
    parts = torch.utils.data.random_split(range(num_samples), lengths, torch.Generator().manual_seed(seed))
    return tuple(torch.tensor(part.indices) for part in parts)


RIGHT = {
    "split_indices": [
        split_indices,
        by_numpy,
        by_random_sample,
        by_sorted_noise,
        by_a_mask,
        by_a_fork_of_the_global_generator,
        by_random_split,
    ]
}
