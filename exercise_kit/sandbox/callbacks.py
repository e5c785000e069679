"""Functions of the judge's that a worker may call while it answers: run here, on copies, within bounds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

import torch
from torch import Tensor

from exercise_kit.worker.values import walk_tensors
from exercise_kit.worker.wire import WireError

_MOST_NUMBERS = 1 << 20  # of one tensor on the way: the scores, the output
_MOST_PRODUCTS = 1 << 27  # of one call: about a tenth of a second
_MOST_KEPT, _MOST_NUMBERS_KEPT = 64, 1 << 22  # calls whose gradients may still be asked for, and numbers in all
_STEPS = 4  # tensors of the size of the scores, and of the output, that a call keeps for its gradients
_REFUSED = "these inputs do not fit together"


class _TooLarge(ValueError):
    """Inputs that would take the judge's memory or time."""


class CallbackBudget:
    """What one worker's questions may cost the judge altogether.

    Args:
        questions: how many.
        numbers: in their tensors.
        seconds: of the judge's processor time.
    """

    def __init__(self, questions: int = 20_000, numbers: int = 1 << 26, seconds: float = 20.0) -> None:
        self._questions, self._numbers, self._seconds = questions, numbers, seconds

    def count_question(self, numbers: int) -> None:
        """Count one more question; _TooLarge when something is used up."""
        self._questions -= 1
        self._numbers -= numbers
        if min(self._questions, self._numbers, self._seconds) <= 0:
            raise _TooLarge("this function was called too often, or with too many numbers in all")

    @contextmanager
    def count_processor_time(self) -> Iterator[None]:
        """Count the processor time of what is done inside."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._seconds -= time.thread_time() - began


class CallbackService:
    """Answers the questions of one request.

    Args:
        callables: the functions, by their numbers.
        budget: of the worker that asks.
    """

    def __init__(self, callables: Sequence[Callable[..., Any]], budget: CallbackBudget | None = None) -> None:
        self._callables = callables
        self._budget = budget or CallbackBudget()
        self._calls: list[tuple[list[Tensor], list[Tensor]]] = []
        self._numbers_kept = 0

    def answer(self, question: Any) -> dict[str, Any]:
        """{"result", "call", "changed"} or {"gradients": [...]} or {"raised": ...}; WireError: no question.

        "changed" holds the place and the new numbers of each tensor that the function has written into.
        """
        if not isinstance(question, dict):
            raise WireError("a question that is none")
        try:
            self._budget.count_question(sum(tensor.numel() for tensor in walk_tensors(list(question.values()))))
            with self._budget.count_processor_time():
                if "callback_gradients" in question:
                    return self._compute_gradients(question["callback_gradients"], question.get("cotangents"))
                return self._call_function(question)
        except _TooLarge as error:
            return {"raised": {"kinds": ["ValueError"], "words": str(error)}}
        except Exception as error:  # its own words and lines would tell which function this is
            kind = next(each for each in type(error).__mro__ if each.__module__ == "builtins")
            return {"raised": {"kinds": [kind.__name__], "words": _REFUSED}}

    def _call_function(self, question: dict[str, Any]) -> dict[str, Any]:
        function = self._callables[_require_index(question["callback"])]
        inputs, options = tuple(question["inputs"]), dict(question["options"])
        given = list(walk_tensors((inputs, options)))
        versions = [tensor._version for tensor in given]
        numbers = _estimate_kept_numbers(given)
        room = len(self._calls) < _MOST_KEPT and self._numbers_kept + numbers <= _MOST_NUMBERS_KEPT
        if question["gradients"] is not True or not room:
            with torch.no_grad():
                result = function(*inputs, **options)
            return {"result": result, "call": -1, "changed": _find_changed_tensors(given, versions)}
        with torch.enable_grad():
            for tensor in given:
                tensor.requires_grad_(tensor.is_floating_point())
            result = function(*inputs, **options)
        self._numbers_kept += numbers
        self._calls.append((given, list(walk_tensors(result))))
        changed = _find_changed_tensors(given, versions)
        return {"result": _detach_tensors(result), "call": len(self._calls) - 1, "changed": changed}

    def _compute_gradients(self, number: Any, cotangents: Any) -> dict[str, Any]:
        given, outputs = self._calls[_require_index(number)]
        pairs = [(output, each) for output, each in zip(outputs, cotangents, strict=True) if output.requires_grad]
        leaves = [tensor for tensor in given if tensor.requires_grad]
        found = torch.autograd.grad(
            [output for output, _ in pairs], leaves, [each for _, each in pairs], retain_graph=True, allow_unused=True
        )
        gradients = iter(found)
        return {"gradients": [next(gradients) if tensor.requires_grad else None for tensor in given]}


def _require_index(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise IndexError("no function of this number")
    return value


def _find_changed_tensors(tensors: Sequence[Tensor], versions: Sequence[int]) -> list[tuple[int, Tensor]]:
    """Place and numbers of the tensors that have been written into since they had these versions."""
    return [
        (place, tensor.detach())
        for place, (tensor, version) in enumerate(zip(tensors, versions, strict=True))
        if tensor._version != version
    ]


def _detach_tensors(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, tuple | list):
        return type(value)(_detach_tensors(each) for each in value)
    return value


def _estimate_kept_numbers(tensors: Sequence[Tensor]) -> int:
    """About how many numbers a call keeps for its gradients; _TooLarge where it would take too much at once.

    What students are given to call is attention, a norm or a rotation, and the first takes the most.
    The scores are (batch, queries, keys), the output (batch, queries, value_dim); which tensor is which nobody tells,
    so the largest sizes count.
    """
    matrices = [tensor.shape for tensor in tensors if tensor.ndim > 1]
    rows = max((max(1, shape[-2]) for shape in matrices), default=1)
    columns = max((max(1, tensor.shape[-1]) for tensor in tensors if tensor.ndim), default=1)
    # by hand: torch.broadcast_shapes imports sympy, which takes seconds. Where they do not fit, the function says so
    leading = zip_longest(*(reversed(shape[:-2]) for shape in matrices), fillvalue=1)
    batch = math.prod(max(1, *sizes) for sizes in leading)
    given = [math.prod(max(1, size) for size in tensor.shape) for tensor in tensors]
    scores, output = batch * rows * rows, batch * rows * columns
    if max(scores, output, *given, 0) > _MOST_NUMBERS or scores * columns > _MOST_PRODUCTS:
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors[:6])
        raise _TooLarge(f"tensors of the shapes {shapes} are too large to ask about here")
    return sum(given) + _STEPS * (scores + output)
