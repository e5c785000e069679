"""Serves the judge's requests about what the cells defined: call, build, load, forward, backward and the like.

A request may hold functions of the judge's, which the student's code may call: they are evaluated over the wire, and
can be differentiated.
"""

from __future__ import annotations

import base64
import builtins
import contextlib
import marshal
import random
import sys
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import device as compute
from . import torch_internals, withheld
from .attempts import Attempts
from .cells import Cells
from .module_values import list_named_parameters
from .observe import make_observation_reply, observe, observe_parts, run_backward
from .outputs import CellOutputBuffer, OutputLimits, describe_error
from .real_types import is_a, read_attributes
from .values import Packer, Unpacker, walk_tensors
from .wire import Wire
from .withheld_functions import WithheldFunctions

_RECURSION = 1000
_NONE: Mapping[str, Any] = {}


class RequestServer:
    """One child's answers.

    Args:
        wire: to the judge.
        shell: holds what the cells defined.
        attempts: what the audit hook noticed.
        limits: of what the cells show and of a reply's tensors, by name.
        device: where the cells' functions compute.
        records: of the course that cross the wire, by the class's name its module.
    """

    def __init__(
        self,
        wire: Wire,
        shell: Any,
        attempts: Attempts,
        limits: Mapping[str, int],
        device: torch.device = compute.CPU,
        records: Mapping[str, str] = _NONE,
    ) -> None:
        self._device, self._has_moved = device, False
        self._records = records
        self._wire = wire
        self._cells, self._variables, self._answered = Cells(shell), shell.user_ns, dict[str, None]()
        self._attempts = attempts
        self._withheld = WithheldFunctions(self._cells.find_code_objects)
        self._callbacks = Callbacks(self._ask_judge)
        self._modules: list[nn.Module] = []
        self._outputs: dict[int, list[Tensor]] = {}
        self._number = 0
        self._longest = 2 * limits["cell_chars"]  # with the notes that are added
        self._most_bytes = limits["reply_bytes"]
        shell.output_buffer = CellOutputBuffer(
            OutputLimits(limits["cell_chars"], limits["all_chars"], limits["pictures"], limits["picture_bytes"])
        )

    def serve(self) -> None:
        """Answer until the judge hangs up."""
        while True:
            body, tensors = self._wire.receive()
            self._number = body["number"]
            is_fixture = dict(body["request"]["dict"])["kind"] == "run_fixture"  # puts things where it wants them
            request, self._has_moved = self._unpack_value(body["request"], tensors, to_device=not is_fixture)
            seed = request.pop("seed", 0)  # None: the generators go on
            reset_torch_and_random(seed)
            compute.reset_device(self._device, seed)
            with self._attempts.pause_listening():
                self._withheld.withhold(request.pop("withheld"))
            self._send_message_to_judge(self._answer_request(request.pop("kind"), request))

    def _answer_request(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return _KINDS[kind](self, **request)
        except BaseException as error:  # a student's code may raise anything at all
            raised = describe_error(error)
            if why := self._cells.explain_missing_name(error):
                raised |= {"kinds": ["RuntimeError", "Exception"], "words": why}
            return {"raised": raised}

    def _send_message_to_judge(self, reply: dict[str, Any], key: str = "reply") -> None:
        """Send a reply or a question; a reply ends with the names of what was refused.

        They are read when all its tensors are bytes: to copy them may still run something of the student's.
        """
        strict = key == "reply" and self._has_moved
        packer = Packer(self._longest, self._most_bytes, device=self._device, strict=strict, records=self._records)
        body = {"number": self._number, key: packer.pack(reply)}
        self._wire.send(body, packer.tensors, noted=self._collect_notes if key == "reply" else None)

    def _collect_notes(self) -> dict[str, Any]:
        answered, self._answered = list(self._answered), {}
        return {
            "called": withheld.pop_new_refusals(),
            "attempts": self._attempts.pop_new_attempts(),
            "answered": answered,
        }

    def _ask_judge(self, question: dict[str, Any]) -> dict[str, Any]:
        with torch_internals.Unseen():
            to_device = any(torch_internals.device(each) == self._device for each in walk_tensors(question))
        self._send_message_to_judge(question, "question")
        body, tensors = self._wire.receive()
        return self._unpack_value(body["answer"], tensors, to_device=to_device)[0]

    def _unpack_value(self, packed: Any, tensors: list[Tensor], to_device: bool) -> tuple[Any, bool]:
        """The value that was packed, and whether a tensor was moved: ``to_device`` puts the CPU's on the student's."""
        unpacker = Unpacker(
            tensors,
            as_function=self._callbacks.make_function,
            as_record=self._make_record,
            trusting=True,
            device=self._device if to_device else compute.CPU,
        )
        with torch_internals.Unseen():
            return unpacker.unpack(packed), unpacker.has_moved

    def _make_record(self, name: str, fields: Mapping[str, Any]) -> Any:
        return getattr(import_module(self._records[name]), name)(**fields)

    def _compile_cell(self, index: int, source: str, readable: bool) -> dict[str, Any]:
        self._cells.compile(index, source, readable)
        return {}

    def _run_cell(self, index: int, limit: float, until: int | None = None) -> dict[str, Any]:
        return self._cells.run(index, limit, until)

    def _define_from_bytecode(self, code: str) -> dict[str, Any]:
        """Define what the judge has compiled: there is no text of it in this process."""
        exec(marshal.loads(base64.b85decode(code)), self._variables)
        return {}

    def _call_function(
        self, name: str, inputs: tuple[Any, ...], options: Mapping[str, Any] = _NONE, gradients: bool = False
    ) -> dict[str, Any]:
        return make_observation_reply(observe(self._find_object(name), inputs, options, gradients))

    def _run_fixture(self, name: str, fixture: str, fields: dict[str, Any]) -> dict[str, Any]:
        if fields.get("device") == "cpu":  # as the judge calls the device of the student's code
            fields["device"] = str(self._device)
        from exercise_kit.engine.training_fixtures import get_fixture  # the student's view of the course

        return {"result": get_fixture(fixture)(self._find_object(name), **fields)}

    def _build_module(self, name: str, inputs: tuple[Any, ...], options: Mapping[str, Any] = _NONE) -> dict[str, Any]:
        made = self._find_object(name)(*inputs, **options)
        if not is_a(made, nn.Module):
            return {"result": made}
        made = read_attributes(made)["_modules"].get("_orig_mod", made)  # torch.compile keeps it there
        self._modules.append(made if self._device == compute.CPU else made.to(self._device))
        number = len(self._modules) - 1
        with contextlib.suppress(Exception):  # whoever needs its parameters gets the error then
            return {"module": number, **self._list_parameters(number)}
        return {"module": number}

    def _list_parameters(self, module: int) -> dict[str, Any]:
        held = self._modules[module].state_dict(keep_vars=True)
        lazy = [name for name, tensor in held.items() if torch_internals.is_lazy(tensor)]
        with torch_internals.Unseen():
            sizes = {name: [] if name in lazy else list(torch_internals.shape(each)) for name, each in held.items()}
        parameters = {name: each for name, each in sizes.items() if torch_internals.is_parameter(held[name])}
        buffers = {name: each for name, each in sizes.items() if name not in parameters}
        return {"parameters": parameters, "lazy": lazy, "buffers": buffers}

    def _load_weights(self, module: int, weights: dict[str, Tensor]) -> dict[str, Any]:
        held = self._modules[module].state_dict(keep_vars=True)
        with torch.no_grad(), torch_internals.Unseen():
            for name, tensor in weights.items():
                torch_internals.copy_into(held[name], tensor)
        return {}

    def _read_state(self, module: int) -> dict[str, Any]:
        return {"tensors": dict(self._modules[module].state_dict())}

    def _run_forward(
        self, module: int, inputs: tuple[Any, ...], options: Mapping[str, Any] = _NONE, gradients: bool = False
    ) -> dict[str, Any]:
        seen = observe(self._modules[module], inputs, options, gradients)
        self._outputs[module] = list(walk_tensors(seen.result))
        return make_observation_reply(seen)

    def _observe_parts(
        self, module: int, names: list[str], inputs: tuple[Any, ...], options: Mapping[str, Any] = _NONE
    ) -> dict[str, Any]:
        return {"parts": observe_parts(self._modules[module], names, inputs, options)}

    def _run_backward(self, module: int, cotangents: list[Tensor | None]) -> dict[str, Any]:
        held = list_named_parameters(self._modules[module])
        with torch_internals.Unseen():
            for parameter in held.values():
                torch_internals.set_gradient(parameter, None)
            outputs = [torch_internals.make_differentiable(each) for each in self._outputs.get(module, [])]
        if len(cotangents) != len(outputs):  # the judge counts those that need a gradient, the worker all of them
            outputs = [output for output in outputs if output is not None]
        run_backward(outputs, cotangents)
        with torch_internals.Unseen():
            return {"gradients": {name: torch_internals.gradient(each) for name, each in held.items()}}

    def _cast_module(self, module: int, dtype: torch.dtype) -> dict[str, Any]:
        self._modules[module] = self._modules[module].to(dtype)
        return {}

    def _move_module(self, module: int, device: str) -> dict[str, Any]:
        self._modules[module] = self._modules[module].to(self._device if device == "cpu" else device)
        return {}

    def _set_training_mode(self, module: int, training: bool) -> dict[str, Any]:
        self._modules[module].train(training)
        return {}

    def _describe_defined_names(self, names: list[str]) -> dict[str, Any]:
        return {"defined": {name: self._find_kind_of_name(name) for name in names}}

    def _find_kind_of_name(self, name: str) -> str | None:
        if name not in self._variables:
            return None
        thing = self._variables[name]
        return "class" if is_a(thing, type) else "function" if callable(thing) else "other"

    def _find_object(self, name: str) -> Any:
        if name not in self._variables:
            raise NameError(f"name {name!r} is not defined")
        self._answered |= dict.fromkeys(self._cells.list_code_places(name, self._variables[name]))
        return self._variables[name]


_KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "compile": RequestServer._compile_cell,
    "cell": RequestServer._run_cell,
    "define_without_source": RequestServer._define_from_bytecode,
    "call": RequestServer._call_function,
    "run_fixture": RequestServer._run_fixture,
    "build": RequestServer._build_module,
    "parameters": RequestServer._list_parameters,
    "load": RequestServer._load_weights,
    "state": RequestServer._read_state,
    "forward": RequestServer._run_forward,
    "parts": RequestServer._observe_parts,
    "backward": RequestServer._run_backward,
    "cast": RequestServer._cast_module,
    "move": RequestServer._move_module,
    "mode": RequestServer._set_training_mode,
    "defined": RequestServer._describe_defined_names,
}


