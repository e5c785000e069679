"""What enters and leaves the named parts of a module while it runs, to tell where its numbers go wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

MOST_NUMBERS = 1 << 20  # of one tensor that is kept; those of the checks have some thousands


def observe_parts(
    module: nn.Module, names: Iterable[str], inputs: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Tensor]:
    """Run ``module`` and keep the first tensor that enters and that leaves each part.

    Args:
        module: what is run.
        names: of its submodules, as ``named_modules`` has them; one that it does not have, or does not call, is left
            out.
        inputs: of forward.
        options: of forward, by name.

    Returns:
        "norm1:in" and "norm1:out" → a copy of what entered and of what left ``norm1`` when it was called first, in
        the order in which that happened.
    """
    found: dict[str, Tensor] = {}
    parts = dict(module.named_modules())
    handles = []
    try:
        for name in names:
            if name in parts:
                handles.append(parts[name].register_forward_pre_hook(_entering(found, name), with_kwargs=True))
                handles.append(parts[name].register_forward_hook(_leaving(found, name)))
        module(*inputs, **options)
    finally:
        for handle in handles:
            handle.remove()
    return found


def _entering(found: dict[str, Tensor], name: str) -> Callable[..., None]:
    def hook(_: nn.Module, inputs: tuple[Any, ...], options: Mapping[str, Any]) -> None:
        _keep(found, f"{name}:in", (*inputs, *options.values()))

    return hook


def _leaving(found: dict[str, Tensor], name: str) -> Callable[..., None]:
    def hook(_: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        _keep(found, f"{name}:out", output if isinstance(output, tuple) else (output,))

    return hook


def _keep(found: dict[str, Tensor], key: str, values: Sequence[Any]) -> None:
    with contextlib.suppress(Exception), torch._C.DisableTorchFunctionSubclass():  # a student's tensor may be odd
        first = next((each for each in values if isinstance(each, Tensor)), None)
        if first is not None and key not in found and first.numel() <= MOST_NUMBERS:
            found[key] = first.detach().clone()
