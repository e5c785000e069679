"""Comparing what a student returned with what was expected, and saying in words how they differ."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from exercise_kit.engine.differences import first_difference, pattern, rows_off_one, without_content
from exercise_kit.engine.verdict import Failure
from exercise_kit.engine.words import kind_of, short
from exercise_kit.engine.words import shape as shape

# relative and absolute; float32 sums over some hundred terms differ by about 1e-6 between right variants,
# float16 and bfloat16 keep 3 and 2 digits; misconceptions differ by 1e-2 and more on our probes
TOLERANCE = {
    torch.float64: (1e-7, 1e-8),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (5e-2, 5e-2),
}
Describe = Callable[[Tensor, Tensor], "tuple[str, str] | None"]


def expect_equal(
    actual: object,
    expected: Tensor,
    name: str,
    axes: Sequence[str] = (),
    describe: Describe | None = None,
    look: str = "",
    any_float: bool = False,
) -> None:
    """Fail in words unless ``actual`` is a tensor equal to ``expected`` in shape, dtype, device and values.

    Args:
        actual: what the student's code returned.
        expected: the right answer.
        name: what returned it, opens the message ("patchify", "the weights").
        axes: a name for every axis of ``expected``, to say where the first difference is.
        describe: may say it better: gets (actual, expected), gives (seen, expected) or None.
        look: where to look next when the values differ.
        any_float: accept any floating dtype (for functions whose dtype is not asked for).

    Raises:
        Failure: with what was seen and what was expected.
    """
    tensor = expect_tensor(actual, expected.shape, name)
    if tensor.dtype != expected.dtype and not (any_float and tensor.is_floating_point()):
        raise Failure(
            f"{name} has dtype {short(tensor.dtype)}",
            short(expected.dtype) + (", the dtype of the input" if expected.is_floating_point() else ""),
            "Which line makes a new tensor, and which dtype does it give it?",
        )
    if tensor.device != expected.device:
        raise Failure(
            f"{name} lies on {tensor.device}",
            f"{expected.device}, where the input lies",
            "Which line makes a new tensor without saying on which device?",
        )
    if not close(tensor, expected):
        seen, wanted, look = _difference(tensor.detach(), expected.detach(), axes, describe, look)
        raise Failure(f"{name} has the shape {shape(tensor)}, as expected, but {seen}", wanted, look)


def _difference(
    actual: Tensor, expected: Tensor, axes: Sequence[str], describe: Describe | None, look: str
) -> tuple[str, str, str]:
    """(seen, expected, look), by the first that has something to say."""
    if told := without_content(actual, expected, axes) or pattern(actual, expected):
        return told
    described = None
    if describe:
        with contextlib.suppress(IndexError, ValueError, OverflowError):  # it may look for what is not there
            described = describe(actual, expected)
    if described is None and (told := rows_off_one(actual, expected, axes)):
        return told
    by_hand = "Work out that one value by hand, line by line. Where does your code part from it?"
    return *(described or first_difference(actual, expected, tolerance_of(actual, expected), axes)), look or by_hand


def expect_tensor(actual: object, wanted: Sequence[int], name: str) -> Tensor:
    """``actual`` as a tensor, or a failure that says what it is instead, or which shape it has."""
    if not isinstance(actual, Tensor):
        expected = f"a tensor of shape {_in_words(wanted)}"
        raise Failure(f"{name} is {kind_of(actual)}", expected, _where_it_returns(actual))
    if tuple(actual.shape) != tuple(wanted):
        raise Failure(
            f"{name} has the shape {_in_words(actual.shape)}",
            f"{_in_words(wanted)}{_hint(actual.shape, wanted)}",
            "Write the shape of every intermediate tensor beside its line.",
        )
    return actual


def _where_it_returns(value: object) -> str:
    if value is None:
        return "Does every path end in a `return`?"
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        word = "yield" if inspect.isgenerator(value) else "async"
        return f"What does the word `{word}` do to a function?"
    if callable(value):
        return "Which brackets are missing in the `return` line?"
    return "What does your `return` line give back?"


def _in_words(sizes: Sequence[int]) -> str:
    return shape(sizes) if len(sizes) else "(), a single number"


def close(actual: Tensor, expected: Tensor) -> bool:
    """Whether two tensors of one shape hold the same numbers, up to the rounding of the coarser dtype."""
    relative, absolute = tolerance_of(actual, expected)
    exact = not (actual.is_floating_point() or expected.is_floating_point())
    first, second = (each.detach().to("cpu", torch.int64 if exact else torch.float64) for each in (actual, expected))
    if exact:
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=relative, atol=absolute)


def tolerance_of(actual: Tensor, expected: Tensor) -> tuple[float, float]:
    """Relative and absolute, of the coarser of two dtypes; none for integers."""
    if not expected.is_floating_point():
        return 0.0, 0.0
    coarser = max((actual.dtype, expected.dtype), key=lambda dtype: TOLERANCE.get(dtype, (0.0, 0.0)))
    return TOLERANCE.get(coarser, (1e-4, 1e-5))


def _hint(sizes: Sequence[int], wanted: Sequence[int]) -> str:
    if len(sizes) != len(wanted) and wanted:
        return f", with {len(wanted)} ax{'i' if len(wanted) == 1 else 'e'}s"
    return ": the same sizes in another order" if sorted(sizes) == sorted(wanted) else ""
