"""What a student's code gave back: made plain before a check sees it, and written down for the diagnosis."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Iterator
from types import CoroutineType
from typing import Any

import torch
from torch import Tensor, nn

from exercise_kit.engine.compare import describe_argument, format_dtype, get_tolerance
from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line
from exercise_kit.reasons import Reason
from exercise_kit.worker import torch_internals
from exercise_kit.worker.real_types import is_a, read_class_name

_ORDINARY_DTYPES = (
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
)
_INSTEAD_OF = {
    "a nested tensor": "one that has a shape",
    "a tensor of layout": "a dense one",
    "a tensor of shape": "one of the shape that the exercise asks for",
    "a tensor of dtype": "floats, integers or bools, as the exercise asks",
    "a tensor on the device": "one on the CPU, where the input lies",
}
# of numbers of float32 that were turned into Python's
_ROUNDING = 1e-6
# no exercise asks for more; a list beyond is a mistake, reported by its length alone
_DEEPEST, LONGEST = 4, 100
# of a tensor on record, far beyond any right answer to our probes: records are kept, and compared again and again
_MOST_NUMBERS = 1 << 20


class OddTensor:
    """A tensor in another process that cannot be sent here; ``seen`` says what it is, as "a nested tensor"."""

    def __init__(self, seen: str) -> None:
        self.seen = seen


class OpaqueList(list[None]):
    """A list in another process of which only the length is known; it takes no memory, whatever a worker claims."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._length = length

    def __len__(self) -> int:
        return self._length


OpaqueList.__name__ = "list"


def make_tensors_plain(value: Any, name: str, inputs: Iterable[object] = (), depth: int = 0) -> Any:
    """``value``, an answer to ``inputs``, with plain tensors: the operators of a subclass cannot be trusted.

    Raises:
        Failure: a check cannot compare a tensor, since it is sparse, quantized, complex, or on a device that is neither
            the CPU nor that of an input.
    """
    if is_a(value, list, tuple) and _is_small_enough_to_copy(value, depth):
        kind: Any = list if is_a(value, list) else tuple
        return kind(make_tensors_plain(each, name, inputs, depth + 1) for each in kind.__iter__(value))
    if isinstance(value, OddTensor):
        raise _make_oddity_failure(name, value.seen)
    if not is_a(value, Tensor):
        if type(value) is CoroutineType:
            value.close()  # or Python warns that nobody awaited it
        return value
    with torch_internals.Unseen():
        if torch_internals.has_torch_dispatch(value):
            raise _make_oddity_failure(name, f"a {read_class_name(type(value))}")
        tensor = value if type(value) in (Tensor, nn.Parameter) else torch_internals.drop_subclass(value)
        if oddity := _describe_oddity(tensor, inputs):
            raise _make_oddity_failure(name, oddity)
        return tensor


def _describe_oddity(tensor: Tensor, inputs: Iterable[object]) -> str:
    if torch_internals.is_lazy(tensor):
        return "a tensor without a shape"
    if tensor.is_nested:
        return "a nested tensor"
    if tensor.layout != torch.strided:
        return f"a tensor of layout {format_dtype(tensor.layout)}"
    if tensor.is_quantized or tensor.dtype not in _ORDINARY_DTYPES:
        return f"a tensor of dtype {format_dtype(tensor.dtype)}"
    devices = {each.device.type for each in inputs if isinstance(each, Tensor)}
    return "" if tensor.device.type in {"cpu", *devices} else f"a tensor on the device {tensor.device}"


def _make_oddity_failure(name: str, oddity: str) -> Failure:
    kind = next((kind for kind in _INSTEAD_OF if oddity.startswith(kind)), None)
    if kind is None:
        return Failure(f"{name} gave {oddity}", "a torch.Tensor")
    return Failure(f"{name} gave {oddity}", _INSTEAD_OF[kind], "Which line makes it so?")


def _is_small_enough_to_copy(values: list[Any] | tuple[Any, ...], depth: int) -> bool:
    kind: Any = list if is_a(values, list) else tuple
    return depth < _DEEPEST and kind.__len__(values) <= LONGEST and not is_a(values, OpaqueList)


