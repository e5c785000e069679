"""Functions of the judge's that a student's code may call: evaluated over the wire, differentiable."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .values import tensors_in

Ask = Callable[[dict[str, Any]], dict[str, Any]]


class Callbacks:
    """Makes functions that ask the judge.

    Args:
        ask: sends a question of these fields and gives the judge's answer.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._lock = threading.Lock()

    def function(self, number: int) -> Callable[..., Any]:
        """The judge's callable ``number``, as a function of tensors that can be differentiated."""

        def attend(*inputs: Any, **options: Any) -> Any:
            tensors = list(tensors_in((inputs, options)))
            if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
                return self._called(number, inputs, options, False)["result"]
            box: dict[str, Any] = {}
            outputs = iter(_JudgeCall.apply(self, box, number, inputs, options, *tensors))
            return _replaced(box["result"], outputs)

        return attend

    def _called(self, number: int, inputs: Any, options: Any, gradients: bool) -> dict[str, Any]:
        question = {"callback": number, "inputs": inputs, "options": options, "gradients": gradients}
        return self._answer(question)

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            answer = self._ask(question)
        if "raised" in answer:
            raise _exception(answer["raised"])
        return answer


class _JudgeCall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, callbacks: Callbacks, box: dict[str, Any], number: int, inputs: Any, options: Any, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        answer = callbacks._called(number, inputs, options, True)
        box["result"] = answer["result"]
        outputs = tuple(tensors_in(answer["result"]))
        ctx.callbacks, ctx.call = callbacks, answer["call"]
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        question = {"callback_gradients": ctx.call, "cotangents": list(cotangents)}
        gradients = ctx.callbacks._answer(question)["gradients"]
        return None, None, None, None, None, *gradients


def _replaced(value: Any, outputs: Any) -> Any:
    """``value`` with the tensors of ``outputs`` in the place of its own."""
    if isinstance(value, Tensor):
        return next(outputs)
    if isinstance(value, tuple | list):
        return type(value)(_replaced(each, outputs) for each in value)
    if isinstance(value, dict):
        return {key: _replaced(each, outputs) for key, each in value.items()}
    return value


def _exception(raised: dict[str, Any]) -> Exception:
    kinds = (getattr(builtins, kind, None) for kind in raised["kinds"])
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(raised["words"])
    return RuntimeError(raised["words"])
