"""A student's functions and classes, as a check sees them: called, built, loaded, and written down.

Every call gets copies of its inputs, an exception becomes a failure in words, and all that came back is
recorded, so that it can be compared with what a misconception gives on the same inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from vit_course.checks.answers import plain, same_record, snapshot
from vit_course.checks.errors import fingerprint, in_words
from vit_course.checks.isolation import settings_kept
from vit_course.checks.verdict import Failure
from vit_course.checks.words import kind_of, listed, quoted, shape


class Student:
    """The objects of one exercise under their names.

    Args:
        objects: name → the student's function or class; calling the Student calls the first.
    """

    def __init__(self, objects: Mapping[str, Any]) -> None:
        self._objects = dict(objects)
        self.name = next(iter(self._objects))
        self.record: list[object] = []
        self.changed_inputs: list[str] = []

    def __call__(self, *inputs: Any) -> Any:
        """Call the exercise's (first) function with copies of ``inputs``."""
        return self.call(self.name, *inputs)

    def call(self, name: str, *inputs: Any) -> Any:
        """Call the function ``name`` with copies of ``inputs``; Failure when it raises."""
        return self._run(name, self._objects[name], inputs)

    def error_of(self, *inputs: Any) -> BaseException | None:
        """The exception that the (first) function raises on ``inputs``, None when it returns."""
        result, error = _attempt(self._objects[self.name], copy.deepcopy(inputs), {})
        if error is None:
            self._keep(result, self.name)
            return None
        if isinstance(error, NotImplementedError):
            raise in_words(self.name, error, inputs, {}) from None
        self.record.append(("raised", fingerprint(error)))
        return error

    def build(self, *arguments: Any) -> StudentModule:
        """Make a module of the student's class; Failure when that raises or gives no nn.Module."""
        module = self._run(self.name, self._objects[self.name], arguments)
        if not isinstance(module, nn.Module):
            look = "What stands in brackets after the class's name?"
            raise Failure(f"{self.name}(...) gives {kind_of(module)}", "a torch.nn.Module", look)
        return StudentModule(self, module)

    def _run(self, name: str, function: Callable[..., Any], inputs: tuple[Any, ...], **options: Any) -> Any:
        copies = copy.deepcopy(inputs)
        result, error = _attempt(function, copies, options)
        if error is not None:
            self.record.append(("raised", fingerprint(error)))
            raise in_words(name, error, inputs, options) from None
        self.changed_inputs += [
            shape(before)
            for before, after in zip(inputs, copies, strict=True)
            if isinstance(before, Tensor) and not same_record(before, after)
        ]
        return self._keep(result, name)

    def _keep(self, result: Any, name: str) -> Any:
        """Write an answer down and give it back with plain tensors; Failure when those cannot be compared."""
        try:
            answer = plain(result, name)
        except Failure as odd:
            self.record.append(("returned", odd.seen))
            raise
        self.record.append(("returned", snapshot(answer)))
        return answer


def _attempt(
    function: Callable[..., Any], inputs: tuple[Any, ...], options: Mapping[str, Any]
) -> tuple[Any, BaseException | None]:
    """What a student's code returns, or what it raises; torch's global settings are put back."""
    with settings_kept():
        try:
            return function(*inputs, **options), None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too must not end the student's session
            return None, error


class StudentModule:
    """A module that a student's class has built."""

    def __init__(self, student: Student, module: nn.Module) -> None:
        self._student = student
        self.module = module
        self.name = student.name

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Give every parameter the value of its name; Failure when names or shapes are not as asked."""
        held = self.module.state_dict(keep_vars=True)
        parameters = {name: tensor for name, tensor in held.items() if isinstance(tensor, nn.Parameter)}
        if lazy := [name for name, tensor in parameters.items() if is_lazy(tensor)]:
            look = "Which layer of yours waits for its first input before it knows its size?"
            raise Failure(f"`{lazy[0]}` has no shape yet", "shapes that follow from the arguments of the class", look)
        found = {name: tuple(tensor.shape) for name, tensor in parameters.items()}
        wanted = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        self._student.record.append(("parameters", tuple(sorted(found.items()))))
        if found != wanted:
            raise Failure(*_layout_in_words(self.name, found, wanted))
        with torch.no_grad():
            for name, tensor in weights.items():
                parameters[name].copy_(tensor)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run forward on copies of ``inputs``; Failure when it raises."""
        return self._student._run(f"{self.name}.forward", self.module, inputs, **options)

    def without_gradient(self, output: Tensor) -> list[str]:
        """Names of the parameters that ``output`` does not depend on, by a backward pass of random cotangents."""
        self.module.zero_grad(set_to_none=True)
        if not output.requires_grad:
            return [name for name, _ in self.module.named_parameters()]
        cotangent = torch.randn(output.shape, generator=torch.Generator().manual_seed(0)).to(output)
        _, error = _attempt(output.backward, (cotangent,), {})
        if error is not None:
            self._student.record.append(("backward raised", type(error).__name__))
            look = "Which operation changes in place a tensor that the gradient still needs?"
            raise Failure(f"the backward pass raised {type(error).__name__} {quoted(error)}", "a gradient", look)
        gradients = {name: parameter.grad for name, parameter in self.module.named_parameters()}
        names = [name for name, gradient in gradients.items() if gradient is None or not gradient.any()]
        wild = [name for name, gradient in gradients.items() if gradient is not None and not gradient.isfinite().all()]
        self._student.record.append(("without gradient", tuple(names)))
        if wild:
            look = "Which operation has no finite slope where you use it: a division by 0, a root or a log of 0?"
            raise Failure(f"the gradient of {listed(wild)} is not finite", "finite numbers", look)
        return names


def _layout_in_words(
    name: str, found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]
) -> tuple[str, str, str]:
    missing = [f"`{each}` {shape(wanted[each])}" for each in wanted if each not in found]
    extra = [f"`{each}` {shape(found[each])}" for each in found if each not in wanted]
    other = [
        f"`{each}` of shape {shape(found[each])} where {shape(wanted[each])} was asked for"
        for each in wanted
        if each in found and found[each] != wanted[each]
    ]
    clauses = [
        f"has no parameter {listed(missing)}" if missing else "",
        f"has {listed(extra)}, which nobody asked for" if extra else "",
        f"has {listed(other)}" if other else "",
    ]
    asked = f"the parameters {listed([f'`{each}` {shape(size)}' for each, size in wanted.items()], 14)}"
    return f"{name} " + " and ".join(filter(None, clauses)), asked, _layout_question(found, wanted)


def _layout_question(found: Mapping[str, tuple[int, ...]], wanted: Mapping[str, tuple[int, ...]]) -> str:
    if set(found) != set(wanted) and sorted(found.values()) == sorted(wanted.values()):
        return "The shapes are right. What does the exercise call these parts?"
    if set(wanted) - set(found):
        return "A tensor is a parameter when it is an nn.Parameter, or part of a module, that is an attribute of self."
    if set(found) - set(wanted):
        return "Which part of yours does the exercise not name?"
    return "How many numbers go into that part, and how many come out?"
