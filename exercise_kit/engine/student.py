"""A student's functions, classes and modules, as a check sees them: called, built, loaded, differentiated, recorded.

Every call gets copies of its inputs, an exception becomes a Failure with a message, and every result is recorded, so
that it can be compared with the results of misconceptions for the same inputs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.compare import describe_kind, format_shape, join_names
from exercise_kit.engine.course import NamedArgument, course
from exercise_kit.engine.errors import Raised, make_failure, make_fingerprint
from exercise_kit.engine.local_backend import NO_OPTIONS, Backend, CallResult, LocalBackend, ModuleBackend
from exercise_kit.engine.records import LONGEST, make_tensors_plain, read_model_parameters, take_snapshot
from exercise_kit.engine.verdict import Failure
from exercise_kit.reasons import Reason
from exercise_kit.worker.observe import draw_cotangent


@dataclass(frozen=True)
class ObservedCall:
    """A call and what it left behind.

    Attributes:
        result: what was returned.
        inputs: with models and dicts as they are after the call: ``seen.result is seen.inputs[0]`` where the call
            returned its first input.
        shares_memory: whether the result, or a model among the inputs, has memory in common with another input.
    """

    result: Any
    inputs: tuple[Any, ...]
    shares_memory: bool


class Student:
    """The objects of one exercise under their names.

    Args:
        objects: name → the student's function or class; calling the Student calls the first.
        backend: where they run; in this process by default.

    Attributes: ``names`` of the objects, and the first of them, ``name``; ``record``, what they gave so far.
    """

    def __init__(self, objects: Mapping[str, Any], backend: Backend | None = None) -> None:
        self._backend = backend or LocalBackend(objects)
        # a misconception's class has a name of its own, a student's the exercise's
        self._classes = {*objects, *(each.__name__ for each in objects.values() if isinstance(each, type))}
        self.names = tuple(objects)
        self.name = self.names[0]
        self.record: list[object] = []
        self.changed_inputs: list[str] = []

    def note(self, fact: object) -> None:
        """Put a fact on record: answers that are alike in all that is on record make the same mistake."""
        self.record.append(fact)

    def note_instead(self, fact: object) -> None:
        """Put a fact on record in the place of the last answer, of which nothing else belongs there."""
        self.record[-1:] = [fact]

    def note_only(self, *facts: object) -> None:
        """Put facts on record, and nothing else of this check."""
        self.record[:] = facts

    def forget(self, count: int = 1) -> None:
        """Take the last entries off the record: they depend on chance, or on what the claim is not about."""
        del self.record[len(self.record) - count :]

    def __call__(self, *inputs: Any) -> Any:
        """Call the exercise's (first) function with copies of ``inputs``."""
        return self.call(self.name, *inputs)

    def call(self, name: str, *inputs: Any) -> Any:
        """Call the function ``name`` with copies of ``inputs``; Failure when it raises."""
        return self.read(name, self._backend.call(name, inputs), inputs)

    def see(self, *inputs: Any) -> ObservedCall:
        """Call the first function with copies of ``inputs``, and look at those afterward too."""
        answer = self._backend.call(self.name, inputs)
        result = self.read(self.name, answer, inputs)
        seen = ObservedCall(result, answer.inputs, answer.shares)
        self.note(("left behind", tuple(map(read_model_parameters, seen.inputs))))
        return seen

    def input_gradients(self, *inputs: Any, of: str = "") -> tuple[Tensor | None, ...]:
        """The gradient for every input, None for those that have none, by a backward pass of random cotangents.

        The pass starts from every tensor of the result that depends on the inputs; the cotangents are the same for
        every implementation that gives the same shapes. ``of``: the function, the first unless named.
        """
        name = of or self.name
        answer = self._backend.call(name, inputs, gradients=True)
        self.read(name, answer, inputs)
        gradients = tuple(make_tensors_plain(each, f"the gradient of {name}", inputs) for each in answer.gradients)
        self.note(("gradients", take_snapshot(gradients)))
        return gradients

    def catch_error(self, *inputs: Any) -> Raised | None:
        """The exception that the (first) function raises on ``inputs``, None when it returns."""
        answer = self._backend.call(self.name, inputs)
        if answer.raised is None:
            self._record_plain_answer(answer.result, self.name, inputs)
            return None
        if answer.raised.is_a("NotImplementedError"):
            raise make_failure(self.name, answer.raised, inputs, NO_OPTIONS)
        self.note(("raised", str(make_fingerprint(answer.raised))))  # bad input may fail at any line
        return answer.raised

    def build(self, *arguments: Any, **options: Any) -> StudentModule:
        """Make a module of the student's class; Failure when that raises or gives no nn.Module."""
        answer = self._backend.build(self.name, arguments, options)
        if answer.module is None:
            result = self.read(self.name, answer, arguments, options)
            look = "What stands in brackets after the class's name?"
            raise Failure(f"{self.name}(...) gives {describe_kind(result)}", "a torch.nn.Module", look, Reason.KIND)
        self.note(("built",))
        return StudentModule(self, answer.module)

    def run_fixture(self, fixture: str, *judged: str, **fields: Any) -> dict[str, Any]:
        """Run the training fixture of that name with the first object; Failure when it raises.

        Args:
            fixture: see :mod:`exercise_kit.engine.training_fixtures`.
            judged: the keys of the notes that the check looks at, which go on record; all of them by default.
            fields: the fixture's own arguments.

        Returns:
            The fixture's notes.
        """
        answer = self._run_fixture(self.name, fixture, fields)
        notes = {name: self._make_fixture_note_plain(each, fields) for name, each in answer.result.items()}
        self.note(tuple((name, _convert_note_for_record(notes[name])) for name in judged or notes))
        return notes

    def example(self, name: str, source: str) -> list[Any]:
        """The values of the expressions in a docstring's example of the object ``name``; Failure when it raises.

        On record an int counts as a float of its size: other checks tell the two apart.

        Args:
            name: the object's.
            source: the example; it may use other names that the course knows.
        """
        known = {**course().records, **course().examples}
        used = {each: module for each, module in known.items() if each != name and re.search(rf"\b{each}\b", source)}
        answer = self._run_fixture(name, "example", {"name": name, "source": source, "imports": used})
        begin = len(self.record)
        values = [self._record_plain_answer(each, name, ()) for each in answer.result["values"]]
        self.record[begin:] = map(_convert_ints_to_floats, self.record[begin:])
        return values

    def _run_fixture(self, name: str, fixture: str, fields: Mapping[str, Any]) -> CallResult:
        answer = self._backend.run_fixture(name, fixture, fields)
        if answer.raised is not None:
            self.note(("raised", make_fingerprint(answer.raised)))
            raise make_failure(name, answer.raised, _list_fixture_inputs(fields), NO_OPTIONS)
        return answer

    def read(
        self, name: str, answer: CallResult, inputs: tuple[Any, ...], options: Mapping[str, Any] = NO_OPTIONS
    ) -> Any:
        """The result of a call of ``name``, written down and made plain; Failure when it raised."""
        if answer.raised is not None:
            self.note(("raised", make_fingerprint(answer.raised)))
            raise make_failure(name, answer.raised, inputs, options)
        self.changed_inputs += [format_shape(inputs[number]) for number in answer.changed]
        return self._record_plain_answer(answer.result, name, inputs)

    def _make_fixture_note_plain(self, note: Any, fields: Mapping[str, Any]) -> Any:
        if isinstance(note, dict):
            return {name: self._make_fixture_note_plain(each, fields) for name, each in note.items()}
        try:
            return make_tensors_plain(note, self.name, (torch.empty(0, device=fields.get("device", "cpu")),))
        except Failure as odd:
            self.note(("returned", odd.seen))
            raise

    def _record_plain_answer(self, result: Any, name: str, inputs: tuple[Any, ...]) -> Any:
        """Write an answer down and give it back with plain tensors; Failure when those cannot be compared."""
        try:
            answer = make_tensors_plain(result, name, inputs)
        except Failure as odd:
            self.note(("returned", odd.seen))
            raise
        is_made = type(answer).__name__ in self._classes
        self.note(("returned", "an object of the class" if is_made else take_snapshot(answer)))
        return answer


