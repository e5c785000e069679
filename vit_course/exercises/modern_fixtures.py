"""What lesson 10's chance is tried on: branches that are dropped, and patches that are hidden.

This runs beside a student's code, in a kernel or in a judge's worker. Plain values and tensors go in, the same come
out; it imports the notes on chance of the package, holds no answer, and judges nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vit_course.exercises.training_fixtures import chance


def dropping(
    made: Callable[..., Any],
    probability: float,
    branch: Tensor,
    training: bool = True,
    calls: int = 1,
    global_seed: int = 0,
) -> dict[str, Any]:
    """Make ``module = made(probability)``, put it into a mode, and call it so many times with the branch.

    Returns:
        "returned", what each call gave; "changed", whether a call changed the branch; "parameters", their names;
        "modes", whether a call changed the module's mode. The global generator is put back.
    """
    kept = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(global_seed)
        module = made(probability)
        module.train(training)
        given = branch.clone()
        returned = []
        for _ in range(calls):
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


def masking(
    function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int, calls: int = 1
) -> dict[str, Any]:
    """Call ``function(tokens, mask_ratio, generator)`` so many times, with one generator.

    Returns:
        "returned", a list with what each call gave; "changed", whether a call changed the tokens.
    """
    generator, given = torch.Generator().manual_seed(seed), tokens.clone()
    returned = [function(given, mask_ratio, generator) for _ in range(calls)]
    return {"returned": returned, "changed": not torch.equal(given, tokens)}


def masking_by_chance(
    function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int, global_seed: int
) -> dict[str, Any]:
    """What :func:`~vit_course.exercises.training_fixtures.chance` notes of one call."""
    return chance(function, [tokens, mask_ratio, torch.Generator().manual_seed(seed)], global_seed)


def masking_refused(function: Callable[..., Any], tokens: Tensor, mask_ratio: float, seed: int) -> dict[str, Any]:
    """Call it once.

    Returns:
        "raised", the name of the exception's class, "" where there was none; "is_value_error"; "words", its text.
    """
    try:
        function(tokens, mask_ratio, torch.Generator().manual_seed(seed))
    except Exception as error:
        is_value_error = isinstance(error, ValueError)
        return {"raised": type(error).__name__, "is_value_error": is_value_error, "words": str(error)[:500]}
    return {"raised": "", "is_value_error": False, "words": ""}


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


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {
    "dropping": dropping,
    "masking": masking,
    "masking_by_chance": masking_by_chance,
    "masking_refused": masking_refused,
    "masking_gradients": masking_gradients,
}
