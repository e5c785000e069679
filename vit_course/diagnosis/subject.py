"""The model that is asked: a copy with generic numbers, so that the caller's own stays as it is."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from vit_course.diagnosis.answers import NotAsked
from vit_course.diagnosis.watch import Edit, Watch

_SPREAD = 0.2  # of weights that start larger: huge ones drive every softmax into a corner, where nothing has a gradient
_LEAST = 0.02  # by how much a parameter is moved that starts at one number


@contextmanager
def preserve_global_state() -> Iterator[None]:
    """Random states, gradient mode and the fast path of ``nn.TransformerEncoder`` are afterward as they were before."""
    ours, theirs = random.getstate(), np.random.get_state()
    fast = torch.backends.mha.get_fastpath_enabled()
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with warnings.catch_warnings(action="ignore"), torch.random.fork_rng(devices), torch.enable_grad():
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            random.setstate(ours)
            np.random.set_state(theirs)


def copy_model(model: nn.Module) -> nn.Module:
    """A copy that shares nothing; one that torch compiled is opened, and what an earlier pass left in it is let go."""
    model = getattr(model, "_orig_mod", model)
    held = [each for module in model.modules() for value in vars(module).values() for each in _list_members(value)]
    memo: dict[int, Any] = {
        id(each): each.detach().clone() for each in held if isinstance(each, Tensor) and not each.is_leaf
    }
    try:
        made = copy.deepcopy(model, dict(memo))
    except TypeError:  # something that cannot be copied, such as a lock: both hold the same
        made = copy.deepcopy(model, memo | {id(each): each for each in held if not _can_be_copied(each)})
    remove_callers_hooks(made)
    return made


def remove_callers_hooks(model: nn.Module) -> None:
    """Take the caller's hooks off a copy: they see nothing of what is done with it."""
    for module in model.modules():
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks):
            for key in [key for key, hook in hooks.items() if not type(hook).__module__.startswith("torch.")]:
                del hooks[key]


def _list_members(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list | tuple) else [value]


def _can_be_copied(value: Any) -> bool:
    if isinstance(value, nn.Module | Tensor | str | int | float | bool | None):
        return True
    try:
        copy.deepcopy(value)
    except Exception:
        return False
    return True


def copy_with_perturbed_parameters(model: nn.Module) -> nn.Module:
    """A copy in which no parameter is 0, 1 or equal to another, so that each can be seen at work."""
    made = copy_model(model).float().eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for each in made.parameters():
            if not each.is_floating_point():
                continue
            spread = each.std().item() if each.numel() > 1 else 0.0
            if spread > 0.5 and each.ndim > 1:
                each.mul_(_SPREAD / spread)
            amount = max(_LEAST, 0.3 * min(0.5, spread if spread == spread else 0.0))
            each.add_((torch.randn(each.shape, generator=generator) * amount).to(each.device))
    return made


def find_logits(output: Any) -> Tensor:
    """The logits among what a model gives: a tensor, the ``.logits`` of an object, or the one in a tuple or a dict.

    Raises:
        NotAsked: there are none.
    """
    if isinstance(output, Tensor):
        return output
    if isinstance(getattr(output, "logits", None), Tensor):
        return output.logits
    if isinstance(output, Mapping):
        if isinstance(output.get("logits"), Tensor):
            return output["logits"]
        output = [each for each in output.values() if isinstance(each, Tensor) and each.ndim == 2][-1:]
    found = [each for each in output if isinstance(each, Tensor)] if isinstance(output, tuple | list) else []
    if not found:
        raise NotAsked(f"the model gives {type(output).__name__}, in which there is no tensor of logits")
    return found[0]


class Subject:
    """A copy of a model, and the images that it is asked with.

    Attributes: ``model`` with generic numbers, in evaluation; ``start``, as the caller's, in evaluation; ``images``
    (n, channels, height, width), float32.
    """

    def __init__(self, model: nn.Module, images: Tensor) -> None:
        self.original = model
        self.images = images.detach().clone().float()
        self.model, self.start = copy_with_perturbed_parameters(model), copy_model(model).float().eval()

    def run(self, images: Tensor, model: nn.Module | None = None) -> Tensor:
        """Logits, always from the same random state, so that a model with dropout in evaluation can be asked, too."""
        torch.manual_seed(3)
        return find_logits((model or self.model)(images.clone()))

    def watch(
        self, images: Tensor, edits: dict[int, Edit] | None = None, model: nn.Module | None = None
    ) -> tuple[Watch, Tensor]:
        """One pass under watch: what happened, and the logits."""
        model = model or self.model
        modules: list[str] = []
        hooks = []
        for name, module in model.named_modules():
            if isinstance(module, torch.jit.ScriptModule):
                continue  # shows nothing of its inside
            hooks.append(module.register_forward_pre_hook(lambda *_, name=name: modules.append(name)))
            hooks.append(module.register_forward_hook(lambda *_: [modules.pop()][1:] or None, always_call=True))
        watch = Watch(images, edits, modules)
        try:
            torch.manual_seed(3)
            with watch:
                logits = find_logits(model(images))
        finally:
            for hook in hooks:
                hook.remove()
        return watch, logits
