"""Wrong answers that hold the right numbers in other places: which they are, and two such mistakes one after the other.

Where every number goes is read off inputs whose numbers are counted through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

Function = Callable[..., Any]


@dataclass(frozen=True)
class Layout:
    """An exercise whose answers rearrange the numbers of the first input.

    Attributes: ``right`` (the oracle), ``inputs`` on which mistakes of layout show, and the ``place`` of the function
    among the exercise's objects.
    """

    right: Function
    inputs: tuple[Any, ...]
    place: int = 0


def rearranges(layout: Layout, wrong: Function) -> bool:
    """Whether a wrong answer has the numbers of the right one in other places."""
    answer = _attempt(wrong, layout.inputs)
    order = None if answer is None else _order(layout, answer, layout.inputs)
    return order is not None and not (order == torch.arange(len(order))).all()


def alike(layout: Layout, one: Function, other: Function) -> bool:
    """Whether two answer alike on numbered inputs."""
    first, second = (_attempt(each, layout.inputs) for each in (one, other))
    return first is not None and second is not None and first.shape == second.shape and torch.equal(first, second)


def _attempt(function: Function, inputs: tuple[Any, ...]) -> Tensor | None:
    try:
        answer = function(_numbered(inputs[0]), *inputs[1:])
    except (RuntimeError, ValueError, IndexError):
        return None
    return answer if isinstance(answer, Tensor) else None


def _numbered(like: Tensor) -> Tensor:
    return torch.arange(like.numel(), dtype=torch.float64).reshape(like.shape)


def _order(layout: Layout, answer: Tensor, inputs: Sequence[Any]) -> Tensor | None:
    """For each number of an answer to numbered inputs its place in the right answer; None where one has none."""
    right = layout.right(_numbered(inputs[0]), *inputs[1:]).flatten().long()
    found = answer.flatten().long()
    if not torch.equal(found.sort().values, right.sort().values):
        return None
    places = torch.empty(int(right.max()) + 1, dtype=torch.int64)
    places[right] = torch.arange(len(right))
    return places[found]


def rearranged(layout: Layout, outer: Function, inner: Function, *inputs: Any) -> Any:
    """What ``inner`` gives, rearranged as ``outer`` rearranges the right answer; alone where that cannot be."""
    pattern = outer(_numbered(inputs[0]), *inputs[1:])
    answer = inner(*inputs)
    try:
        order = _order(layout, pattern, inputs)
        shape = layout.right(_numbered(inputs[0]), *inputs[1:]).shape
    except (RuntimeError, ValueError):
        return answer
    if order is None or not isinstance(answer, Tensor) or answer.numel() != len(order):
        return answer
    return answer.flatten()[order.to(answer.device)].reshape(answer.shape if pattern.shape == shape else pattern.shape)
