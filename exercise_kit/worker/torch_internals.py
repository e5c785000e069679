"""What a tensor is and does by torch's own C types, which nobody can patch: no student's class is asked.

``torch.equal`` and ``Tensor.shape`` are attributes that a cell may replace, and a subclass may override them;
``torch._C.TensorBase`` refuses both. To be called where ``DisableTorchFunctionSubclass`` is in force.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch._C import StorageBase, TensorBase

_BASE: Any = TensorBase
_STORAGE: Any = StorageBase

shape: Callable[[Any], tuple[int, ...]] = _BASE.shape.__get__
ndim: Callable[[Any], int] = _BASE.ndim.__get__
dtype: Callable[[Any], Any] = _BASE.dtype.__get__
device: Callable[[Any], Any] = _BASE.device.__get__
layout: Callable[[Any], Any] = _BASE.layout.__get__
itemsize: Callable[[Any], int] = _BASE.itemsize.__get__
is_nested: Callable[[Any], bool] = _BASE.is_nested.__get__
is_quantized: Callable[[Any], bool] = _BASE.is_quantized.__get__
is_meta: Callable[[Any], bool] = _BASE.is_meta.__get__
requires_grad: Callable[[Any], bool] = _BASE.requires_grad.__get__
is_floating_point: Callable[[Any], bool] = _BASE.is_floating_point
is_complex: Callable[[Any], bool] = _BASE.is_complex
is_contiguous: Callable[[Any], bool] = _BASE.is_contiguous
numel: Callable[[Any], int] = _BASE.numel
stride: Callable[[Any], tuple[int, ...]] = _BASE.stride
_storage_of: Callable[[Any], Any] = _BASE.untyped_storage
_address_of: Callable[[Any], int] = _STORAGE.data_ptr
_detach, _cpu = _BASE.detach, _BASE.cpu
_resolve_conj, _resolve_neg, _contiguous = _BASE.resolve_conj, _BASE.resolve_neg, _BASE.contiguous


def plain(tensor: Any) -> Any:
    """Its numbers: detached, on the CPU, contiguous, no lazy view."""
    return _contiguous(_cpu(_resolve_neg(_resolve_conj(_detach(tensor)))))


def address(tensor: Any) -> int:
    """Where the memory begins that holds its numbers."""
    return _address_of(_storage_of(tensor))


def held_by(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module and of its parts, without any method of theirs."""
    left, seen = [module], set()
    while left:
        part = left.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        fields = object.__getattribute__(part, "__dict__")
        yield from (
            tensor for name in ("_parameters", "_buffers") for tensor in fields[name].values() if tensor is not None
        )
        left += fields["_modules"].values()
