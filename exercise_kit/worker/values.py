"""Python values as JSON and tensors, packed at one end (:mod:`packing`) and unpacked at the other.

None, bools, ints, finite floats, text and lists are JSON's own; everything else is an object with one telling key
("tuple", "dict", "tensor", "layer", "model", "record", "callable", ...).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import layers
from .compute import CPU
from .wire import DTYPES, WireError

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
            return self._unpacked(packed)
        except RecursionError:
            raise WireError("a value is nested too deeply") from None
        except _DAMAGE as error:
            raise WireError(f"a value is not as one is packed: {type(error).__name__}") from None

    def _unpacked(self, packed: Any) -> Any:
        if packed is None or isinstance(packed, bool | int | float | str):
            return packed
        if isinstance(packed, list):
            return [self._unpacked(each) for each in packed]
        for key, unpack in _TELLING.items():
            if key in packed:
                return unpack(self, packed)
        raise WireError("a value of no known kind")

    def _tensor(self, packed: dict[str, Any]) -> Tensor:
        number = packed["tensor"]
        if type(number) is not int or not 0 <= number < len(self._tensors):
            raise WireError("a tensor that is not there")
        if number not in self._made:
            self._made[number] = self._as_it_lay(self._tensors[number], packed)
        return self._made[number]

    def _as_it_lay(self, tensor: Tensor, packed: dict[str, Any]) -> Tensor:
        device = torch.device(packed.get("device", "cpu"))
        if device.type != "cpu" and not (self._trusting or torch.cuda.is_initialized()):
            raise WireError("a device that nobody has asked for")
        if device.type == "cpu" and self._device != CPU:
            device, self.has_moved = self._device, True
        if device.type != "cpu":
            tensor = tensor.to(device)
        if self._trusting:
            tensor = _strided(tensor, packed.get("strides"))
        return tensor.requires_grad_(packed.get("grad") is True)

    def _dict(self, packed: dict[str, Any]) -> dict[str, Any]:
        return {_text(key): self._unpacked(each) for key, each in packed["dict"]}

    def _layer(self, packed: dict[str, Any]) -> nn.Module:
        weights = {name: self._tensor(each) for name, each in packed["weights"].items()}
        return layers.layer_of({name: each for name, each in packed.items() if name != "weights"}, weights)

    def _model(self, packed: dict[str, Any]) -> nn.Module:
        weights = {name: self._tensor(each) for name, each in packed["model"].items()}
        return layers.NamedParameters(weights, _text(packed["kind"]))

    def _record(self, packed: dict[str, Any]) -> Any:
        fields = {name: self._unpacked(each) for name, each in packed["fields"].items()}
        return self._as_record(_text(packed["record"])[:80], fields)


_TELLING: dict[str, Callable[[Unpacker, dict[str, Any]], Any]] = {
    "tensor": Unpacker._tensor,
    "tuple": lambda self, packed: tuple(self._unpacked(each) for each in packed["tuple"]),
    "dict": Unpacker._dict,
    "float": lambda _, packed: {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[packed["float"]],
    "dtype": lambda _, packed: DTYPES[packed["dtype"]],
    "layer": Unpacker._layer,
    "model": Unpacker._model,
    "record": Unpacker._record,
    "callable": lambda self, packed: self._as_function(packed["callable"]),
    "other": lambda _, packed: Other(_text(packed["other"]), _text(packed["text"])),
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise WireError("text was expected")
    return value


def _strided(tensor: Tensor, strides: list[int] | None) -> Tensor:
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