def _list_fixture_inputs(fields: Mapping[str, Any]) -> tuple[object, ...]:
    """List what a training fixture with these fields passes to a student's code, for a message."""
    if "source" in fields:
        return (NamedArgument("what the docstring's example gives it"),)
    made = course().fixture_inputs(fields)
    return tuple(fields.get("inputs", fields.values()) if made is None else made)


def _convert_ints_to_floats(entry: object) -> object:
    if isinstance(entry, tuple):
        return tuple(map(_convert_ints_to_floats, entry))
    return float(entry) if type(entry) is int and abs(entry) < 1 << 53 else entry


def _convert_note_for_record(note: object) -> object:
    """A note of a training fixture for the record: names and what stands under them."""
    if isinstance(note, dict):
        return tuple((name, _convert_note_for_record(each)) for name, each in note.items())
    if isinstance(note, list | tuple) and len(note) <= LONGEST:
        return tuple(map(_convert_note_for_record, note))
    return take_snapshot(note)


_SHARED = "refers to a single memory location"  # torch's words, where it is asked to write into such a tensor


class StudentModule:
    """A module that a student's class has built; what its methods find is written into the student's record."""

    def __init__(self, student: Student, backend: ModuleBackend) -> None:
        self._student = student
        self._backend = backend
        self.name = student.name

    def load(self, weights: Mapping[str, Tensor]) -> None:
        """Give every parameter the value of its name; Failure when names or shapes are not as asked."""
        found = self.parameter_shapes()
        wanted = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        if found != wanted:
            reason = Reason.DIFFERENT if set(found) == set(wanted) else Reason.PARAMETERS
            raise Failure(*_describe_layout(self.name, found, wanted), reason)
        answer = self._backend.load(weights)
        if answer.raised is not None and _SHARED in answer.raised.words:
            seen = (
                f"several numbers of a parameter of {self.name} share one place in memory, so that they cannot differ"
            )
            look = "Which line makes few numbers look like many, as `expand` does?"
            raise Failure(seen, "a place of its own for every number", look, Reason.RAISED, _SHARED)
        self._get_result("load", answer)

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every parameter by its name; Failure when one has no shape yet."""
        held = self._get_result("state_dict", self._backend.parameter_info())
        found = {name: size for name, (size, is_parameter) in held.items() if is_parameter}
        if lazy := [name for name, size in found.items() if size is None]:
            look = "Which layer of yours waits for its first input before it knows its size?"
            raise Failure(f"`{lazy[0]}` has no shape yet", "shapes that follow from the arguments of the class", look)
        self._student.note(("parameters", tuple(sorted(found.items()))))
        return found

    def tensors(self) -> dict[str, Tensor]:
        """A copy of every parameter and buffer by its name."""
        held = self._get_result("state_dict", self._backend.tensors())
        tensors = {name: make_tensors_plain(each, f"`{name}` of {self.name}") for name, each in held.items()}
        described = tuple((name, tuple(each.shape), str(each.dtype)) for name, each in sorted(tensors.items()))
        self._student.note(("tensors", described))
        return tensors

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run forward on copies of ``inputs``; Failure when it raises."""
        return self._student.read(f"{self.name}.forward", self._backend.forward(inputs, options), inputs, options)

    def parts(self, names: Sequence[str], *inputs: Any, **options: Any) -> dict[str, Tensor]:
        """Give what enters and leaves the parts of these names as forward runs on copies of ``inputs``, in that order.

        Keys are "norm1:in" and "norm1:out". Only messages use it, so none of it is recorded. A part that is missing
        or not called is left out; where forward raises, nothing is returned.
        """
        answer = self._backend.parts(names, inputs, options)
        found: dict[str, Tensor] = {}
        for key, tensor in ({} if answer.raised else answer.result).items():
            with contextlib.suppress(Failure):
                found[key] = make_tensors_plain(tensor, key, inputs)
        return found

    def input_gradients(self, *inputs: Any, **options: Any) -> tuple[Tensor | None, ...]:
        """The gradient for every input; see :meth:`exercise_kit.engine.student.Student.input_gradients`."""
        answer = self._backend.forward(inputs, options, gradients=True)
        self._student.read(f"{self.name}.forward", answer, inputs, options)
        gradients = tuple(make_tensors_plain(each, f"the gradient of {self.name}", inputs) for each in answer.gradients)
        self._student.note(("gradients", take_snapshot(gradients)))
        return gradients

    def gradients(self, output: Tensor) -> dict[str, Tensor | None]:
        """The gradient of every parameter by its name, by a backward pass of random cotangents from ``output``."""
        gradients = self._compute_gradients(output)
        self._student.note(("gradients", take_snapshot(tuple(sorted(gradients.items())))))
        return gradients

    def list_parameters_without_gradient(self, output: Tensor) -> list[str]:
        """Names of the parameters that ``output`` does not depend on, by a backward pass of random cotangents."""
        gradients = self._compute_gradients(output)
        names = [name for name, gradient in gradients.items() if gradient is None or not gradient.any()]
        wild = [name for name, gradient in gradients.items() if gradient is not None and not gradient.isfinite().all()]
        self._student.note(("without gradient", tuple(names)))
        if wild:
            look = "Which operation has no finite slope where you use it: a division by 0, a root or a log of 0?"
            raise Failure(f"the gradient of {join_names(wild)} is not finite", "finite numbers", look)
        return names

    def _compute_gradients(self, output: Tensor) -> dict[str, Tensor | None]:
        answer = self._backend.backward(output, draw_cotangent(output))
        if answer.raised is not None:
            self._student.note(("backward raised", answer.raised.kind))
            look = "Which operation changes in place a tensor that the gradient still needs?"
            raise Failure(f"the backward pass raised {answer.raised}", "a gradient", look, Reason.RAISED)
        return {
            name: make_tensors_plain(each, f"the gradient of `{name}`", (output,))
            for name, each in answer.result.items()
        }

    def to(self, target: torch.dtype | torch.device) -> None:
        """Give it another dtype, or put it on another device."""
        self._get_result("to", self._backend.set(target), target)

    def double(self) -> None:
        """Make it compute in float64."""
        self.to(torch.float64)

    def train(self) -> None:
        """Put it into training mode."""
        self._get_result("train", self._backend.set(True))

    def eval(self) -> None:
        """Put it into evaluation mode."""
        self._get_result("eval", self._backend.set(False))

    def _get_result(self, method: str, answer: CallResult, *arguments: object) -> Any:
        """The result of an answer; Failure when there is none, for the student's own ``method`` raised."""
        if answer.raised is not None:
            self._student.note(("raised", make_fingerprint(answer.raised)))
            raise make_failure(f"{self.name}.{method}", answer.raised, arguments, {})
        return answer.result


