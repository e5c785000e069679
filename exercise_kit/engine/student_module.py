"""A module that a student's class has built, as a check sees it: loaded, run, differentiated."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.answers import plain, snapshot
from exercise_kit.engine.calls import Answer, Module, ModuleHere
from exercise_kit.engine.errors import fingerprint, in_words
from exercise_kit.engine.verdict import Failure
from exercise_kit.engine.words import listed, shape
from exercise_kit.reasons import Reason
from exercise_kit.worker.calls import cotangent

if TYPE_CHECKING:
    from exercise_kit.engine.student import Student


class StudentModule:
    """A module that a student's class has built; what its methods find is written into the student's record."""

    def __init__(self, student: Student, held: Module) -> None:
        self._student = student
        self._held = held
        self.name = student.name

    @property
    def module(self) -> nn.Module:
        """The module itself, where it is in this process: for a public check that listens to its parts."""
        assert isinstance(self._held, ModuleHere)
        return self._held.module

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Give every parameter the value of its name; Failure when names or shapes are not as asked."""
        found = self.parameter_shapes()
        wanted = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if found != wanted:
            reason = Reason.DIFFERENT if set(found) == set(wanted) else Reason.PARAMETERS
            raise Failure(*_layout_in_words(self.name, found, wanted), reason)
        self._told("load", self._held.load(weights))

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by its name; Failure when one has no shape yet."""
        held = self._told("state_dict", self._held.held())
        found = {name: size for name, (size, is_parameter) in held.items() if is_parameter}
        if lazy := [name for name, size in found.items() if size is None]:
            look = "Which layer of yours waits for its first input before it knows its size?"
            raise Failure(f"`{lazy[0]}` has no shape yet", "shapes that follow from the arguments of the class", look)
        self._student.record.append(("parameters", tuple(sorted(found.items()))))
        return found

    def tensors(self) -> dict[str, Tensor]:
        """A copy of every parameter and buffer by its name."""
        held = self._told("state_dict", self._held.tensors())
        tensors = {name: plain(each, f"`{name}` of {self.name}") for name, each in held.items()}
        described = tuple((name, tuple(each.shape), str(each.dtype)) for name, each in sorted(tensors.items()))
        self._student.record.append(("tensors", described))
        return tensors

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run forward on copies of ``inputs``; Failure when it raises."""
        return self._student.read(f"{self.name}.forward", self._held.forward(inputs, options), inputs, options)

    def parts(self, names: Sequence[str], *inputs: Any, **options: Any) -> dict[str, Tensor]:
        """What enters and leaves the parts of these names when forward runs on copies of ``inputs``, in that order.

        Keys are "norm1:in" and "norm1:out". It is for the words of a message alone: nothing of it goes on record, a
        part that is not there or not called is left out, and where forward raises there is nothing.
        """
        answer = self._held.parts(names, inputs, options)
        found: dict[str, Tensor] = {}
        for key, tensor in ({} if answer.raised else answer.result).items():
            with contextlib.suppress(Failure):
                found[key] = plain(tensor, key, inputs)
        return found

    def input_gradients(self, *inputs: Any, **options: Any) -> tuple[Tensor | None, ...]:
        """The gradient for every input; see :meth:`exercise_kit.engine.student.Student.input_gradients`."""
        answer = self._held.forward(inputs, options, gradients=True)
        self._student.read(f"{self.name}.forward", answer, inputs, options)
        gradients = tuple(plain(each, f"the gradient of {self.name}", inputs) for each in answer.gradients)
        self._student.record.append(("gradients", snapshot(gradients)))
        return gradients

    def gradients(self, output: Tensor) -> dict[str, Tensor | None]:
        """The gradient of every parameter by its name, by a backward pass of random cotangents from ``output``."""
        gradients = self._gradients(output)
        self._student.record.append(("gradients", snapshot(tuple(sorted(gradients.items())))))
        return gradients

    def without_gradient(self, output: Tensor) -> list[str]:
        """Names of the parameters that ``output`` does not depend on, by a backward pass of random cotangents."""
        gradients = self._gradients(output)
        names = [name for name, gradient in gradients.items() if gradient is None or not gradient.any()]
        wild = [name for name, gradient in gradients.items() if gradient is not None and not gradient.isfinite().all()]
        self._student.record.append(("without gradient", tuple(names)))
        if wild:
            look = "Which operation has no finite slope where you use it: a division by 0, a root or a log of 0?"
            raise Failure(f"the gradient of {listed(wild)} is not finite", "finite numbers", look)
        return names

    def _gradients(self, output: Tensor) -> dict[str, Tensor | None]:
        answer = self._held.backward(output, cotangent(output))
        if answer.raised is not None:
            self._student.record.append(("backward raised", answer.raised.kind))
            look = "Which operation changes in place a tensor that the gradient still needs?"
            raise Failure(f"the backward pass raised {answer.raised}", "a gradient", look, Reason.RAISED)
        return {name: plain(each, f"the gradient of `{name}`", (output,)) for name, each in answer.result.items()}

    def to(self, target: torch.dtype | torch.device) -> None:
        """Give it another dtype, or put it on another device."""
        self._told("to", self._held.set(target), target)

    def double(self) -> None:
        """Make it compute in float64."""
        self.to(torch.float64)

    def train(self) -> None:
        """Put it into training mode."""
        self._told("train", self._held.set(True))

    def eval(self) -> None:
        """Put it into evaluation mode."""
        self._told("eval", self._held.set(False))

    def _told(self, method: str, answer: Answer, *arguments: object) -> Any:
        """The result of an answer; Failure when there is none, for the student's own ``method`` raised."""
        if answer.raised is not None:
            self._student.record.append(("raised", fingerprint(answer.raised)))
            raise in_words(f"{self.name}.{method}", answer.raised, arguments, {})
        return answer.result


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
