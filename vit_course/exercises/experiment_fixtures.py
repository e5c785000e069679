"""Training fixtures of lesson 07: ``mixup`` gets a generator of NumPy's, which is made beside the student's code.

They run beside a student's code, in a kernel or in a judge's worker. They take and return plain values and tensors,
hold no answer and judge nothing. Of the package they import the notes on chance and the other device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from exercise_kit.engine.training_fixtures import call_on_other_device
from vit_course.exercises.training_fixtures import chance, refusal


def mixing(
    function: Callable[..., Any],
    images: Tensor,
    labels: Tensor,
    num_classes: int,
    alpha: float,
    seed: int,
    calls: int = 1,
) -> dict[str, Any]:
    """Call ``function(images, labels, num_classes, alpha, generator)`` so many times, with one generator.

    Returns:
        "returned": a list with the result of each call.
        "changed": names of the inputs that the calls have changed.
    """
    generator, returned, changed = np.random.default_rng(seed), [], set()
    for _ in range(calls):
        given = {"images": images.clone(), "labels": labels.clone()}
        returned.append(function(*given.values(), num_classes, alpha, generator))
        before = {"images": images, "labels": labels}
        changed |= {name for name, each in given.items() if not torch.equal(each, before[name])}
    return {"returned": returned, "changed": sorted(changed)}


def mixing_by_chance(
    function: Callable[..., Any],
    images: Tensor,
    labels: Tensor,
    num_classes: int,
    alpha: float,
    seed: int,
    global_seed: int,
) -> dict[str, Any]:
    """Return what :func:`~vit_course.exercises.training_fixtures.chance` notes of one call."""
    return chance(function, [images, labels, num_classes, alpha, np.random.default_rng(seed)], global_seed)


def mixing_refused(
    function: Callable[..., Any], images: Tensor, labels: Tensor, num_classes: int, alpha: float, seed: int
) -> dict[str, Any]:
    """Return what :func:`~vit_course.exercises.training_fixtures.refusal` notes of one call."""
    return refusal(function, images, labels, num_classes, alpha, np.random.default_rng(seed))


def mixing_elsewhere(
    function: Callable[..., Any], images: Tensor, labels: Tensor, num_classes: int, alpha: float, seed: int
) -> dict[str, Any]:
    """Call it with images and labels on another device than the CPU; what :func:`device` notes of it."""

    def call_with_new_generator(images: Tensor, labels: Tensor) -> Any:
        return function(images, labels, num_classes, alpha, np.random.default_rng(seed))

    return call_on_other_device(call_with_new_generator, [images, labels])


FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "mixing": mixing,
    "mixing_by_chance": mixing_by_chance,
    "mixing_refused": mixing_refused,
    "mixing_elsewhere": mixing_elsewhere,
}
