"""A student whose code runs in a worker: called over the wire, read and recorded like one in this process.

The judge trusts nothing that a worker says: a reply that breaks the protocol ends the conversation, and every value
goes through the same inspection as a local student's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from exercise_kit.engine.local_backend import CallResult
from exercise_kit.engine.records import iterate_tensors
from exercise_kit.engine.student import Student
from exercise_kit.quoting import quote_name
from exercise_kit.sandbox.reply import Reply, WorkerConnection, read_shape, restore_value
from exercise_kit.sandbox.sandbox import Worker
from exercise_kit.worker.observe import sum_weighted


class RemoteStudent(Student):
    """The objects of one exercise in a worker; making one asks nothing yet.

    Args:
        worker: runs the student's code.
        names: of the exercise's objects; calling the student calls the first.
    """

    def __init__(self, worker: Worker, names: Iterable[str]) -> None:
        super().__init__(dict.fromkeys(names), RemoteBackend(WorkerConnection(worker)))


class RemoteBackend:
    """Functions and classes in a worker; see :class:`~exercise_kit.engine.local_backend.Backend`."""

    def __init__(self, line: WorkerConnection) -> None:
        self._line = line

    def call(self, name: str, inputs: tuple[Any, ...], gradients: bool = False) -> CallResult:
        """Ask for a call of the function ``name``."""
        with self._line.reading():
            reply = Reply(self._line, name, "call", name=name, inputs=inputs, options={}, gradients=gradients)
            return reply.answer(inputs, gradients)

    def run_fixture(self, name: str, fixture: str, fields: Mapping[str, Any]) -> CallResult:
        """Ask for a training fixture's run with the function or class ``name``."""
        with self._line.reading():
            reply = Reply(self._line, name, "run_fixture", name=name, fixture=fixture, fields=dict(fields))
            if reply.raised:
                return CallResult(raised=reply.raised)
            return CallResult({name: restore_value(each) for name, each in reply.of("result", dict).items()})

    def build(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """Ask for a module of the class ``name``."""
        with self._line.reading():
            reply = Reply(self._line, name, "build", name=name, inputs=arguments, options=dict(options))
            if reply.raised or not reply.has("module"):
                return CallResult(reply.result, reply.raised)
            return CallResult(module=RemoteModule(self._line, name, reply.of("module", int), reply))


class RemoteModule:
    """A module in a worker; see :class:`~exercise_kit.engine.local_backend.ModuleBackend`.

    Args:
        line: to the worker.
        name: of its class.
        number: which one it is.
        built: the reply to its building, which may tell what it holds.
    """

    def __init__(self, line: WorkerConnection, name: str, number: int, built: Reply) -> None:
        self._line = line
        self._name = name
        self._number = number
        self._build_reply = built if built.has("parameters") else None
        self._outputs: list[Tensor] = []

    def _request(self, kind: str, **fields: Any) -> Reply:
        self._build_reply = None
        return Reply(self._line, self._name, kind, module=self._number, **fields)

    def forward(self, inputs: tuple[Any, ...], options: Mapping[str, Any], gradients: bool = False) -> CallResult:
        """Ask for a forward pass, and for the backward pass to its inputs."""
        with self._line.reading():
            reply = self._request("forward", inputs=inputs, options=dict(options), gradients=gradients)
            answer = reply.answer(inputs, gradients)
            self._outputs = [each for each in iterate_tensors(answer.result) if each.requires_grad]
            return answer

    def parts(self, names: Sequence[str], inputs: tuple[Any, ...], options: Mapping[str, Any]) -> CallResult:
        """Ask for another forward pass, and for what its parts are given and give; what is no tensor is left out."""
        with self._line.reading():
            reply = self._request("parts", names=list(names), inputs=inputs, options=dict(options))
            found = {} if reply.raised else reply.read_dict("parts", object)
            return CallResult({key: each for key, each in found.items() if isinstance(each, Tensor)}, reply.raised)

    def backward(self, output: Tensor, cotangent: Tensor) -> CallResult:
        """Ask for a backward pass from the last forward's output, or from what a check has made of that.

        Raises:
            ValueError: ``output`` has nothing to do with the last forward's.
        """
        pulled: Sequence[Tensor | None] = [None] * len(self._outputs)
        if output.requires_grad:
            number = sum_weighted(output, cotangent)
            pulled = torch.autograd.grad(number, self._outputs, allow_unused=True) if self._outputs else ()
            if all(each is None for each in pulled):
                raise ValueError("a module in a worker can be differentiated from its last output only")
        with self._line.reading():
            reply = self._request("backward", cotangents=list(pulled))
            return CallResult(None if reply.raised else reply.read_dict("gradients", Tensor, type(None)), reply.raised)

    def parameter_info(self) -> CallResult:
        """Ask for the names and shapes of what it holds."""
        with self._line.reading():
            reply = self._build_reply or self._request("parameters")
            if reply.raised:
                return CallResult(raised=reply.raised)
            parameters = {name: (read_shape(each), True) for name, each in reply.read_dict("parameters", list).items()}
            buffers = {name: (read_shape(each), False) for name, each in reply.read_dict("buffers", list).items()}
            waiting = {quote_name(str(name)): (None, True) for name in reply.of("lazy", list)}
            return CallResult({**parameters, **buffers, **waiting})

    def tensors(self) -> CallResult:
        """Ask for its state."""
        with self._line.reading():
            reply = self._request("state")
            return CallResult(None if reply.raised else reply.read_dict("tensors", Tensor), reply.raised)

    def load(self, weights: Mapping[str, Tensor]) -> CallResult:
        """Send values for its parameters."""
        with self._line.reading():
            return CallResult(raised=self._request("load", weights=dict(weights)).raised)

    def set(self, state: torch.dtype | torch.device | bool) -> CallResult:
        """Ask for another dtype, device or mode."""
        with self._line.reading():
            if isinstance(state, bool):
                return CallResult(raised=self._request("mode", training=state).raised)
            if isinstance(state, torch.dtype):
                return CallResult(raised=self._request("cast", dtype=state).raised)
            return CallResult(raised=self._request("move", device=str(state)).raised)
