"""What calls leave behind: in results of earlier calls that are still in use, in torch's settings, in modules' modes.

This runs beside a student's code, imports nothing of the package but another practice, holds no answer, and judges
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.practice_devices import tensors_in


def in_a_row(function: Callable[..., Any], inputs: Sequence[Any], others: Sequence[Any]) -> dict[str, Any]:
    """Call the function with ``inputs`` and with ``others``, overwrite its first result, and call it as at first.

    Returns:
        Lists of tensors: "first", the first result at once; "kept", the same after the second call; "again", the last
        result. "settings", torch's settings that the calls have changed.
    """
    before = _settings()
    given = function(*_copied(inputs))
    first = _copied(list(tensors_in(given)))
    function(*_copied(others))
    kept = _copied(list(tensors_in(given)))
    for each in tensors_in(given):
        with torch.no_grad(), suppress(RuntimeError):  # an expanded tensor cannot be written to
            each.fill_(3)
    again = _copied(list(tensors_in(function(*_copied(inputs)))))
    changed = [name for name, value in _settings().items() if value != before[name]]
    return {"first": first, "kept": kept, "again": again, "settings": changed}


def _settings() -> dict[str, Any]:
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "the recording of gradients": torch.is_grad_enabled(),
        "the use of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return type(value)(map(_copied, value)) if type(value) in (list, tuple) else value


def modes(function: Callable[..., Any], arguments: Sequence[Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """Make a module by ``function(*arguments)`` and call it with ``inputs``, in training mode and in evaluation mode.

    Returns:
        "changed", the names of the parts that forward puts into another mode, "" for the module itself.
    """
    module = function(*arguments)
    changed: dict[str, None] = {}
    for training in (True, False):
        module.train(training)
        module(*_copied(inputs))
        changed |= dict.fromkeys(name for name, part in module.named_modules() if part.training is not training)
    return {"changed": list(changed)}


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {"in_a_row": in_a_row, "modes": modes}
