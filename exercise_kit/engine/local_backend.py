"""Calls of a student's code in this process: copies go in, and all that can be observed of the call comes out.

A judge that runs the student's code elsewhere answers with the same :class:`CallResult`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from exercise_kit.engine.course import course
from exercise_kit.engine.errors import Raised, describe_exception
from exercise_kit.engine.printed import watch_printing
from exercise_kit.engine.probes import keep_settings
from exercise_kit.engine.training_fixtures import add_fixtures, get_fixture
from exercise_kit.engine.watchdog import TimeIsUpError, watch_call
from exercise_kit.worker.observe import observe, observe_parts, run_backward
from exercise_kit.worker.real_types import is_a, read_attributes
from exercise_kit.worker.torch_internals import Unseen

NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True)
class CallResult:
    """The result of one call.

    Attributes:
        result: what was returned.
        raised: the exception, where nothing was returned.
        inputs: what the call was given, with models and dicts as they are after the call.
        changed: the indexes of the input tensors that the call has changed.
        shares: whether the result has memory in common with an input.
        gradients: of the inputs, where they were requested.
        module: where one was built.
    """

    result: Any = None
    raised: Raised | None = None
    inputs: tuple[Any, ...] = ()
    changed: tuple[int, ...] = ()
    shares: bool = False
    gradients: tuple[Tensor | None, ...] = ()
    module: ModuleBackend | None = None


class ModuleBackend(Protocol):
    """A module that a student's class has built, wherever it is; each method documents the answer's ``result``."""

    def forward(self, inputs: tuple[Any, ...], options: Mapping[str, Any], gradients: bool = False) -> CallResult:
        """The module's own result, with the gradients of float tensors among ``inputs``."""

    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """dict: "norm1:in", "norm1:out" → what enters and leaves the parts of these names in one more forward."""

    def backward(self, output: Tensor, cotangent: Tensor) -> CallResult:
        """dict: name of every parameter → its gradient, or None."""

    def parameter_info(self) -> CallResult:
        """dict: name of every parameter and buffer → (its shape, None while it waits for one; is a parameter)."""

    def tensors(self) -> CallResult:
        """dict: name of every parameter and buffer → a copy."""

    def load(self, weights: Mapping[str, Tensor]) -> CallResult:
        """None; the parameters have the values of ``weights``."""

    def set(self, state: torch.dtype | torch.device | bool) -> CallResult:
        """None; the module has another dtype, is on another device, or trains (True) or not (False)."""


class Backend(Protocol):
    """The functions and classes that a student wrote, wherever they are."""

    def call(self, name: str, inputs: tuple[Any, ...], gradients: bool = False) -> CallResult:
        """Call the function ``name`` with copies of ``inputs``, for the gradients of float tensors among them too."""

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """The ``module`` that the class ``name`` makes, or the ``result`` that it gives instead."""

    def run_fixture(self, name: str, fixture: str, fields: Mapping[str, Any]) -> CallResult:
        """dict: what the training fixture notes of the function or class ``name``, given its ``fields``."""


