"""A student's functions and classes, as a check sees them: called, built, loaded, and written down.

Every call gets copies of its inputs, an exception becomes a failure in words, and all that came back is
recorded, so that it can be compared with what a misconception gives on the same inputs.
"""

from __future__ import annotations

import copy
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from vit_course.checks.compare import close, shape
from vit_course.checks.verdict import Failure, NotWritten

_NOT_THE_STUDENTS = (
    str(Path(__file__).parents[1]),
    sysconfig.get_paths()["purelib"],
    sysconfig.get_paths()["stdlib"],
)


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
        try:
            result = self._objects[self.name](*copy.deepcopy(inputs))
        except (Exception, SystemExit) as error:
            if isinstance(error, NotImplementedError):
                raise _in_words(self.name, error, inputs) from None
            self.record.append(("raised", type(error).__name__))
            return error
        self.record.append(("returned", _snapshot(result)))
        return None

    def build(self, *arguments: Any) -> StudentModule:
        """Make a module of the student's class; Failure when that raises or gives no nn.Module."""
        module = self._run(self.name, self._objects[self.name], arguments)
        if not isinstance(module, nn.Module):
            raise Failure(f"{self.name} gives a {type(module).__name__}", "a torch.nn.Module")
        return StudentModule(self, module)

    def _run(self, name: str, function: Callable[..., Any], inputs: tuple[Any, ...], **options: Any) -> Any:
        copies = copy.deepcopy(inputs)
        try:
            result = function(*copies, **options)
        except (Exception, SystemExit) as error:
            self.record.append(("raised", type(error).__name__))
            raise _in_words(name, error, inputs) from None
        self.changed_inputs += [
            shape(before)
            for before, after in zip(inputs, copies, strict=True)
            if isinstance(before, Tensor) and not _same(before, after)
        ]
        self.record.append(("returned", _snapshot(result)))
        return result


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
        generator = torch.Generator().manual_seed(0)
        try:
            output.backward(torch.randn(output.shape, generator=generator).to(output))
        except RuntimeError as error:
            self._student.record.append(("backward raised", type(error).__name__))
            look = "Which operation changes in place a tensor that the gradient still needs?"
            said = str(error).strip().splitlines()[0][:200]
            raise Failure(f"the backward pass raised RuntimeError: {said}", "a gradient", look) from None
        names = [
            name
            for name, parameter in self.module.named_parameters()
            if parameter.grad is None or not parameter.grad.abs().max() > 0
        ]
        self._student.record.append(("without gradient", tuple(names)))
        return names


def same_record(first: list[object], second: list[object]) -> bool:
    """Whether two students gave the same on the same inputs."""
    return _same(first, second)


def _snapshot(value: object) -> object:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, nn.Module):
        return (type(value).__name__ if type(value).__module__.startswith("torch.") else "module",)
    if isinstance(value, tuple | list):
        return tuple(_snapshot(each) for each in value)
    if isinstance(value, bool | int | float | str | None):
        return value
    return type(value).__name__


def _same(first: object, second: object) -> bool:
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        alike = first.shape == second.shape and first.dtype == second.dtype and first.device == second.device
        return alike and (
            close(first, second) or (torch.equal(first.isnan(), second.isnan()) and _equal_nan(first, second))
        )
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(_same, first, second))
    return type(first) is type(second) and first == second


def _equal_nan(first: Tensor, second: Tensor) -> bool:
    return close(first.nan_to_num(), second.nan_to_num())


def _in_words(name: str, error: BaseException, inputs: tuple[Any, ...]) -> Failure:
    place = _line_of(error)
    if isinstance(error, NotImplementedError):
        return NotWritten(f"{name} is not written yet: it raises NotImplementedError{place}")
    text = str(error).strip().splitlines()
    said = f": {text[0][:200]}" if text else ""
    given = ", ".join(_brief(value) for value in inputs)
    look = "Which shapes, names or types meet on that line?" if place else ""
    return Failure(f"{name} raised {type(error).__name__}{said}{place}", f"an answer when called with {given}", look)


def _line_of(error: BaseException) -> str:
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_NOT_THE_STUDENTS):
            line = (linecache.getline(frame.filename, frame.lineno or 0) or frame.line or "").strip()
            return f", at `{line}`" if line else f", at line {frame.lineno}"
    return ""


def _brief(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {shape(value)}"
    text = repr(value)
    return text if len(text) <= 60 else f"a {type(value).__name__}"


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
        f"has no parameter {_listed(missing)}" if missing else "",
        f"has {_listed(extra)}, which nobody asked for" if extra else "",
        f"has {_listed(other)}" if other else "",
    ]
    asked = f"the parameters {_listed([f'`{each}` {shape(size)}' for each, size in wanted.items()], 14)}"
    look = "A tensor is a parameter when it is an nn.Parameter, or part of a module, that is an attribute of self."
    return f"{name} " + " and ".join(filter(None, clauses)), asked, look if missing else ""


def _listed(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
