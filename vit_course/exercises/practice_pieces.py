"""What the smaller pieces of a training recipe are practised on: see :mod:`vit_course.exercises.practice`.

This too runs beside a student's code, imports nothing else of the package, holds no answer, and judges nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

_PARTS: dict[str, Callable[..., nn.Module | nn.Parameter]] = {
    "Linear": nn.Linear,
    "Conv2d": nn.Conv2d,
    "LayerNorm": nn.LayerNorm,
    "Parameter": lambda *size: nn.Parameter(torch.zeros(size)),
}


def groups(
    function: Callable[..., Any],
    parts: Mapping[str, tuple[str, Sequence[int]]],
    weight_decay: float,
    frozen: Sequence[str] = (),
    tied: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Call ``function(model, weight_decay)``, which sorts the parameters of a model for an optimiser.

    Args:
        parts: of the model, by their dotted names: a kind (a key of ``_PARTS``) and what makes one.
        frozen: names of the parameters that ask for no gradient.
        tied: part → another part, whose weight is its own too.

    Returns:
        "returned", its type's name; "groups", for each dict "keys", "weight_decay", "holder" (the type of its
        "params") and "names" (for what is no parameter of the model "?" and its type's name); None in the place of
        anything else; "frozen", names of the parameters that ask for no gradient afterwards.
    """
    model = nn.Module()
    for name, (kind, sizes) in parts.items():
        _place(model, name.split("."), _PARTS[kind](*sizes))
    for name, other in (tied or {}).items():
        model.get_submodule(name).weight = model.get_submodule(other).weight
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    returned = function(model, weight_decay)
    listed = returned if isinstance(returned, list | tuple) else []
    return {
        "returned": type(returned).__name__,
        "groups": [_group(each, names) for each in listed],
        "frozen": [name for name, each in model.named_parameters() if not each.requires_grad],
    }


def _place(home: nn.Module, path: list[str], part: nn.Module | nn.Parameter) -> None:
    for name in path[:-1]:
        if not hasattr(home, name):
            home.add_module(name, nn.Module())
        home = home.get_submodule(name)
    setattr(home, path[-1], part)


def _group(group: object, names: Mapping[int, str]) -> dict[str, Any] | None:
    if not isinstance(group, dict):
        return None
    params: Any = group.get("params", ())
    held = list(params) if hasattr(params, "__iter__") and not isinstance(params, Tensor) else [params]
    return {
        "keys": [str(key) for key in group],
        "weight_decay": group.get("weight_decay"),
        "holder": type(params).__name__,
        "names": [names.get(id(each), f"? {type(each).__name__}") for each in held],
    }


def stopping(
    kind: Callable[..., Any], patience: int, losses: Sequence[float], beside: Sequence[float] = ()
) -> dict[str, Any]:
    """Make ``kind(patience)`` and tell its ``step`` one loss after the other.

    Args:
        beside: losses that a second one of another patience is told in turn with the first, if any are given.

    Returns:
        "answers", what step gave; "best" and "bad_epochs", these attributes before the first loss and after each;
        "patience", that attribute in the end. An attribute that is not there is "missing".
    """
    stopper = kind(patience)
    other = kind(patience + 2) if beside else None
    answers, seen = [], [_attributes(stopper)]
    for number, loss in enumerate(losses):
        if other is not None and number < len(beside):
            other.step(beside[number])
        answers.append(stopper.step(loss))
        seen.append(_attributes(stopper))
    best, bad_epochs, patiences = map(list, zip(*seen, strict=True))
    return {"answers": answers, "best": best, "bad_epochs": bad_epochs, "patience": patiences[-1]}


def _attributes(stopper: object) -> list[Any]:
    return [getattr(stopper, name, "missing") for name in ("best", "bad_epochs", "patience")]


def chance(function: Callable[..., Any], inputs: Sequence[Any], global_seed: int = 0) -> dict[str, Any]:
    """Call ``function(*inputs)`` with the global random generators at a seed, and see which of them it moves.

    Returns:
        "returned", arrays as tensors and ranges as lists; "kinds", of its parts the dtype of a tensor, or the type's
        name; "touched", of "torch", "numpy" and "random" those that the call moved. They are put back.
    """
    kept = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        torch.default_generator.manual_seed(global_seed)
        np.random.seed(global_seed)
        random.seed(global_seed)
        torch.rand(77), np.random.random(77), random.randbytes(77)  # or to seed them anew would change nothing
        before = _generators()
        returned = function(*inputs)
        moved = [name for name, state in _generators().items() if state != before[name]]
    finally:
        torch.set_rng_state(kept[0])
        np.random.set_state(kept[1])
        random.setstate(kept[2])
    kinds = [_kind(each) for each in returned] if isinstance(returned, list | tuple) else []
    return {"returned": _sendable(returned), "kinds": kinds, "touched": moved}


def _kind(part: Any) -> str:
    return str(part.dtype).removeprefix("torch.") if isinstance(part, Tensor) else type(part).__name__


def _generators() -> dict[str, Any]:
    numpy = np.random.get_state(legacy=False)["state"]
    return {
        "torch": torch.get_rng_state().tolist(),
        "numpy": (numpy["key"].tolist(), numpy["pos"]),
        "random": random.getstate(),
    }


def _sendable(value: Any) -> Any:
    if type(value) in (list, tuple):
        return type(value)(list(each) if isinstance(each, range) else _array_as_tensor(each) for each in value)
    return _array_as_tensor(value)


def _array_as_tensor(value: Any) -> Any:
    is_array = isinstance(value, np.ndarray) and value.dtype != object
    return torch.from_numpy(value.copy()) if is_array else value


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {"groups": groups, "stopping": stopping, "chance": chance}