class Watch(Protocol):
    """What stands around each call; :class:`~exercise_kit.engine.call_trace.Watch` notes what an answer calls."""

    def session(self) -> AbstractContextManager[None]:
        """Around a call, and all that is read of its result."""

    def wrap(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """In the place of the student's function itself."""


class LocalBackend:
    """Objects of this process by name.

    Args:
        objects: name → function or class.
        watch: notes what they call, until their results can be read without running anything of theirs.
    """

    def __init__(self, objects: Mapping[str, Any], watch: Watch | None = None) -> None:
        self._objects = dict(objects)
        self._watch = watch

    def call(self, name: str, inputs: tuple[Any, ...], gradients: bool = False) -> CallResult:
        """See :class:`Backend`."""
        return _call_on_copies(self._watch, self._objects[name], inputs, NO_OPTIONS, gradients)

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """See :class:`Backend`."""
        answer = _call_on_copies(self._watch, self._objects[name], arguments, options)
        if not is_a(answer.result, nn.Module):
            return answer
        module = read_attributes(answer.result)["_modules"].get(
            "_orig_mod", answer.result
        )  # torch.compile keeps it there
        return replace(answer, result=None, module=LocalModule(module, self._watch))

    def run_fixture(self, name: str, fixture: str, fields: Mapping[str, Any]) -> CallResult:
        """See :class:`Backend`."""
        add_fixtures(course().training_fixtures)
        held = self._objects[name]
        given = held if inspect.isclass(held) else _wrap_if_watched(self._watch, held)
        return CallResult(*_call_and_catch(self._watch, get_fixture(fixture), (given,), fields))


class LocalModule:
    """A module of this process."""

    def __init__(self, module: nn.Module, watch: Watch | None = None) -> None:
        self.module = module
        self._watch = watch

    def forward(self, inputs: tuple[Any, ...], options: Mapping[str, Any], gradients: bool = False) -> CallResult:
        """See :class:`ModuleBackend`."""
        return _call_on_copies(self._watch, self.module, inputs, options, gradients)

    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """See :class:`ModuleBackend`."""
        given = tuple(copy.deepcopy(each) for each in inputs)
        called = _wrap_if_watched(self._watch, self.module)
        return CallResult(*_call_and_catch(self._watch, observe_parts, (self.module, names, given, options, called)))

    def backward(self, output: Tensor, cotangent: Tensor) -> CallResult:
        """See :class:`ModuleBackend`."""
        self.module.zero_grad(set_to_none=True)
        if not output.requires_grad:
            return CallResult(dict.fromkeys(self._parameters()))
        _, error = _call_and_catch(self._watch, run_backward, ([output], [cotangent]))
        return CallResult({name: each.grad for name, each in self._parameters().items()}, error)

    def _parameters(self) -> dict[str, nn.Parameter]:
        """By name; one that has two names under both."""
        return dict(self.module.named_parameters(remove_duplicate=False))

    def parameter_info(self) -> CallResult:
        """See :class:`ModuleBackend`."""
        return CallResult(*_call_and_catch(self._watch, self._parameter_info, ()))

    def _parameter_info(self) -> dict[str, tuple[tuple[int, ...] | None, bool]]:
        tensors = self.module.state_dict(keep_vars=True)
        return {
            name: (None if nn.parameter.is_lazy(each) else tuple(each.shape), isinstance(each, nn.Parameter))
            for name, each in tensors.items()
        }

    def tensors(self) -> CallResult:
        """See :class:`ModuleBackend`."""
        state, error = _call_and_catch(self._watch, self.module.state_dict, ())
        return CallResult({name: each.detach().clone() for name, each in (state or {}).items()}, error)

    def load(self, weights: Mapping[str, Tensor]) -> CallResult:
        """See :class:`ModuleBackend`."""
        held = self.module.state_dict(keep_vars=True)
        return CallResult(raised=_call_and_catch(self._watch, _copy_weights_into, (held, weights))[1])

    def set(self, state: torch.dtype | torch.device | bool) -> CallResult:
        """See :class:`ModuleBackend`."""
        change = self.module.train if isinstance(state, bool) else self.module.to
        return CallResult(raised=_call_and_catch(self._watch, change, (state,))[1])


def _hide_from_observers(function: Callable[..., Any]) -> Callable[..., Any]:
    """A check's own function, for a student's to call: no observer sees what runs in it, so that none slows it down."""

    @functools.wraps(function)
    def call_unobserved(*inputs: Any, **options: Any) -> Any:
        profile = sys.getprofile()
        sys.setprofile(None)
        try:
            with Unseen():
                return function(*inputs, **options)
        finally:
            sys.setprofile(profile)

    return call_unobserved


def _wrap_if_watched(watch: Watch | None, function: Callable[..., Any]) -> Callable[..., Any]:
    return watch.wrap(function) if watch else function


def _copy_weights_into(parameters: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in weights.items():
            parameters[name].copy_(tensor)


def _call_on_copies(
    watch: Watch | None,
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    options: Mapping[str, Any],
    gradients: bool = False,
) -> CallResult:
    given = tuple(
        _hide_from_observers(each) if watch and inspect.isfunction(each) else copy.deepcopy(each) for each in inputs
    )
    seen, error = _call_and_catch(watch, observe, (_wrap_if_watched(watch, function), given, options, gradients))
    if seen is None:
        return CallResult(raised=error)
    changed = tuple(number for number, before in enumerate(inputs) if is_changed_tensor(before, seen.inputs[number]))
    return CallResult(seen.result, None, seen.inputs, changed, seen.shares, seen.gradients or ())


def _call_and_catch(
    watch: Watch | None,
    function: Callable[..., Any],
    inputs: tuple[Any, ...],
    options: Mapping[str, Any] = NO_OPTIONS,
) -> tuple[Any, Raised | None]:
    """Return what a student's code returns, or what it raises; torch's global settings are put back."""
    with keep_settings(), watch.session() if watch else nullcontext():
        try:
            with watch_call(), watch_printing():
                return function(*inputs, **options), None
        except (KeyboardInterrupt, TimeIsUpError):
            raise
        except BaseException as error:  # SystemExit too must not end the student's session
            return None, describe_exception(error)


def is_changed_tensor(before: object, after: object) -> bool:
    """Say whether an input, as it is after a call, is not to the last digit what was given."""
    if not isinstance(before, Tensor) or before.is_meta:
        return False
    if not isinstance(after, Tensor) or (before.shape, before.dtype) != (after.shape, after.dtype):
        return True
    old, new = before.detach().cpu(), after.detach().cpu()
    if torch.equal(old, new) or not old.is_floating_point():
        return not torch.equal(old, new)
    return not (torch.equal(old.isnan(), new.isnan()) and torch.equal(old.nan_to_num(), new.nan_to_num()))
