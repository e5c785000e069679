"""Functions of the judge's that a worker may call while it answers: run here, on copies, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from vit_course.grading.worker.packing import tensors_in
from vit_course.grading.worker.wire import WireError

_MOST_NUMBERS = 1 << 20  # of anything that grows as batch * tokens * tokens
_MOST_KEPT, _MOST_NUMBERS_KEPT = 64, 1 << 22  # calls whose gradients may still be asked for, and numbers in all
_REFUSED = "these inputs do not fit together"


class _TooLarge(ValueError):
    """Inputs that would take the judge's memory or time."""


class Service:
    """Answers the questions of one request.

    Args:
        callables: the functions, by their numbers.
    """

    def __init__(self, callables: Sequence[Callable[..., Any]]) -> None:
        self._callables = callables
        self._calls: list[tuple[list[Tensor], list[Tensor]]] = []
        self._kept = 0

    def answer(self, question: Any) -> dict[str, Any]:
        """{"result": ..., "call": number} or {"gradients": [...]} or {"raised": ...}; WireError: no question."""
        if not isinstance(question, dict):
            raise WireError("a question that is none")
        try:
            if "callback_gradients" in question:
                return self._gradients(question["callback_gradients"], question.get("cotangents"))
            return self._called(question)
        except _TooLarge as error:
            return {"raised": {"kinds": ["ValueError"], "words": str(error)}}
        except Exception as error:  # its own words and lines would tell which function this is
            kind = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
            return {"raised": {"kinds": [kind.__name__], "words": _REFUSED}}

    def _called(self, question: dict[str, Any]) -> dict[str, Any]:
        function = self._callables[_number(question["callback"])]
        inputs, options = tuple(question["inputs"]), dict(question["options"])
        given = list(tensors_in((inputs, options)))
        numbers = _size_of(given)
        room = len(self._calls) < _MOST_KEPT and self._kept + numbers <= _MOST_NUMBERS_KEPT
        if question["gradients"] is not True or not room:
            with torch.no_grad():
                return {"result": function(*inputs, **options), "call": -1}
        with torch.enable_grad():
            for tensor in given:
                tensor.requires_grad_(tensor.is_floating_point())
            result = function(*inputs, **options)
        self._kept += numbers
        self._calls.append((given, list(tensors_in(result))))
        return {"result": _detached(result), "call": len(self._calls) - 1}

    def _gradients(self, number: Any, cotangents: Any) -> dict[str, Any]:
        given, outputs = self._calls[_number(number)]
        pairs = [(output, each) for output, each in zip(outputs, cotangents, strict=True) if output.requires_grad]
        leaves = [tensor for tensor in given if tensor.requires_grad]
        found = torch.autograd.grad(
            [output for output, _ in pairs], leaves, [each for _, each in pairs], retain_graph=True, allow_unused=True
        )
        gradients = iter(found)
        return {"gradients": [next(gradients) if tensor.requires_grad else None for tensor in given]}


def _number(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise IndexError("no function of this number")
    return value


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, tuple | list):
        return type(value)(_detached(each) for each in value)
    return value


def _size_of(tensors: Sequence[Tensor]) -> int:
    """How many numbers the largest tensor on the way holds; ValueError where it would take the judge's memory."""
    tokens = max((tensor.shape[-2] for tensor in tensors if tensor.ndim > 1), default=1)
    batch = math.prod(torch.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors))) if tensors else 1
    numbers = max((math.prod(max(1, size) for size in tensor.shape) for tensor in tensors), default=1)
    largest = max(numbers, max(1, batch) * max(1, tokens) ** 2)
    if largest > _MOST_NUMBERS:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise _TooLarge(f"tensors of the shapes {shapes} are too large to ask about here")
    return largest
