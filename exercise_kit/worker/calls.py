"""What is observed of one call of a student's function: its result, and what it did to its inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from . import originals
from .packing import tensors_in


def observed(
    function: Callable[..., Any], inputs: Sequence[Any], options: Mapping[str, Any], gradients: bool = False
) -> dict[str, Any]:
    """Call ``function`` and tell its result, the inputs as they are afterwards, and what it shares with them.

    Whether it changed one of them is for the judge to see, who knows what was sent. With ``gradients`` every float
    tensor among the inputs requires one; output tensor k is pulled back from normal numbers of the seed k.
    """
    leaves = [_differentiable(value) for value in inputs] if gradients else inputs
    if gradients:  # the function gets copies, for torch lets nobody write into a leaf
        inputs = [each.clone() if isinstance(each, Tensor) and each.requires_grad else each for each in leaves]
    result = function(*inputs, **options)
    if inspect.iscoroutine(result):
        result.close()  # or Python warns that nobody awaited it
    with torch._C.DisableTorchFunctionSubclass():
        told: dict[str, Any] = {
            "result": result,
            "inputs": [value if isinstance(value, Tensor | dict | nn.Module) else None for value in inputs],
            "same": next((place for place, value in enumerate(inputs) if _is_that(value, result)), None),
            "shares": _share(result, inputs),
        }
        if gradients:
            told["gradients"] = _gradients(result, leaves)
    return told


def cotangent(output: Tensor, seed: int) -> Tensor:
    """Normal numbers of the shape, dtype and device of ``output``, the same in the judge's process."""
    return torch.randn(output.shape, generator=torch.Generator().manual_seed(seed)).to(output)


def pull_back(outputs: Sequence[Tensor], cotangents: Sequence[Tensor | None]) -> None:
    """Run the backward pass from outputs that require a gradient; the graph stays for another."""
    pairs = [(output, each) for output, each in zip(outputs, cotangents, strict=True) if each is not None]
    if pairs:
        torch.autograd.backward([output for output, _ in pairs], [each for _, each in pairs], retain_graph=True)


def _differentiable(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().requires_grad_()
    return value


def _gradients(result: Any, inputs: Sequence[Any]) -> list[Tensor | None]:
    outputs = list(tensors_in(result))
    pull_back(outputs, [cotangent(each, seed) if each.requires_grad else None for seed, each in enumerate(outputs)])
    return [value.grad if isinstance(value, Tensor) else None for value in inputs]


def _is_that(value: Any, result: Any) -> bool:
    return value is result and isinstance(value, Tensor | nn.Module | dict | list)


def _share(result: Any, inputs: Sequence[Any]) -> bool:
    """Whether the result, or a module among the inputs, lies in memory of another input."""
    made = [result, *(value for value in inputs if isinstance(value, nn.Module))]
    return any(
        not _memory(each).isdisjoint(_memory(given))
        for each in made
        for given in inputs
        if not (each is given and isinstance(each, nn.Module))
    )


def _memory(value: Any) -> set[int]:
    """Where the numbers of a tensor, a module, a dict or a list of tensors lie."""
    held = list(originals.held_by(value)) if isinstance(value, nn.Module) else value
    return {
        originals.address(tensor)
        for tensor in tensors_in(held)
        if originals.layout(tensor) == torch.strided and not originals.is_meta(tensor) and originals.numel(tensor)
    }
