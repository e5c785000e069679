"""Another device on every machine: a student's code runs with tensors that are not on the CPU, by the rules of a GPU.

The device is torch's "meta": it has shapes and dtypes and no numbers. Meta tensors alone would let much pass that a
GPU refuses, ``torch.bmm`` with one matrix on the CPU for instance, so :class:`OtherDevice` looks at every operator.
This runs beside a student's code, imports nothing else of the package, holds no answer, and judges nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

DEVICE = "meta"
# in torch's words for it; TorchScript tells nothing of what has stopped it
_REFUSED = ("is not on the expected device", "to be on the same device", "to have the same device")
_SCRIPT = "failed in the TorchScript interpreter"
_aten = torch.ops.aten
_INDEXED = (_aten.index, _aten.index_put, _aten.index_put_, _aten._index_put_impl_)
_COPIES = (_aten.copy_, _aten._to_copy)


class TwoDevicesError(RuntimeError):
    """An operator was given tensors of two devices."""


class OtherDevice(TorchDispatchMode):
    """While it is entered, operators refuse what they would refuse on a GPU: the device's tensors beside the CPU's.

    As on a GPU, a CPU tensor of no axes counts as a number, CPU indices may index, and copying between devices is
    allowed; what is copied to the CPU arrives as zeros.

    Attributes: ``refused``, whether an operator was refused.
    """

    refused = False

    def __torch_dispatch__(self, operator: Any, _: Any, inputs: Any = (), options: Any = None) -> Any:
        """Run one operator, or raise :class:`TwoDevicesError`."""
        options = options or {}
        packet = getattr(operator, "overloadpacket", operator)
        if packet in _COPIES:
            return _copied(operator, packet, inputs, options)
        given = [*tensors_in((*inputs, options))]
        if packet in _INDEXED and inputs[0].device.type == DEVICE:
            given = [inputs[0], *tensors_in(inputs[2:])]
        here = [each for each in given if each.device.type == "cpu" and each.dim()]
        if here and any(each.device.type == DEVICE for each in given):
            self.refused = True
            raise TwoDevicesError("Expected all tensors to be on the same device, but found at least two devices")
        return operator(*inputs, **options)


def _copied(operator: Any, packet: Any, inputs: Any, options: Mapping[str, Any]) -> Any:
    if packet is _aten.copy_:
        target, source = inputs[:2]
        from_there = source.device.type == DEVICE and target.device.type != DEVICE
        return target if from_there else operator(*inputs, **options)
    target = options.get("device")
    if inputs[0].device.type == DEVICE and target is not None and torch.device(target).type == "cpu":
        return torch.zeros(inputs[0].shape, dtype=options.get("dtype") or inputs[0].dtype, device="cpu")
    return operator(*inputs, **options)


def device(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    options: Mapping[str, Any] | None = None,
    arguments: Sequence[Any] | None = None,
) -> dict[str, Any]:
    """Call ``function(*inputs, **options)`` with all tensors and modules among the inputs on another device.

    Args:
        arguments: make a module by ``function(*arguments)`` first, put it on the device, and call that.

    Returns:
        "raised", the name of the exception's class, "" where there was none; "mixed", whether it was raised since
        tensors of two devices met; "devices", the kind of device of every tensor in the result.
    """
    called = function
    if arguments is not None:
        called = function(*arguments).to(DEVICE)
    moved = [_moved(each) for each in inputs]
    there = OtherDevice()
    try:
        with there:
            result = called(*moved, **(options or {}))
    except Exception as error:
        words = str(error)
        mixed = any(each in words for each in _REFUSED) or (there.refused and _SCRIPT in words)
        return {"raised": type(error).__name__, "mixed": mixed, "devices": []}
    with torch._C.DisableTorchFunctionSubclass():
        return {"raised": "", "mixed": False, "devices": [each.device.type for each in tensors_in(result)]}


def _moved(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().to(DEVICE)
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).to(DEVICE)
    if type(value) in (list, tuple):
        return type(value)(_moved(each) for each in value)
    return {name: _moved(each) for name, each in value.items()} if type(value) is dict else value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """Every tensor in a value: itself, or those of a list, tuple, dict or module."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from value.state_dict(keep_vars=True).values()
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors_in(each)
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()))


PRACTICES: dict[str, Callable[..., dict[str, Any]]] = {"device": device}
