"""Training fixtures of lesson 09: a small model with a head, batches, features.

They run beside a student's code, in a kernel or in a judge's worker. They take and return plain values and tensors,
hold no answer and judge nothing. Of the package they import the small models and the other device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.training_fixtures import (
    DEVICE,
    Calls,
    OtherDevice,
    TwoDevicesError,
    call_on_other_device,
    describe_device_exception,
)
from vit_course.config import ViTConfig
from vit_course.exercises.inside_fixtures import Left, SmallViT, Weights, switch_modes_of_parts
from vit_course.exercises.training_fixtures import Batch, SmallLoader, build_model_of_parts

_NOTHING = torch.empty(0)


def rehead(
    function: Callable[..., Any],
    weights: Weights,
    config: ViTConfig,
    num_classes: int,
    training: bool = False,
    frozen: Sequence[str] = (),
    bias: bool = True,
) -> dict[str, Any]:
    """Call ``function(model, num_classes)`` with a :class:`SmallViT`, and look at the result, and at the model.

    Without ``bias`` the model's head has none.

    Returns:
        "kind": of the result.
        "itself": whether the result is the model itself.
        "same class": whether the result is of the model's class.
        "head": its "kind", the "sizes" of its weight and those that it "says", "dtype", "weight" and "bias" (empty
            where there is none).
        "missing", "other", "shared": names of the model's parameters, apart from the head, that the result lacks, has
            with other numbers, or has in the same memory.
        "added": names of parameters that are new.
        "frozen": names of parameters that require no gradient.
        "changed": what has changed in the given model.
    """
    model = SmallViT(weights, config).train(training)
    if not bias:
        model.head.register_parameter("bias", None)
        weights = {name: each for name, each in weights.items() if name != "head.bias"}
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    before = dict(model.named_parameters())
    returned = function(model, num_classes)
    found = dict(returned.named_parameters()) if isinstance(returned, nn.Module) else {}
    body = [name for name in weights if not name.startswith("head.")]
    return {
        "kind": type(returned).__name__ if not isinstance(returned, nn.Module) else "module",
        "itself": returned is model,
        "same class": type(returned) is type(model),
        "head": _describe_head(getattr(returned, "head", None)),
        "missing": [name for name in body if name not in found],
        "other": [name for name in body if name in found and not _is_same_up_to_dtype(found[name], weights[name])],
        "shared": [name for name in body if name in found and found[name].data_ptr() == before[name].data_ptr()],
        "added": [name for name in found if name not in weights],
        "frozen": [name for name, each in found.items() if not each.requires_grad],
        "changed": _list_changes_of_model(model, weights, config, training, frozen),
    }


def _describe_head(head: Any) -> dict[str, Any]:
    if not isinstance(head, nn.Linear):
        return {"kind": type(head).__name__, "sizes": [], "says": [], "dtype": "", "weight": _NOTHING, "bias": _NOTHING}
    return {
        "kind": "Linear",
        "sizes": list(head.weight.shape)[::-1],
        "says": [head.in_features, head.out_features],
        "bias": _NOTHING if head.bias is None else head.bias.detach().clone(),
        "dtype": str(head.weight.dtype).removeprefix("torch."),
        "weight": head.weight.detach().clone(),
    }


def _is_same_up_to_dtype(found: Tensor, given: Tensor) -> bool:
    return found.shape == given.shape and bool(torch.equal(found.detach().to(given.dtype), given))


def _list_changes_of_model(
    model: SmallViT, weights: Weights, config: ViTConfig, training: bool, frozen: Sequence[str]
) -> list[str]:
    found = dict(model.named_parameters())
    changed = [name for name in weights if name not in found or not _is_same_up_to_dtype(found[name], weights[name])]
    changed += [
        f"the mode of {name or 'the model'}" for name, each in model.named_modules() if each.training != training
    ]
    changed += [f"whether {name} learns" for name, each in found.items() if each.requires_grad == (name in frozen)]
    return changed


def rehead_elsewhere(
    function: Callable[..., Any], weights: Weights, config: ViTConfig, num_classes: int
) -> dict[str, Any]:
    """Call it with a model on another device; what :func:`device` notes of the parameters of the result."""

    def call_and_list_parameters(model: nn.Module, num_classes: int) -> list[Tensor]:
        return [each.detach() for each in function(model, num_classes).parameters()]

    return call_on_other_device(call_and_list_parameters, [SmallViT(weights, config), num_classes])


def featuring(
    function: Callable[..., Any],
    weights: Weights,
    config: ViTConfig,
    batches: Sequence[Batch],
    training: bool = False,
    frozen: Sequence[str] = (),
    apart: Sequence[str] = (),
) -> dict[str, Any]:
    """Call ``function(model, loader, "cpu")`` with a :class:`SmallViT`; the parts ``apart`` are in the other mode.

    Returns:
        "returned": the result.
        "graph": whether its tensors have a graph.
        "modes": names of parts whose mode has changed.
        "hooks", "replaced": whether a part has a hook; or a forward that is not its class's.
        "head": whether the head is the same as before.
        "frozen": names of parameters that require no gradient.
        "gradients": names of parameters that have a gradient.
        "recording": whether torch still records gradients.
        "passes": how often the loader was gone through.
    """
    model, loader = SmallViT(weights, config).train(training), SmallLoader(batches)
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    switch_modes_of_parts(model, apart)
    left, head = Left(model, weights), model.head
    returned = function(model, loader, torch.device("cpu"))
    behind = left.list_what_is_left()
    tensors = [each for each in returned if isinstance(each, Tensor)] if isinstance(returned, list | tuple) else []
    return {
        "returned": returned,
        "graph": any(each.requires_grad for each in tensors),
        "modes": behind["modes"],
        "hooks": bool(behind["hooks"]),
        "replaced": bool(behind["replaced"]),
        "head": model.head is head,
        "frozen": [name for name, each in model.named_parameters() if not each.requires_grad],
        "gradients": [name for name, each in model.named_parameters() if each.grad is not None],
        "recording": torch.is_grad_enabled(),
        "passes": loader.passes,
    }


def featuring_stopped(
    function: Callable[..., Any], weights: Weights, config: ViTConfig, batches: Sequence[Batch]
) -> dict[str, Any]:
    """Call it with a model in training mode, and with batches one of which stops the model.

    Returns:
        "modes", "hooks", "replaced", "frozen": names of parts and parameters that differ from before.
        "head": whether the head is the same as before.
        "recording": whether torch still records gradients.
    """
    model = SmallViT(weights, config).train()
    left, head = Left(model, weights), model.head
    with suppress(Exception):
        function(model, SmallLoader(batches), torch.device("cpu"))
    behind = left.list_what_is_left()
    notes: dict[str, Any] = {name: behind[name] for name in ("modes", "hooks", "replaced", "frozen")}
    return {**notes, "head": model.head is head, "recording": torch.is_grad_enabled()}


def featuring_elsewhere(
    function: Callable[..., Any], weights: Weights, config: ViTConfig, batches: Sequence[Batch]
) -> dict[str, Any]:
    """Call it with images on the CPU, labels and a model on another device; what is copied to the CPU arrives as zeros.

    Returns:
        "raised": the name of the exception's class; "" where there was none.
        "mixed": whether tensors of two devices met.
        "read": whether it was raised for want of numbers.
        "devices": the kind of device of each tensor in the result.
    """
    model, there, here = SmallViT(weights, config).to(DEVICE), OtherDevice(), Calls()
    calls = Calls(there)
    try:
        with suppress(Exception), here:
            function(SmallViT(weights, config), SmallLoader(batches), torch.device("cpu"))
        there_too = [(images, labels.to(DEVICE)) for images, labels in batches]
        with calls, there:
            returned = function(model, SmallLoader(there_too), torch.device(DEVICE))
    except Exception as error:
        return describe_device_exception(error, there, calls, here) | {
            "mixed": there.refused or isinstance(error, TwoDevicesError)
        }
    tensors = [each for each in returned if isinstance(each, Tensor)] if isinstance(returned, list | tuple) else []
    return {"raised": "", "mixed": False, "read": False, "devices": [each.device.type for each in tensors]}


def probing(
    function: Callable[..., Any],
    features: Tensor,
    labels: Tensor,
    num_classes: int,
    weight_decay: float | None = None,
) -> dict[str, Any]:
    """Call ``function(features, labels, num_classes)``, or with ``weight_decay`` as its fourth argument.

    Returns:
        "kind": of the result.
        "weight", "bias": of the result; empty where there is none.
        "changed": names of the inputs that the call has changed.
    """
    given = {"features": features.clone(), "labels": labels.clone()}
    options = () if weight_decay is None else (weight_decay,)
    returned = function(*given.values(), num_classes, *options)
    is_linear = isinstance(returned, nn.Linear)
    before = {"features": features, "labels": labels}
    return {
        "kind": "Linear" if is_linear else type(returned).__name__,
        "weight": returned.weight.detach().clone() if is_linear else _NOTHING,
        "bias": returned.bias.detach().clone() if is_linear and returned.bias is not None else _NOTHING,
        "changed": [name for name, each in before.items() if not _is_same_up_to_dtype(given[name], each)],
    }


class _FirstOperators(OtherDevice):
    """The other device, for a while: to minimize takes many operators, and the first tell whether devices are mixed."""

    def __init__(self) -> None:
        super().__init__()
        self._left, self.is_over = 2000, False

    def __torch_dispatch__(self, operator: Any, types: Any, inputs: Any = (), options: Any = None) -> Any:
        self._left -= 1
        if self._left < 0:
            self.is_over = True
            raise RuntimeError("enough was seen")
        return super().__torch_dispatch__(operator, types, inputs, options)


def probing_elsewhere(
    function: Callable[..., Any], features: Tensor, labels: Tensor, num_classes: int
) -> dict[str, Any]:
    """Call it with features and labels on another device; what :func:`device` notes of the first operators."""
    there = _FirstOperators()
    notes = call_on_other_device(function, [features, labels, num_classes], there=there)
    return notes | {"read": notes["read"] or there.is_over}


def rates(
    function: Callable[..., Any],
    parts: Mapping[str, tuple[str, Sequence[int]]],
    backbone_lr: float,
    head_lr: float,
    frozen: Sequence[str] = (),
) -> dict[str, Any]:
    """Call ``function(model, backbone_lr, head_lr)``, which deals a model's parameters out for an optimizer.

    Args:
        parts: as in :func:`~vit_course.exercises.training_fixtures.groups`.
        frozen: names of the parameters that require no gradient.

    Returns:
        "returned": its type's name.
        "groups": for each dict its "keys", "lr", "holder" (the type of its "params") and "names" ("?" and the type's
            name for what is no parameter of the model); None for anything that is no dict.
        "frozen": names of the parameters that require no gradient afterward.
        "lost": names of the parameters that the model has no more.
    """
    model = build_model_of_parts(parts)
    for name in frozen:
        model.get_parameter(name).requires_grad_(False)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    returned = function(model, backbone_lr, head_lr)
    listed = returned if isinstance(returned, list | tuple) else []
    return {
        "returned": type(returned).__name__,
        "groups": [_describe_group(each, names) for each in listed],
        "frozen": [name for name, each in model.named_parameters() if not each.requires_grad],
        "lost": sorted({*names.values()} - {name for name, _ in model.named_parameters()}),
    }


def _describe_group(group: object, names: Mapping[int, str]) -> dict[str, Any] | None:
    if not isinstance(group, dict):
        return None
    params: Any = group.get("params", ())
    held = list(params) if hasattr(params, "__iter__") and not isinstance(params, Tensor) else [params]
    return {
        "keys": [str(key) for key in group],
        "lr": group.get("lr"),
        "holder": type(params).__name__,
        "names": [names.get(id(each), f"? {type(each).__name__}") for each in held],
    }


FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "rehead": rehead,
    "rehead_elsewhere": rehead_elsewhere,
    "featuring": featuring,
    "featuring_stopped": featuring_stopped,
    "featuring_elsewhere": featuring_elsewhere,
    "probing": probing,
    "probing_elsewhere": probing_elsewhere,
    "rates": rates,
}
