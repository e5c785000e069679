"""Training fixtures: each tries out a student's function in surroundings of its own, and notes what it does.

They run beside the student's code, in the kernel or in a worker. So they hold no answer, judge nothing and import
of the package `dispatch_mode` alone, and the judge can copy both files into the sandbox as they are. There are four
kinds: what calls leave behind (in earlier results, in torch's settings, in modules' modes), another device, a
docstring's example, and those that a course adds.

The other device is torch's "meta": it has shapes and dtypes and no numbers. Meta tensors alone would accept much that a
GPU refuses, ``torch.bmm`` with one matrix on the CPU for instance, so :class:`OtherDevice` looks at every operator.
"""

from __future__ import annotations

import ast
import copy
import linecache
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from exercise_kit.engine.dispatch_mode import DispatchMode


def call_repeatedly(function: Callable[..., Any], inputs: Sequence[Any], others: Sequence[Any]) -> dict[str, Any]:
    """Call the function with ``inputs`` and with ``others``, overwrite its first result, and call it as at first.

    Returns:
        Lists of tensors: "first", the first result at once; "kept", the same after the second call; "again", the last
        result. "settings", torch's settings that the calls have changed.
    """
    before = _read_torch_settings()
    given = function(*_copy_tensors(inputs))
    first = _copy_tensors(list(iterate_tensors(given)))
    function(*_copy_tensors(others))
    kept = _copy_tensors(list(iterate_tensors(given)))
    for each in iterate_tensors(given):
        with torch.no_grad(), suppress(RuntimeError):  # an expanded tensor cannot be written to
            each.fill_(3)
    again = _copy_tensors(list(iterate_tensors(function(*_copy_tensors(inputs)))))
    changed = [name for name, value in _read_torch_settings().items() if value != before[name]]
    return {"first": first, "kept": kept, "again": again, "settings": changed}