def _describe_layout(
    name: str, actual: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]
) -> tuple[str, str, str]:
    missing = [f"`{each}` {format_shape(expected[each])}" for each in expected if each not in actual]
    extra = [f"`{each}` {format_shape(actual[each])}" for each in actual if each not in expected]
    other = [
        f"`{each}` {format_shape(actual[each])} for {format_shape(expected[each])}"
        for each in expected
        if each in actual and actual[each] != expected[each]
    ]
    clauses = [
        f"has no parameter {join_names(missing, 3)}" if missing else "",
        f"has {join_names(extra)}, which the exercise does not ask for" if extra else "",
        f"has {join_names(other, 3)}" if other else "",
    ]
    requested = (
        f"the parameters {join_names([f'`{each}` {format_shape(size)}' for each, size in expected.items()], 14)}"
    )
    return f"{name} " + " and ".join(filter(None, clauses)), requested, _ask_about_layout(actual, expected)


def _ask_about_layout(actual: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> str:
    if set(actual) != set(expected) and sorted(actual.values()) == sorted(expected.values()):
        return "The shapes are right. What does the exercise call these parts?"
    if question := _ask_about_numbered_parts(actual, expected) or _ask_about_joined_parts(actual, expected):
        return question
    missing = [name for name in expected if name not in actual]
    parts = [name.removesuffix(".bias") for name in missing]
    if missing and all(f"{part}.weight" in actual for part in parts):  # no name is left as it was, so all are biases
        return f"`{parts[0]}` has a weight and no bias. Has its kind of module one, and which argument takes it away?"
    if missing:
        return "A tensor is a parameter when it is an nn.Parameter, or part of a module, that is an attribute of self."
    if set(actual) - set(expected):
        return "Which part of yours does the exercise not name?"
    return "How many numbers go into that part, and how many come out?"


def _ask_about_numbered_parts(actual: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> str:
    """A question where a numbered part, as ``blocks`` of "blocks.2.norm1.weight", is there too often or too seldom."""
    numbers = {name: _collect_part_numbers(actual, name) for name in _list_numbered_parts(expected)}
    for name, there in numbers.items():
        asked = _collect_part_numbers(expected, name)
        if there and there != asked:
            return f"`{name}` has {len(there)}, and {len(asked)} are asked for. How often does your loop over them run?"
    return ""


def _list_numbered_parts(names: Mapping[str, object]) -> list[str]:
    return list(dict.fromkeys(match[1] for each in names if (match := re.match(r"(\w+)\.\d+\.", each))))


def _collect_part_numbers(names: Mapping[str, object], part: str) -> set[str]:
    return {each.split(".")[1] for each in names if each.startswith(f"{part}.")}


def _ask_about_joined_parts(actual: Mapping[str, tuple[int, ...]], expected: Mapping[str, tuple[int, ...]]) -> str:
    """A question where several parts together have the rows of the one that is asked for."""
    extra = [each for each in actual if each not in expected and len(actual[each]) > 1]
    for name in (each for each in expected if each not in actual and len(expected[each]) > 1):
        rows = sum(actual[each][0] for each in extra)
        if (
            len(extra) > 1
            and rows == expected[name][0]
            and {actual[each][1:] for each in extra} == {expected[name][1:]}
        ):
            parts = " and ".join(f"`{each.removesuffix('.weight')}`" for each in extra)
            whole = name.removesuffix(".weight")
            return f"{parts} have as many rows together as `{whole}` alone. How does one part give what these give?"
    return ""
