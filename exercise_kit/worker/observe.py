"""What is observed of one call of a student's function, and of the named parts of a module."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CoroutineType
from typing import Any

import torch
from torch import Tensor, nn

from .real_types import is_a
from .torch_internals import (
    Unseen,
    copy,
    find_address,
    gradient,
    is_meta,
    layout,
    list_parameters_and_buffers,
    make_differentiable,
    numel,
)
from .values import walk_tensors


@dataclass(frozen=True)
class Observation:
    """One call, and what it left behind.

    Attributes:
        result: what was returned.
        inputs: as they are after the call.
        shares: whether the result, or a module among the inputs, has memory in common with another input.
        gradients: of the inputs, where they were requested.
    """

    result: Any
    inputs: tuple[Any, ...]
    shares: bool
    gradients: tuple[Tensor | None, ...] | None = None


def observe(
    function: Callable[..., Any], inputs: Sequence[Any], options: Mapping[str, Any], gradients: bool = False
) -> Observation:
    """Call ``function`` and note its result, the inputs as they are afterward, and what it shares with them.

    Whether it changed one of them is for the caller to see, who knows what was sent. With ``gradients`` every float
    tensor among the inputs requires one; output tensor k is pulled back from normal numbers of the seed k.
    """
    leaves = [_make_differentiable(value) for value in inputs] if gradients else inputs
    if gradients:  # the function gets copies, for torch lets nobody write into a leaf
        inputs = [each.clone() if isinstance(each, Tensor) and each.requires_grad else each for each in leaves]
    result = function(*inputs, **options)
    if type(result) is CoroutineType:
        result.close()  # or Python warns that nobody awaited it
    with Unseen():
        shares = _shares_memory(result, inputs)
    return Observation(result, tuple(inputs), shares, _compute_input_gradients(result, leaves) if gradients else None)


def make_observation_reply(observation: Observation) -> dict[str, Any]:
    """An observation as it is sent to the judge, with only those inputs that a call can have changed.

    "same" is the place of the input that was returned as the result, None where none was.
    """
    result, inputs = observation.result, observation.inputs
    reply: dict[str, Any] = {
        "inputs": [value if is_a(value, Tensor, dict, nn.Module) else None for value in inputs],
        "same": next((place for place, value in enumerate(inputs) if _is_same_object(value, result)), None),
        "shares": observation.shares,
    }
    if observation.gradients is not None:
        reply["gradients"] = list(observation.gradients)
    # last: a result of too many values, of which some are only named, takes nothing of the others' room
    return {**reply, "result": result}


def draw_cotangent(output: Tensor, seed: int = 0) -> Tensor:
    """Normal numbers of the shape, dtype and device of ``output``, the same in the judge's process."""
    draws = torch.Generator("cpu").manual_seed(seed)  # whatever default dtype and device the call has left behind
    return torch.randn(output.shape, generator=draws, dtype=torch.float32, device="cpu").to(output)


def run_backward(outputs: Sequence[Tensor | None], cotangents: Sequence[Tensor | None]) -> None:
    """Run the backward pass from outputs that require a gradient; the graph stays for another."""
    pairs = zip(outputs, cotangents, strict=True)
    numbers = [sum_weighted(output, each) for output, each in pairs if output is not None and each is not None]
    if numbers:
        torch.autograd.backward(numbers, retain_graph=True)


def sum_weighted(output: Tensor, cotangent: Tensor) -> Tensor:
    """A number whose gradients are those of ``output``, pulled back from ``cotangent``.

    Given a cotangent, torch imports sympy to compare two shapes, and the first check of a kernel would wait for it.
    """
    with torch.enable_grad():
        return (output * cotangent).sum()


def _make_differentiable(value: Any) -> Any:
    if isinstance(value, Tensor) and value.is_floating_point():
        return value.detach().requires_grad_()
    return value


def _compute_input_gradients(result: Any, inputs: Sequence[Any]) -> tuple[Tensor | None, ...]:
    with Unseen():
        outputs = [make_differentiable(each) for each in walk_tensors(result)]
    with torch._C.DisableTorchFunctionSubclass():
        run_backward(
            outputs, [None if each is None else draw_cotangent(each, seed) for seed, each in enumerate(outputs)]
        )
    with Unseen():
        return tuple(gradient(value) if is_a(value, Tensor) else None for value in inputs)


def _is_same_object(value: Any, result: Any) -> bool:
    return value is result and is_a(value, Tensor, nn.Module, dict, list)


def _shares_memory(result: Any, inputs: Sequence[Any]) -> bool:
    """Say whether the result, or a module among the inputs, lies in memory of another input."""
    made = [result, *(value for value in inputs if is_a(value, nn.Module))]
    pairs = [(each, given) for each in made for given in inputs if not (each is given and is_a(each, nn.Module))]
    with contextlib.suppress(Exception):  # a student's tensor may have no memory that can be looked at
        return any(
            not _find_storage_addresses(each).isdisjoint(_find_storage_addresses(given)) for each, given in pairs
        )
    return False


def _find_storage_addresses(value: Any) -> set[int]:
    """Where the numbers of a tensor, a module, a dict or a list of tensors lie."""
    held = list(list_parameters_and_buffers(value)) if is_a(value, nn.Module) else value
    return {
        find_address(tensor)
        for tensor in walk_tensors(held)
        if layout(tensor) == torch.strided and not is_meta(tensor) and numel(tensor)
    }


MOST_NUMBERS = 1 << 20  # of one tensor that is kept; those of the checks have some thousands


def observe_parts(
    module: nn.Module,
    names: Iterable[str],
    inputs: Sequence[Any],
    options: Mapping[str, Any],
    called: Callable[..., Any] | None = None,
) -> dict[str, Tensor]:
    """Run ``module`` and keep the first tensor that enters and that leaves each part.

    Args:
        module: what is run.
        names: of its submodules, as ``named_modules`` has them; a submodule that is missing or not called is left out.
        inputs: of forward.
        options: of forward, by name.
        called: the module as it is to be called: watched, say.

    Returns:
        "norm1:in" and "norm1:out" → copies of what entered and left ``norm1`` at its first call, in that order.
    """
    found: dict[str, Tensor] = {}
    parts = dict(module.named_modules())
    handles = []
    try:
        for name in names:
            if name in parts:
                handles.append(parts[name].register_forward_pre_hook(_make_input_hook(found, name), with_kwargs=True))
                handles.append(parts[name].register_forward_hook(_make_output_hook(found, name)))
        (called or module)(*inputs, **options)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _make_input_hook(kept: dict[str, Tensor], name: str) -> Callable[..., None]:
    def keep_inputs(_: nn.Module, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        _keep_first_tensor(kept, f"{name}:in", (*inputs, *options.values()))

    return keep_inputs


def _make_output_hook(kept: dict[str, Tensor], name: str) -> Callable[..., None]:
    def keep_output(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        _keep_first_tensor(kept, f"{name}:out", output if is_a(output, tuple) else (output,))

    return keep_output


def _keep_first_tensor(kept: dict[str, Tensor], key: str, values: Sequence[Any]) -> None:
    with contextlib.suppress(Exception), Unseen():  # a student's tensor may be odd
        first = next((each for each in values if is_a(each, Tensor)), None)
        if first is not None and key not in kept and numel(first) <= MOST_NUMBERS:
            kept[key] = copy(first)