def _read_torch_settings() -> dict[str, Any]:
    return {
        "the default dtype": torch.get_default_dtype(),
        "the default device": torch.get_default_device(),
        "the recording of gradients": torch.is_grad_enabled(),
        "the use of deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }


def _copy_tensors(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    return type(value)(map(_copy_tensors, value)) if type(value) in (list, tuple) else value


def call_in_both_modes(function: Callable[..., Any], arguments: Sequence[Any], inputs: Sequence[Any]) -> dict[str, Any]:
    """Make a module by ``function(*arguments)`` and call it with ``inputs``, in training mode and in evaluation mode.

    Returns:
        "changed", the names of the parts that forward puts into another mode, "" for the module itself.
    """
    module = function(*arguments)
    changed: dict[str, None] = {}
    for training in (True, False):
        module.train(training)
        module(*_copy_tensors(inputs))
        changed |= dict.fromkeys(name for name, part in module.named_modules() if part.training is not training)
    return {"changed": list(changed)}


_CALLS: dict[str, Callable[..., dict[str, Any]]] = {"in_a_row": call_repeatedly, "modes": call_in_both_modes}


DEVICE = "meta"
# in torch's words for it; TorchScript tells nothing of what has stopped it
_REFUSED = (
    *("is not on the expected device", "to be on the same device", "to have the same device"),
    "device type for generator",
)
_SCRIPT = "failed in the TorchScript interpreter"
# functions in which no call is seen; a worker has neither, and they are looked for before any of a student's code runs
_COMPILES, _COMPILED = os.environ.get("TORCHDYNAMO_DISABLE") != "1", "_torchdynamo_orig_callable"
_aten = torch.ops.aten
_INDEXED = (_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_)
_COPIES = (_aten.copy_, _aten._to_copy)


class TwoDevicesError(RuntimeError):
    """An operator was given tensors of two devices."""


class OtherDevice(DispatchMode):
    """While it is entered, operators refuse the same mixes of CPU tensors and the device's tensors as on a GPU.

    As on a GPU, a CPU tensor without axes counts as a number, CPU indices may index, and copying between devices is
    allowed; what is copied to the CPU arrives as zeros. A generator of the CPU cannot draw numbers there.

    Attributes:
        refused: whether an operator was refused.
        copied: whether numbers were copied to the CPU.
    """

    refused = copied = False

    def __torch_dispatch__(self, operator: Any, _: Any, inputs: Any = (), options: Any = None) -> Any:
        """Run one operator, or raise :class:`TwoDevicesError`."""
        options = options or {}
        packet = getattr(operator, "overloadpacket", operator)
        if packet in _COPIES:
            self.copied |= _copies_to_cpu(packet, inputs, options)
            return _run_copy_operator(operator, packet, inputs, options)
        given = [*iterate_tensors((*inputs, options))]
        if packet in _INDEXED and inputs[0].device.type == DEVICE:
            given = [inputs[0], *iterate_tensors(inputs[2:])]
        here = [each for each in given if each.device.type == "cpu" and each.dim()]
        there = any(each.device.type == DEVICE for each in given)
        if (here and there) or (
            _is_cpu_generator(options.get("generator")) and (there or _makes_tensor_on_device(options))
        ):
            self.refused = True
            raise TwoDevicesError("Expected all tensors to be on the same device, but found at least two devices")
        in_place = _is_in_place(operator, inputs)
        if there and options.get("device") is None and (in_place or _makes_new_tensors(operator, inputs)):
            made = operator(*tree_map(_make_cpu_zeros_like, inputs), **tree_map(_make_cpu_zeros_like, options))
            return inputs[0] if in_place else tree_map(_move_to_device, made)
        return operator(*inputs, **options)


def _makes_new_tensors(operator: Any, inputs: Any) -> bool:
    """Say whether an operator makes new tensors, of shapes that no number decides: zeros on the CPU give the same ones.

    Meta's own way to them goes through torch's compiler for a division or a product of matrices, and to import that
    takes longer than all checks.
    """
    schema = getattr(operator, "_schema", None)
    by_numbers = (torch.Tag.dynamic_output_shape, torch.Tag.data_dependent_output)
    if schema is None or (
        any(each in operator.tags for each in by_numbers) and not _is_indexing_without_mask(operator, inputs)
    ):
        return False
    return all(each.alias_info is None for each in (*schema.arguments, *schema.returns))


def _is_in_place(operator: Any, inputs: Any) -> bool:
    """Say whether an operator writes float numbers into its first tensor, which is there, and returns it, as ``div_``.

    Indexing is left to meta: how many numbers a mask takes depends on its own. So are integers: zeros would be divided.
    """
    schema = getattr(operator, "_schema", None)
    if schema is None or not schema.arguments or torch.Tag.inplace_view in operator.tags:
        return False
    written = schema.arguments[0].alias_info
    if written is None or not written.is_write or operator.overloadpacket in _INDEXED:
        return False
    into = inputs[0]
    return isinstance(into, Tensor) and into.device.type == DEVICE and into.is_floating_point()


def _is_indexing_without_mask(operator: Any, inputs: Any) -> bool:
    """Say whether it is an indexing without a mask, whose numbers would decide how many are taken."""
    return operator.overloadpacket is _aten.index and all(
        each.dtype not in (torch.bool, torch.uint8) for each in iterate_tensors(inputs[1])
    )


def _make_cpu_zeros_like(value: Any) -> Any:
    if not isinstance(value, Tensor) or value.device.type != DEVICE:
        return value
    sides = list(zip(value.shape, value.stride(), strict=True))
    reach = 1 + sum((side - 1) * stride for side, stride in sides) if value.numel() else 0
    return torch.zeros(reach, dtype=value.dtype).as_strided(value.shape, value.stride())


def _is_cpu_generator(generator: Any) -> bool:
    return isinstance(generator, torch.Generator) and generator.device.type == "cpu"


def _makes_tensor_on_device(options: Mapping[str, Any]) -> bool:
    """Say whether an operator of these options makes a tensor on the other device."""
    device = options.get("device")
    return device is not None and torch.device(device).type == DEVICE


def _copies_to_cpu(packet: Any, inputs: Any, options: Mapping[str, Any]) -> bool:
    source = inputs[1] if packet is _aten.copy_ else inputs[0]
    target = inputs[0].device if packet is _aten.copy_ else options.get("device")
    return source.device.type == DEVICE and target is not None and torch.device(target).type == "cpu"


def _run_copy_operator(operator: Any, packet: Any, inputs: Any, options: Mapping[str, Any]) -> Any:
    if not _copies_to_cpu(packet, inputs, options):
        return operator(*inputs, **options)
    if packet is _aten.copy_:
        return inputs[0]
    return torch.zeros(inputs[0].shape, dtype=options.get("dtype") or inputs[0].dtype, device="cpu")


class Calls(TorchFunctionMode):
    """While it is entered, it counts the functions of torch that are called, by their names.

    Args:
        there: the other device, where that is what they are called on.

    Attributes:
        stopped: the name of the function in which numbers were read that the other device does not have.
    """

    def __init__(self, there: OtherDevice | None = None) -> None:
        super().__init__()
        self._there = there
        self._raised: tuple[str, Exception | None] = ("", None)
        self.counts, self.stopped = Counter[str](), ""

    def __torch_function__(self, function: Any, _: Any, inputs: Any = (), options: Any = None) -> Any:
        """Call the function, and note whether it ends in an exception."""
        name = getattr(function, "__name__", "")
        if not self.stopped:
            self.counts[name] += 1
        try:
            return function(*inputs, **(options or {}))
        except Exception as error:
            self._raised = name, error
            raise
        finally:
            if self._there and self._there.copied and not self.stopped:
                self.stopped = name

    def lacks_numbers(self, error: Exception, cpu_calls: Calls) -> bool:
        """Say whether code ended in ``error`` since it reads numbers, as its calls on the CPU, ``cpu_calls``, did too.

        What it raises by itself, or does on the other device alone, is its own.
        """
        stopped = self.stopped or (self._raised[0] if self._raised[1] is error else "")
        return bool(stopped) and self.counts[stopped] <= cpu_calls.counts[stopped]


def describe_device_exception(
    error: Exception, other_device: OtherDevice, device_calls: Calls, cpu_calls: Calls
) -> dict[str, Any]:
    """Note of an exception on the other device what :func:`call_on_other_device` tells."""
    words = str(error)
    mixed = any(each in words for each in _REFUSED) or (other_device.refused and _SCRIPT in words)
    read = device_calls.lacks_numbers(error, cpu_calls)
    return {"raised": type(error).__name__, "mixed": mixed, "read": read, "devices": []}


def call_on_other_device(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    arguments: Sequence[Any] | None = None,
    there: OtherDevice | None = None,
) -> dict[str, Any]:
    """Call ``function(*inputs, **options)`` with all tensors and modules among the inputs on another device.

    Args:
        arguments: make a module by ``function(*arguments)`` first, put it on the device, and call that.
        there: the other device, where it is to know more than every one does.

    Returns:
        "raised", the name of the exception's class, "" where there was none; "mixed", whether it was raised since
        tensors of two devices met; "read", whether it was raised for want of numbers; "devices", the kind of device of
        every tensor in the result.
    """
    there, here = there or OtherDevice(), Calls()
    calls = Calls(there)
    is_opaque = isinstance(function, torch.jit.ScriptFunction) or (_COMPILES and hasattr(function, _COMPILED))
    try:
        with suppress(Exception), nullcontext() if is_opaque else here:
            on_the_cpu = function if arguments is None else function(*arguments)
            on_the_cpu(*[_move_to_device(each, "cpu") for each in inputs], **(options or {}))
        called = function if arguments is None else function(*arguments).to(DEVICE)
        moved = [_move_to_device(each) for each in inputs]
        with nullcontext() if is_opaque else calls, there:
            result = called(*moved, **(options or {}))
    except Exception as error:
        notes = describe_device_exception(error, there, calls, here)
        return notes | {"read": notes["read"] or is_opaque}
    with torch._C.DisableTorchFunctionSubclass():
        places = [each.device.type for each in iterate_tensors(result)]
    return {"raised": "", "mixed": False, "read": False, "devices": places}


def _move_to_device(value: Any, device: str = DEVICE) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone() if device == "cpu" else value.detach().to(device)
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).to(device)
    if type(value) in (list, tuple):
        return type(value)(_move_to_device(each, device) for each in value)
    return {name: _move_to_device(each, device) for name, each in value.items()} if type(value) is dict else value


def iterate_tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a value: itself, or those of a list, tuple, dict or module."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.state_dict(keep_vars=True).values()
    elif isinstance(value, list | tuple):
        for each in value:
            yield from iterate_tensors(each)
    elif isinstance(value, Mapping):
        yield from iterate_tensors(list(value.values()))


_DEVICES: dict[str, Callable[..., dict[str, Any]]] = {"device": call_on_other_device}


_FILE = "<the example>"


def run_example(
    function: Callable[..., Any], name: str, source: str, imports: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run the statements of an example, in which ``function`` goes by ``name``.

    Args:
        source: the example's lines, without their prompts and without what they should give; they may use ``torch``,
            ``nn``, ``F``, ``math``.
        imports: by the other names that they use the modules that hold them; "" for a module of that name.

    Returns:
        "values", of every statement that is an expression, in order.
    """
    linecache.cache[_FILE] = (len(source), None, source.splitlines(keepends=True), _FILE)
    names: dict[str, Any] = {"torch": torch, "nn": nn, "F": F, "math": math}
    for each, module in (imports or {}).items():
        names[each] = getattr(import_module(module), each) if module else import_module(each)
    names[name] = _restore_defaults_after_call(function)
    values = []
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Expr):
            values.append(eval(compile(ast.Expression(statement.value), _FILE, "eval"), names))
        else:
            exec(compile(ast.Module([statement], []), _FILE, "exec"), names)
    return {"values": values}


def _restore_defaults_after_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; a default dtype or device that a call of it sets is not the example's."""

    def called(*inputs: Any, **options: Any) -> Any:
        dtype, device = torch.get_default_dtype(), torch.get_default_device()
        try:
            result = function(*inputs, **options)
            with torch._C.DisableTorchFunctionSubclass():  # a subclass of Tensor has methods of its own
                return result.as_subclass(torch.Tensor) if isinstance(result, torch.Tensor) else result
        finally:
            torch.set_default_dtype(dtype)
            if torch.get_default_device() != device:
                torch.set_default_device(device)

    return called


_EXAMPLE: dict[str, Callable[..., dict[str, Any]]] = {"example": run_example}
_FIXTURES: dict[str, Callable[..., dict[str, Any]]] = {**_DEVICES, **_EXAMPLE, **_CALLS}


def add_fixtures(modules: Iterable[str]) -> None:
    """Add the training fixtures of these modules, given by their dotted names; those of a later lesson may be missing.

    A worker does this before a student's cells run: they may leave nothing that imports.
    """
    for module in modules:
        try:
            _FIXTURES.update(import_module(module).FIXTURES)
        except ModuleNotFoundError as missing:
            if missing.name is None or not module.startswith(missing.name):
                raise


def get_fixture(name: str) -> Callable[..., dict[str, Any]]:
    """The training fixture of that name: it takes the student's function and named inputs, and returns what it saw.

    Raises:
        KeyError: there is none, or it is of a later lesson than this sandbox's.
    """
    return _FIXTURES[name]
