"""What a tensor is and does by torch's own C types, which nobody can patch: no student's class is asked.

``torch.equal`` and ``Tensor.shape`` are attributes that a cell may replace, and a subclass may override them;
``torch._C.TensorBase`` refuses both. To be called where :class:`Unseen` is entered: else torch asks the class of a
tensor for its ``__torch_function__``, and a mode of such functions has it look into the class of that class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import StorageBase, TensorBase
from torch.nn.parameter import UninitializedBuffer, UninitializedParameter

from .real_types import is_a, read_attributes


class Unseen:
    """While it is entered, no mode and no subclass sees what is done to a tensor."""

    def __enter__(self) -> None:
        self._guards = torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch()
        for guard in self._guards:
            guard.__enter__()

    def __exit__(self, *error: Any) -> None:
        for guard in reversed(self._guards):
            guard.__exit__(*error)


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
gradient: Callable[[Any], Any] = _BASE.grad.__get__
set_gradient: Callable[[Any, Any], None] = _BASE.grad.__set__
copy_into: Callable[[Any, Any], Any] = _BASE.copy_
_storage_of: Callable[[Any], Any] = _BASE.untyped_storage
_address_of: Callable[[Any], int] = _STORAGE.data_ptr
_detach, _cpu = _BASE.detach, _BASE.cpu
_resolve_conj, _resolve_neg, _contiguous = _BASE.resolve_conj, _BASE.resolve_neg, _BASE.contiguous
_as_subclass, _as_strided, _view, _numpy = _BASE.as_subclass, _BASE.as_strided, _BASE.view, _BASE.numpy
_clone = _BASE.clone
_Tensor, _Parameter, _bytes_type, _keys_of = torch.Tensor, torch.nn.Parameter, torch.uint8, torch._C._dispatch_keys
_with_gradients = torch.enable_grad
_PYTHON, _has = torch._C.DispatchKey.Python, torch._C.DispatchKeySet.has


def detach_to_cpu(tensor: Any) -> Any:
    """Its numbers: detached, on the CPU, contiguous, no lazy view."""
    return _contiguous(_cpu(_resolve_neg(_resolve_conj(_detach(tensor)))))


def has_torch_dispatch(tensor: Any) -> bool:
    """Say whether torch hands every operator on it to its class's ``__torch_dispatch__``."""
    return _has(_keys_of(tensor), _PYTHON)


def is_lazy(tensor: Any) -> bool:
    """Say whether it is a parameter or buffer that waits for its shape."""
    return is_a(tensor, UninitializedParameter, UninitializedBuffer)


def is_parameter(tensor: Any) -> bool:
    """Say whether it is an nn.Parameter, also one that was made of a subclass's tensor."""
    return is_a(tensor, _Parameter) or (is_a(tensor, _Tensor) and read_attributes(tensor).get("_is_param") is True)


def drop_subclass(tensor: Any) -> Any:
    """The same tensor to autograd, without its subclass; to be asked of one without operators of its own."""
    with _with_gradients():  # where an answer has left them off, it would be cut from its graph
        return _as_subclass(tensor, _Tensor)


def make_differentiable(tensor: Any) -> Any:
    """A plain tensor that is the same one to autograd; None where nothing can be pulled back from it."""
    return drop_subclass(tensor) if requires_grad(tensor) and not has_torch_dispatch(tensor) else None


def view_as_bytes(tensor: Any) -> Any:
    """The numbers of a plain contiguous tensor on the CPU as an array of bytes."""
    # a tensor of one number is contiguous whatever its strides are, and view(dtype) wants a stride of 1
    return _numpy(_view(_as_strided(_detach(tensor), (numel(tensor),), (1,)), _bytes_type))


def copy(tensor: Any) -> Any:
    """A plain copy, detached."""
    return _clone(_detach(tensor))


def find_address(tensor: Any) -> int:
    """Where the memory begins that holds its numbers."""
    return _address_of(_storage_of(tensor))


def list_parameters_and_buffers(module: Any) -> Iterator[Any]:
    """The parameters and buffers of a module and of its parts, without any method of theirs."""
    left, seen = [module], set()
    while left:
        part = left.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        fields = read_attributes(part)
        yield from (
            tensor for name in ("_parameters", "_buffers") for tensor in dict.values(fields[name]) if tensor is not None
        )
        left += dict.values(fields["_modules"])
