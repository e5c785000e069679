"""Training fixtures of lesson 10: branches that are dropped, and patches that are hidden.

They run beside a student's code, in a kernel or in a judge's worker. They take and return plain values and tensors,
hold no answer and judge nothing. Of the package they import the notes on chance and the other device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.training_fixtures import DEVICE, OtherDevice, call_on_other_device
from vit_course.exercises.training_fixtures import chance, refusal


def dropping(
    made: Callable[..., Any],
    probability: float,
    branch: Tensor,
    training: bool = True,
    calls: int = 1,
    global_seed: int = 0,
    recording: bool = True,
) -> dict[str, Any]:
    """Make ``module = made(probability)``, put it into a mode, and call it so many times with the branch.

    ``recording``: whether torch records gradients meanwhile.

    The global generator is put back.

    Returns:
        "returned": the result of each call.
        "changed": whether a call changed the branch.
        "parameters": their names.
        "modes": whether a call changed the module's mode.
    """
    kept = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(global_seed)
        module = made(probability)
        module.train(training)
        given = branch.clone()
        returned = []
        for _ in range(calls):
            with torch.set_grad_enabled(recording):
                result = module(given)
            returned.append(result.clone() if isinstance(result, Tensor) else result)
        is_changed = not torch.equal(given, branch)
        names = [name for name, _ in module.named_parameters()]
    finally:
        torch.set_rng_state(kept)
    return {
        "returned": returned,
        "changed": is_changed,
        "parameters": names,
        "modes": any(each.training != training for each in module.modules()),
    }


def dropping_gradients(
    made: Callable[..., Any], probability: float, branch: Tensor, global_seed: int
) -> dict[str, Any]:
    """Make a module in training mode, call it once, and add up what it gives. The global generator is put back.

    Returns:
        "returned": what the call gave.
        "gradient" of the branch, zeros where none came.
    """
    kept = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(global_seed)
        module = made(probability)
        module.train()
        leaf = branch.clone().requires_grad_()
        result = module(leaf)
        if result.requires_grad:
            result.sum().backward()
    finally:
        torch.set_rng_state(kept)
    gradient = torch.zeros_like(branch) if leaf.grad is None else leaf.grad
    return {"returned": result.detach(), "gradient": gradient}


def masking(
    function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int, calls: int = 1
) -> dict[str, Any]:
    """Call ``function(tokens, mask_ratio, generator)`` so many times, with one generator.

    Returns:
        "returned": a list with the result of each call.
        "changed": whether a call changed the tokens.
    """
    generator, given = torch.Generator().manual_seed(seed), tokens.clone()
    returned = [function(given, mask_ratio, generator) for _ in range(calls)]
    return {"returned": returned, "changed": not torch.equal(given, tokens)}


def masking_by_chance(
    function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int, global_seed: int
) -> dict[str, Any]:
    """Return what :func:`~vit_course.exercises.training_fixtures.chance` notes of one call."""
    return chance(function, [tokens, mask_ratio, torch.Generator().manual_seed(seed)], global_seed)


def masking_refused(function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int) -> dict[str, Any]:
    """Return what :func:`~vit_course.exercises.training_fixtures.refusal` notes of one call."""
    return refusal(function, tokens, mask_ratio, torch.Generator().manual_seed(seed))


class _PlacesKnown(OtherDevice):
    """Another device on which masks pick as many places as they should, for there they have no numbers to tell it."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self._share = share

    def __torch_dispatch__(self, operator: Any, types: Any, inputs: Any = (), options: Any = None) -> Any:
        packet = getattr(operator, "overloadpacket", operator)
        if packet is torch.ops.aten.nonzero and inputs[0].device.type == DEVICE:
            return torch.stack(self._make_places_of_mask(inputs[0]), dim=1)
        if packet is torch.ops.aten.masked_select and all(each.device.type == DEVICE for each in inputs):
            return inputs[0].new_empty(len(self._make_places_of_mask(torch.broadcast_tensors(*inputs)[1])[0]))
        if packet is torch.ops.aten.index and inputs[0].device.type == DEVICE:
            by_places = [self._replace_mask_by_places(each) for each in inputs[1]]
            inputs = (inputs[0], [place for each in by_places for place in each])
        return super().__torch_dispatch__(operator, types, inputs, options)

    def _replace_mask_by_places(self, index: Tensor | None) -> list[Tensor | None]:
        is_mask = index is not None and index.dtype == torch.bool and index.device.type == DEVICE
        return list(self._make_places_of_mask(index)) if index is not None and is_mask else [index]

    def _make_places_of_mask(self, mask: Tensor) -> tuple[Tensor, ...]:
        """For each axis of a mask the places that it picks."""
        count = round(self._share * mask.numel())
        return tuple(torch.empty(count, dtype=torch.int64, device=DEVICE) for _ in mask.shape)


def masking_elsewhere(function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int) -> dict[str, Any]:
    """Call it with tokens on another device; what :func:`device` notes of it."""
    num_patches = tokens.shape[1]
    share = 1 - round(mask_ratio * num_patches) / num_patches
    inputs = [tokens, mask_ratio, torch.Generator().manual_seed(seed)]
    return call_on_other_device(function, inputs, there=_PlacesKnown(share))


def masking_gradients(function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int) -> dict[str, Any]:
    """Call it once, and add up what it leaves of the tokens.

    Returns:
        "mask"; "gradient" of the tokens, zeros where none came.
    """
    leaf = tokens.clone().requires_grad_()
    visible, mask = function(leaf, mask_ratio, torch.Generator().manual_seed(seed))
    if visible.requires_grad:
        visible.sum().backward()
    return {"mask": mask, "gradient": torch.zeros_like(tokens) if leaf.grad is None else leaf.grad}


FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {
    "dropping": dropping,
    "dropping_gradients": dropping_gradients,
    "masking": masking,
    "masking_by_chance": masking_by_chance,
    "masking_refused": masking_refused,
    "masking_gradients": masking_gradients,
    "masking_elsewhere": masking_elsewhere,
}
