"""Python values as JSON and tensors, packed at one end and unpacked at the other.

None, bools, ints, finite floats, text and lists are JSON's own; everything else is an object whose key says what it is
("tuple", "dict", "tensor", "layer", "model", "record", "callable", ...). A student's code may return objects of any
class, so :class:`Packer` looks at real types alone. What it cannot take apart is sent as a name and a few words
(:class:`worker.values.Other`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import module_values, torch_internals
from .device import CPU
from .real_types import is_a, read_attributes, read_class_name
from .wire import DTYPES, WireError, are_valid_sizes

_DEEPEST, _MOST, _LONGEST, _LONGEST_LIST = 8, 4000, 4000, 1000
_MOST_TENSORS = 4000  # of one frame; wire.Caps allows a few more
_WithoutGradients = torch.no_grad


class Packer:
    """Collects what one frame carries: :meth:`pack` gives the JSON of a value, ``tensors`` and ``callables`` the rest.

    A tensor that is packed twice is sent once, and arrives as one tensor.

    Args:
        longest: characters of a text that are kept.
        most_bytes: what all tensors together may hold; a tensor beyond it is only described.
        with_callables: send a function as a number, by which the other end can request a call of it.
        device: of the student's code; its tensors arrive on the CPU.
        strict: only describe a tensor that is on the CPU instead of the device.
    """

    def __init__(
        self,
        longest: int = _LONGEST,
        most_bytes: int = 1 << 40,
        *,
        with_callables: bool = False,
        device: torch.device = CPU,
        strict: bool = False,
        records: Collection[str] = (),
    ) -> None:
        self._records = frozenset(records)
        self._device, self._strict = device, strict
        self._longest = longest
        self._bytes_left = most_bytes
        self._with_callables = with_callables
        self.tensors: list[Tensor] = []
        self.callables: list[Callable[..., Any]] = []
        self._seen: dict[int, tuple[Tensor, dict[str, Any]]] = {}
        self._count = 0

    def pack(self, value: Any, depth: int = 0) -> Any:
        """``value`` as JSON; whatever it is and does, an :class:`Other` at worst."""
        self._count += 1
        try:
            if depth <= _DEEPEST and self._count <= _MOST:
                return self._pack_value(value, depth)
        except MemoryError:
            raise
        except Exception:  # a student's object may raise from any method
            return _pack_as_opaque(value)
        return _pack_as_opaque(value)

    def _pack_value(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if is_a(value, Tensor):
            return self._pack_tensor(value)
        if is_a(value, np.number, np.bool_):
            return self._pack_value(np.generic.item(value), depth)
        for kind, pack in _PLAIN.items():
            if is_a(value, kind):
                return pack(self, value, depth)
        if is_a(value, nn.Module):
            return self._pack_module(value)
        if type(value) is torch.dtype and value in DTYPES.values():
            return {"dtype": str(value).removeprefix("torch.")}
        if (name := read_class_name(type(value))) in self._records:
            return {
                "record": name,
                "fields": {key: self.pack(each, depth + 1) for key, each in read_attributes(value).items()},
            }
        if self._with_callables and callable(value) and not is_a(value, type):
            self.callables.append(value)
            return {"callable": len(self.callables) - 1}
        return _pack_as_opaque(value)

    def _pack_number(self, number: Any, _: int = 0) -> Any:
        if is_a(number, int):
            whole = int.__index__(number)
            return whole if -(1 << 63) <= whole < 1 << 64 else _pack_as_opaque(number)
        real = float.__float__(number)
        return real if math.isfinite(real) else {"float": str(real)}

    def _pack_text(self, text: str, _: int) -> str:
        return str.__str__(text)[: self._longest]

    def _pack_list(self, values: list[Any], depth: int) -> Any:
        if list.__len__(values) > _LONGEST_LIST:
            return {"other": "list", "text": str(list.__len__(values))}
        return [self.pack(each, depth + 1) for each in list.__iter__(values)]

    def _pack_tuple(self, values: tuple[Any, ...], depth: int) -> Any:
        if tuple.__len__(values) > _LONGEST_LIST:
            return {"other": "tuple", "text": str(tuple.__len__(values))}
        return {"tuple": [self.pack(each, depth + 1) for each in tuple.__iter__(values)]}

    def _pack_dict(self, values: dict[Any, Any], depth: int) -> Any:
        items = list(dict.items(values))
        if not all(is_a(key, str) for key, _ in items):
            return _pack_as_opaque(values)
        return {"dict": [[self._pack_text(key, 0), self.pack(each, depth + 1)] for key, each in items]}

    def _pack_tensor(self, tensor: Tensor) -> Any:
        if id(tensor) in self._seen:
            return self._seen[id(tensor)][1]
        with torch_internals.Unseen(), _WithoutGradients():
            if (
                oddity := _describe_unsupported_tensor(tensor)
                or self._describe_stray_device(tensor)
                or self._describe_too_large(tensor)
            ):
                return {"other": "Tensor", "text": oddity}
            packed: dict[str, Any] = {"tensor": len(self.tensors)}
            if not torch_internals.is_contiguous(tensor):
                packed["strides"] = list(torch_internals.stride(tensor))
            if (device := torch_internals.device(tensor)).type != "cpu" and device != self._device:
                packed["device"] = str(device)
            if torch_internals.requires_grad(tensor):
                packed["grad"] = True
            self.tensors.append(torch_internals.detach_to_cpu(tensor))
            self._bytes_left -= _count_bytes(tensor)
        self._seen[id(tensor)] = (tensor, packed)
        return packed

    def _describe_stray_device(self, tensor: Tensor) -> str:
        device = torch_internals.device(tensor)
        known = device in (CPU, self._device) or (self._device == CPU and device.type == "cuda")
        strayed = self._strict and device != self._device
        return f"a tensor on the device {device}" if strayed or not known else ""

    def _describe_too_large(self, tensor: Tensor) -> str:
        if _count_bytes(tensor) <= self._bytes_left and len(self.tensors) < _MOST_TENSORS:
            return ""
        return f"a tensor of shape {tuple(torch_internals.shape(tensor))}, too large to be looked at"

    def _pack_module(self, module: nn.Module) -> Any:
        parameters = module_values.list_named_parameters(module)
        settings = module_values.describe_layer(module, parameters)
        if not settings and not module_values.can_hold_parameters(parameters):
            return _pack_as_opaque(module)
        strict, self._strict = self._strict, False  # a layer may be moved by whoever gets it
        weights = {name: self._pack_tensor(tensor) for name, tensor in parameters.items()}
        self._strict = strict
        if any("tensor" not in packed for packed in weights.values()):
            return _pack_as_opaque(module)
        return (
            {**settings, "weights": weights} if settings else {"model": weights, "kind": read_class_name(type(module))}
        )


_PLAIN: dict[type, Callable[[Packer, Any, int], Any]] = {
    int: Packer._pack_number,
    float: Packer._pack_number,
    str: Packer._pack_text,
    list: Packer._pack_list,
    tuple: Packer._pack_tuple,
    dict: Packer._pack_dict,
}


def _describe_unsupported_tensor(tensor: Tensor) -> str:
    if torch_internals.is_lazy(tensor):
        return "a tensor without a shape"
    if torch_internals.has_torch_dispatch(tensor):
        return f"a {read_class_name(type(tensor))}"
    if torch_internals.is_nested(tensor):
        return "a nested tensor"
    if (layout := torch_internals.layout(tensor)) != torch.strided:
        return f"a tensor of layout {str(layout).removeprefix('torch.')}"
    dtype = torch_internals.dtype(tensor)
    if torch_internals.is_quantized(tensor) or torch_internals.is_complex(tensor) or dtype not in DTYPES.values():
        return f"a tensor of dtype {str(dtype).removeprefix('torch.')}"
    if torch_internals.ndim(tensor) > 16:
        return f"a tensor of {torch_internals.ndim(tensor)} axes"
    sizes = list(torch_internals.shape(tensor))
    return "" if are_valid_sizes(sizes) else f"a tensor of shape {tuple(sizes)}"


def _count_bytes(tensor: Tensor) -> int:
    return torch_internals.numel(tensor) * torch_internals.itemsize(tensor)


def _pack_as_opaque(value: Any) -> dict[str, str]:
    kind = read_class_name(type(value))
    try:
        text = str.__str__(repr(value))[:200]
    except MemoryError:
        raise
    except BaseException:
        text = f"a {kind}"
    return {"other": kind, "text": text}


def walk_tensors(value: Any) -> Iterator[Tensor]:
    """Every tensor in a result: itself, or those of a tuple, list or dict, in order."""
    if is_a(value, Tensor):
        yield value
    elif is_a(value, list, tuple):
        for each in (list if is_a(value, list) else tuple).__iter__(value):
            yield from walk_tensors(each)
    elif is_a(value, dict):
        for each in dict.values(value):
            yield from walk_tensors(each)


_DAMAGE = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    AssertionError,
    OverflowError,
    RuntimeError,
)


@dataclass(frozen=True)
class Other:
    """A value that does not cross: the name of its class, and a short text about it."""

    kind: str
    text: str

    def __repr__(self) -> str:
        return self.text


class Unpacker:
    """Makes values again from the JSON and the ``tensors`` of one frame.

    Args:
        tensors: the frame's.
        as_function: what a callable's number becomes (in the worker: a function that asks the judge).
        as_record: makes a course's record, as a config, of its class's name and its fields (in the worker).
        trusting: keep the strides of tensors; at the judge's end they arrive contiguous.
        device: where tensors of the CPU are put (in the worker).

    Attributes: ``has_moved``, whether any was put on another device.
    """

    def __init__(
        self,
        tensors: list[Tensor],
        *,
        as_function: Callable[[int], Any] | None = None,
        as_record: Callable[[str, Mapping[str, Any]], Any] | None = None,
        trusting: bool = False,
        device: torch.device = CPU,
    ) -> None:
        self.has_moved = False
        self._device = device
        self._tensors = tensors
        self._made: dict[int, Tensor] = {}
        self._as_function = as_function or (lambda _: Other("function", "a function"))
        self._as_record = as_record or (lambda name, _: Other(name, f"a {name}"))
        self._trusting = trusting

    def unpack(self, packed: Any) -> Any:
        """The value that was packed; WireError when this is no packed value."""
        try:
            return self._unpack_value(packed)
        except RecursionError:
            raise WireError("a value is nested too deeply") from None
        except _DAMAGE as error:
            raise WireError(f"a value is not as one is packed: {type(error).__name__}") from None

    def _unpack_value(self, packed: Any) -> Any:
        if packed is None or isinstance(packed, bool | int | float | str):
            return packed
        if isinstance(packed, list):
            return [self._unpack_value(each) for each in packed]
        for key, unpack in _UNPACKERS.items():
            if key in packed:
                return unpack(self, packed)
        raise WireError("a value of no known kind")

    def _unpack_tensor(self, packed: dict[str, Any]) -> Tensor:
        number = packed["tensor"]
        if type(number) is not int or not 0 <= number < len(self._tensors):
            raise WireError("a tensor that is not there")
        if number not in self._made:
            self._made[number] = self._restore_strides(self._tensors[number], packed)
        return self._made[number]

    def _restore_strides(self, tensor: Tensor, packed: dict[str, Any]) -> Tensor:
        device = torch.device(packed.get("device", "cpu"))
        if device.type != "cpu" and not (self._trusting or torch.cuda.is_initialized()):
            raise WireError("a device that nobody has asked for")
        if device.type == "cpu" and self._device != CPU:
            device, self.has_moved = self._device, True
        if device.type != "cpu":
            tensor = tensor.to(device)
        if self._trusting:
            tensor = _copy_with_strides(tensor, packed.get("strides"))
        return tensor.requires_grad_(packed.get("grad") is True)

    def _unpack_dict(self, packed: dict[str, Any]) -> dict[str, Any]:
        return {_require_text(key): self._unpack_value(each) for key, each in packed["dict"]}

    def _unpack_layer(self, packed: dict[str, Any]) -> nn.Module:
        weights = {name: self._unpack_tensor(each) for name, each in packed["weights"].items()}
        return module_values.build_layer({name: each for name, each in packed.items() if name != "weights"}, weights)

    def _unpack_model(self, packed: dict[str, Any]) -> nn.Module:
        weights = {name: self._unpack_tensor(each) for name, each in packed["model"].items()}
        return module_values.NamedParameters(weights, _require_text(packed["kind"]))

    def _unpack_record(self, packed: dict[str, Any]) -> Any:
        fields = {name: self._unpack_value(each) for name, each in packed["fields"].items()}
        return self._as_record(_require_text(packed["record"])[:80], fields)


_UNPACKERS: dict[str, Callable[[Unpacker, dict[str, Any]], Any]] = {
    "tensor": Unpacker._unpack_tensor,
    "tuple": lambda self, packed: tuple(self._unpack_value(each) for each in packed["tuple"]),
    "dict": Unpacker._unpack_dict,
    "float": lambda _, packed: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[packed["float"]],
    "dtype": lambda _, packed: DTYPES[packed["dtype"]],
    "layer": Unpacker._unpack_layer,
    "model": Unpacker._unpack_model,
    "record": Unpacker._unpack_record,
    "callable": lambda self, packed: self._as_function(packed["callable"]),
    "other": lambda _, packed: Other(_require_text(packed["other"]), _require_text(packed["text"])),
}


def _require_text(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError("text was expected")
    return value


def _copy_with_strides(tensor: Tensor, strides: list[int] | None) -> Tensor:
    """A copy of ``tensor`` that lies in memory as ``strides`` tell; as it is where there are none."""
    if strides is None:
        return tensor
    once = [1 if stride == 0 else size for size, stride in zip(tensor.shape, strides, strict=True)]
    room = torch.empty_strided(once, strides, dtype=tensor.dtype, device=tensor.device)
    try:
        room.copy_(tensor[tuple(slice(0, size) for size in once)])
    except RuntimeError:  # several of its numbers share one place, as in an unfolded tensor
        return tensor
    return room.expand(tensor.shape)