def take_snapshot(value: object, depth: int = 0, kept: dict[int, Tensor] | None = None) -> object:
    """Keep of an answer tensors as copies, numbers and text; of a giant tensor its shape, else the type.

    A tensor that occurs several times is copied once, in ``kept``.
    """
    kept = {} if kept is None else kept
    if isinstance(value, Tensor):
        if value.numel() > _MOST_NUMBERS:
            return "a large tensor", tuple(value.shape), format_dtype(value.dtype)
        if id(value) not in kept:
            kept[id(value)] = value.detach().clone()
        return kept[id(value)]
    if isinstance(value, nn.Module):
        return (type(value).__name__ if type(value).__module__.startswith("torch.") else "module",)
    if isinstance(value, tuple | list):
        if not _is_small_enough_to_copy(value, depth):
            return type(value).__name__, len(value)
        return tuple(take_snapshot(each, depth + 1, kept) for each in value)
    if isinstance(value, bool | int | float | str | None):
        return value
    if inspect.isroutine(value):
        return "function"
    return type(value).__name__


def read_model_parameters(model: object) -> object:
    """Read names and numbers of the parameters of a model that a call was given; None for anything else."""
    if not isinstance(model, nn.Module):
        return None
    return tuple((name, take_snapshot(each)) for name, each in model.named_parameters())


def is_same_record(first_record: object, second_record: object) -> bool:
    """Say whether two students gave the same on the same inputs."""
    if isinstance(first_record, Tensor) and isinstance(second_record, Tensor):
        alike = (
            first_record.shape == second_record.shape
            and first_record.dtype == second_record.dtype
            and first_record.device == second_record.device
        )
        return alike and _are_same_numbers(first_record, second_record)
    if isinstance(first_record, tuple | list) and isinstance(second_record, tuple | list):
        return len(first_record) == len(second_record) and all(map(is_same_record, first_record, second_record))
    if isinstance(first_record, float) and isinstance(second_record, float):
        both_nan = math.isnan(first_record) and math.isnan(second_record)
        return both_nan or math.isclose(first_record, second_record, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(first_record) is type(second_record) and first_record == second_record


def _are_same_numbers(first: Tensor, second: Tensor) -> bool:
    try:
        identical = torch.equal(first, second)
        if identical or not first.is_floating_point():
            return identical
        relative, absolute = get_tolerance(first, second)
        one, other = (each.detach().to("cpu", torch.float64) for each in (first, second))
        scale = max(_find_largest_number(one), _find_largest_number(other), 1.0)  # sums of large numbers round by more
        return torch.allclose(one, other, rtol=relative, atol=absolute * scale, equal_nan=True)
    except (RuntimeError, TypeError):  # a check may have recorded a tensor that torch cannot compare
        return False


def _find_largest_number(tensor: Tensor) -> float:
    """The largest finite number, without its sign."""
    return float(tensor.nan_to_num(0.0, 0.0, 0.0).abs().max()) if tensor.numel() else 0.0


def make_incomparable_failure(name: str, record: list[object], error: BaseException) -> Failure:
    """The failure for an answer at which a check broke off: by what is odd about the answer, or by the error."""
    expected = "an answer that this check can read"
    for answer in iterate_tensors(record[-1:]):
        if answer.is_floating_point() and not answer.isfinite().all():
            kind = "NaN (not a number)" if answer.isnan().any() else "infinity"
            look = "Print the tensors on the way: which is the first that holds it?"
            return Failure(f"{name} gave {kind} among its numbers", "finite numbers everywhere", look)
    kind = next(
        (
            f"it is {describe_argument(answer)}, and comparing it failed with: "
            for answer in iterate_tensors(record[-1:])
        ),
        "",
    )
    text = f"{type(error).__name__} {quote_first_line(error)}".strip()
    look = "Print what your code gives back, with its type, shape and dtype. Is each what you meant?"
    return Failure(f"what {name} gave cannot be compared: {kind}{text}", expected, look, Reason.KIND)


def iterate_tensors(value: object) -> Iterator[Tensor]:
    """Every tensor in an answer, or in a record."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from iterate_tensors(each)
