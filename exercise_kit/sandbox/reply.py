"""A worker's reply, read with suspicion: it may be anything that the student's code could make of it.

No word of it comes into a report but quoted, or as a name of letters and digits: a page would make a link of
``$\\href{…}$``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import format_shape
from exercise_kit.engine.errors import Raised
from exercise_kit.engine.local_backend import CallResult, is_changed_tensor
from exercise_kit.engine.records import OddTensor, OpaqueList
from exercise_kit.engine.verdict import Failure, Undecided
from exercise_kit.quoting import quote_first_line, quote_name
from exercise_kit.sandbox.limits import GraderFailed, WorkerLost
from exercise_kit.sandbox.sandbox import Worker
from exercise_kit.worker.module_values import NamedParameters
from exercise_kit.worker.values import Other

_LOOK = {
    "time": "Which loop of yours never ends, or which step takes so long?",
    "cpu": "Which loop of yours never ends, or which step takes so long?",
    "memory": "How many numbers does the largest tensor on the way hold?",
    "disk": "What does your code write to files, and how often?",
    "output": "What does your code print, or draw, and how often?",
}
_LISTS = ("kinds", "functions")
_NAME = re.compile(r"\w{1,80}")
# as the worker's own code tells of it
_ODD_TENSOR = re.compile(
    r"a (\w{1,80}|nested tensor|tensor (without a shape|of (layout|dtype) \w{1,40}|of \d{1,4} axes|"
    r"on the device [a-z]{1,20}(:\d{1,3})?|of shape \([-\d, ]{0,200}\)(, too large to be looked at)?))"
)
_IN_A_REPR = re.compile(
    r"<(?:class '|function |built-in function |built-in method |bound method )(?:.*\.)?(\w{1,80})\b"
)


class WorkerStopped(Failure):
    """The worker was lost during a request: whoever wants to go on has to start another.

    Attributes: ``kind`` of the loss, as WorkerLost has it, and its ``words``.
    """

    def __init__(self, name: str, kind: str, words: str) -> None:
        super().__init__(f"{name} {words}", "", _LOOK.get(kind, ""))
        self.kind = kind
        self.words = words


class GraderErrorUndecided(Undecided):
    """The grader's own code failed during a request: the check decides nothing, and the instructor's log says so."""

    def __init__(self) -> None:
        super().__init__("the grader itself failed here; it does not count, and your instructor can read why")


class WorkerConnection:
    """One student's line to a worker; a seed that a check has set here goes along with the next request."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._is_new = True

    def request(self, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the worker; see :meth:`~exercise_kit.sandbox.sandbox.Worker.request`."""
        seed = torch.initial_seed() if _was_just_seeded() or self._is_new else None
        self._is_new = False
        return self._worker.request(kind, seed=seed, **fields)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Ask and read inside; where the grader's own code fails at it, that ends the worker and decides nothing.

        Raises:
            GraderErrorUndecided: it failed.
            MemoryError: it failed for want of memory.
        """
        try:
            yield
        except (Failure, Undecided, MemoryError):
            raise
        except GraderFailed:
            raise GraderErrorUndecided from None
        except Exception as error:
            self._worker.end_after_grader_failure(error)
            raise GraderErrorUndecided from error


def _was_just_seeded() -> bool:
    """Say whether the seed was set and nothing drawn since; it draws a number, so that the next call says no."""
    generator = torch.default_generator
    seeded = torch.Generator().manual_seed(torch.initial_seed()).get_state()
    is_seeded = torch.equal(generator.get_state(), seeded)
    torch.rand((), generator=generator, device="cpu")
    return is_seeded


class Reply:
    """What a worker says to one request, of the ``kind`` and with the ``fields`` that it knows, about ``subject``.

    Raises:
        WorkerStopped: it says nothing, or what is no reply to this request.
    """

    def __init__(self, line: WorkerConnection, subject: str, kind: str, /, **fields: Any) -> None:
        self._subject = subject
        try:
            self._said = line.request(kind, fields)
        except WorkerLost as lost:
            raise WorkerStopped(subject, lost.kind, lost.words) from None
        self.raised = self._read_raised() if self.has("raised") else None

    def has(self, key: str) -> bool:
        """Say whether it says anything about ``key``."""
        return self._said.get(key) is not None

    def of(self, key: str, *kinds: type) -> Any:
        """Return what it says about ``key``, which is one of these kinds of value."""
        value = self._said.get(key)
        return value if isinstance(value, kinds) else self._raise_protocol_error(key)

    def read_list(self, key: str, count: int, *kinds: type) -> list[Any]:
        """``count`` values of these kinds under ``key``."""
        values = self.of(key, list, tuple)
        right = len(values) == count and all(isinstance(each, kinds) for each in values)
        return list(values) if right else self._raise_protocol_error(key)

    def read_dict(self, key: str, *kinds: type) -> dict[str, Any]:
        """Values of these kinds, by name, under ``key``."""
        values = self.of(key, dict)
        right = all(isinstance(name, str) and isinstance(each, kinds) for name, each in values.items())
        return {quote_name(name): each for name, each in values.items()} if right else self._raise_protocol_error(key)

    @property
    def result(self) -> Any:
        """What a call or a class has given."""
        return restore_value(self._said.get("result"))

    def answer(self, inputs: tuple[Any, ...], gradients: bool = False) -> CallResult:
        """The reply to a call with ``inputs``."""
        if self.raised:
            return CallResult(raised=self.raised)
        result = self.result
        after = self.read_list("inputs", len(inputs), object)
        changed = tuple(place for place, given in enumerate(inputs) if is_changed_tensor(given, after[place]))
        left = [
            given if each is None or isinstance(given, Tensor) else restore_value(each)
            for given, each in zip(inputs, after, strict=True)
        ]
        same = self._said.get("same")
        if same is not None:
            place = self._read_input_index(same, inputs)
            if isinstance(left[place], nn.Module):
                result = left[place]
            else:
                left[place] = result
        return CallResult(
            result,
            inputs=tuple(left),
            changed=changed,
            shares=self.of("shares", bool),
            gradients=tuple(self.read_list("gradients", len(inputs), Tensor, type(None))) if gradients else (),
        )

    def _read_input_index(self, number: object, inputs: Sequence[object]) -> int:
        if type(number) is int and 0 <= number < len(inputs):
            return number
        self._raise_protocol_error("inputs")

    def _read_raised(self) -> Raised:
        claimed = self.of("raised", dict)
        kinds, functions = (_select_strings(claimed.get(key)) for key in _LISTS)
        words, line = (each if isinstance(each, str) else "" for each in (claimed.get("words"), claimed.get("line")))
        names = tuple(each for each in kinds if _NAME.fullmatch(each))
        return Raised(
            names or ("an exception",),
            words,
            quote_first_line(line),
            tuple(functions),
            _list_tensor_descriptions(claimed.get("tensors")),
        )

    def _raise_protocol_error(self, key: str) -> NoReturn:
        raise WorkerStopped(self._subject, "protocol", f"gave a reply that makes no sense, in what it says of {key}")


def _list_tensor_descriptions(listed: object) -> tuple[str, ...]:
    """The tensors on a line, each a name and its sizes; whatever else is said there is left out."""
    found = []
    for each in listed if isinstance(listed, list | tuple) else ():
        if isinstance(each, list | tuple) and len(each) == 2 and isinstance(each[1], list | tuple):
            name, given = each
            if isinstance(name, str) and _NAME.fullmatch(name) and all(type(size) is int for size in given):
                found.append(f"`{name}` {format_shape(given)}")
    return tuple(found)


def _select_strings(listed: object) -> list[str]:
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list | tuple) else []


