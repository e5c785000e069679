"""Parts of normalising images: the formula for a channel, whose mean and std it takes, and what is given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.two_mistakes import Parts, declare
from vit_course.exercises.checks.start import normalize_images
from vit_course.exercises.misconceptions import start as wrong

Statistics = Tensor | Sequence[float]


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
    formula: Callable[[Tensor, Any, Any], Tensor] = lambda pixels, centre, spread: (pixels - centre) / spread,
    scaled: float = 1.0,
    first: bool = False,
    loop: int | None = None,
    told: Callable[[Tensor, Tensor], Tensor] = lambda result, images: result,
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
    return told(made, images)


declare(
    normalize_images,
    Parts(
        _made,
        {
            wrong.divided_before_subtracting: {"formula": lambda x, mean, std: x / std - mean},
            wrong.only_the_mean_divided: {"formula": lambda x, mean, std: x - mean / std},
            wrong.std_forgotten: {"formula": lambda x, mean, std: x - mean},
            wrong.mean_forgotten: {"formula": lambda x, mean, std: x / std},
            wrong.multiplied_by_std: {"formula": lambda x, mean, std: (x - mean) * std},
            wrong.divided_by_the_variance: {"formula": lambda x, mean, std: (x - mean) / std**2},
            wrong.undone_in_place_of_done: {"formula": lambda x, mean, std: x * std + mean},
            wrong.divided_by_255_once_more: {"scaled": 1 / 255},
            wrong.first_channel_for_all: {"first": True, "axis": 1},
            wrong.a_mean_for_every_column: {"axis": 3},
            wrong.a_mean_for_every_row: {"axis": 2},
            wrong.a_mean_for_every_image: {"axis": 0},
            wrong.tensors_taken_for_granted: {"types": _want_tensors},
            wrong.lists_indexed_like_tensors: {"types": _index_tensors},
            wrong.three_channels_hard_coded: {"count": _want_three},
            wrong.only_three_channels_normalised: {"loop": 3},
            wrong.float32_whatever_the_input: {"told": lambda result, images: result.float()},
            wrong.images_changed_in_place: {"told": lambda result, images: images.copy_(result)},
        },
        quick=True,
    ),
)