def reset_torch_and_random(seed: int | None = 0) -> None:
    """Torch and the random generators as at a fresh start, whatever a cell or a call has set.

    Args:
        seed: what the generators begin with; None lets them go on.
    """
    if sys.gettrace() is not None:
        sys.settrace(None)
    if sys.getrecursionlimit() != _RECURSION:
        sys.setrecursionlimit(_RECURSION)
    if torch.get_default_dtype() != torch.float32:
        torch.set_default_dtype(torch.float32)
    if getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None) is not None:
        torch.set_default_device(None)
    while torch._C._len_torch_function_stack():  # a mode or a device that was entered for good
        torch._C._pop_torch_function_stack()
    if not torch.is_grad_enabled():
        torch.set_grad_enabled(True)
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    if seed is not None:
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % (1 << 32))


Query = Callable[[dict[str, Any]], dict[str, Any]]


class Callbacks:
    """Makes functions that ask the judge.

    Args:
        query: sends a question of these fields and gives the judge's answer.
    """

    def __init__(self, query: Query) -> None:
        self._ask = query
        self._lock = threading.Lock()

    def make_function(self, number: int) -> Callable[..., Any]:
        """The judge's callable ``number``, as a function of tensors that can be differentiated."""

        def ask_judge(*inputs: Any, **options: Any) -> Any:
            tensors = list(walk_tensors((inputs, options)))
            if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)):
                return self._call_judge_function(number, inputs, options, False)["result"]
            box: dict[str, Any] = {}
            outputs = iter(_JudgeCall.apply(self, box, number, inputs, options, *tensors))
            return _replace_tensors(box["result"], outputs)

        return ask_judge

    def _call_judge_function(self, number: int, inputs: Any, options: Any, gradients: bool) -> dict[str, Any]:
        question = {"callback": number, "inputs": inputs, "options": options, "gradients": gradients}
        answer = self._ask_or_raise(question)
        tensors = list(walk_tensors((inputs, options)))
        with torch.no_grad():
            for place, written in answer["changed"]:
                with contextlib.suppress(RuntimeError):  # an expanded tensor has no place for every number
                    tensors[place].copy_(written)
        return answer

    def _ask_or_raise(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            answer = self._ask(question)
        if "raised" in answer:
            raise _make_exception(answer["raised"])
        return answer


class _JudgeCall(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, callbacks: Callbacks, box: dict[str, Any], number: int, inputs: Any, options: Any, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        answer = callbacks._call_judge_function(number, inputs, options, True)
        box["result"] = answer["result"]
        outputs = tuple(walk_tensors(answer["result"]))
        ctx.callbacks, ctx.call = callbacks, answer["call"]
        ctx.mark_non_differentiable(*(output for output in outputs if not output.is_floating_point()))
        return outputs

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        question = {"callback_gradients": ctx.call, "cotangents": list(cotangents)}
        gradients = ctx.callbacks._ask_or_raise(question)["gradients"]
        return None, None, None, None, None, *gradients


def _replace_tensors(value: Any, outputs: Any) -> Any:
    """``value`` with the tensors of ``outputs`` in the place of its own."""
    if isinstance(value, Tensor):
        return next(outputs)
    if isinstance(value, tuple | list):
        return type(value)(_replace_tensors(each, outputs) for each in value)
    if isinstance(value, dict):
        return {key: _replace_tensors(each, outputs) for key, each in value.items()}
    return value


def _make_exception(raised: dict[str, Any]) -> Exception:
    kinds = (getattr(builtins, kind, None) for kind in raised["kinds"])
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Exception):
            return kind(raised["words"])
    return RuntimeError(raised["words"])