def read_shape(listed: Sequence[Any]) -> tuple[int, ...]:
    """A shape, of what a reply says that it is."""
    return tuple(each if type(each) is int else -1 for each in listed)


def restore_value(claimed: Any) -> Any:
    """A value in a reply as a check sees it; what could not be sent is replaced by an object of that kind and name."""
    if isinstance(claimed, list | tuple):
        return type(claimed)(restore_value(each) for each in claimed)
    if isinstance(claimed, dict):
        return {quote_name(name): restore_value(each) for name, each in claimed.items()}
    if isinstance(claimed, NamedParameters):
        return _rename_class_of_model(claimed)
    return _make_stand_in_object(claimed) if isinstance(claimed, Other) else claimed


def _rename_class_of_model(model: NamedParameters) -> nn.Module:
    """The model, of a class that is called as the student's is, and of torch where torch has one of that name."""
    name = model.kind if _NAME.fullmatch(model.kind) else "Module"
    module = "torch.nn" if hasattr(nn, name) else "student"
    model.__class__ = type(name, (NamedParameters,), {"__module__": module})
    return model


def _make_stand_in_object(other: Other) -> object:
    named = _IN_A_REPR.match(other.text)
    name = named[1] if named else ""
    if other.kind == "Tensor" and _ODD_TENSOR.fullmatch(other.text):  # else it is a class of that name
        return OddTensor(other.text)
    if other.kind == "type":
        return type(name, (), {})
    if "function" in other.kind or other.kind == "method":
        return _make_empty_function(name)
    if other.kind == "generator":
        return (_ for _ in ())
    if other.kind == "coroutine":
        return _make_ended_coroutine()
    if other.kind == "list" and other.text.isdecimal():
        return OpaqueList(int(other.text[:12]))
    return type(other.kind if _NAME.fullmatch(other.kind) else "object", (), {})()


def _make_empty_function(name: str) -> object:
    def function() -> None: ...

    function.__name__ = name
    return function


def _make_ended_coroutine() -> object:
    async def coroutine() -> None: ...

    ended = coroutine()
    ended.close()
    return ended
