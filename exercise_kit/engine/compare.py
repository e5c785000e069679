"""Comparing what a student returned with what was expected, and saying in words how the two differ."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import TypeGuard

import torch
from torch import Tensor

from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import convert_to_text_safely, quote_first_line
from exercise_kit.reasons import Reason


def format_shape(tensor_or_sizes: Tensor | Sequence[int]) -> str:
    """A shape as people write it: (2, 10, 48)."""
    sizes = tensor_or_sizes.shape if is_tensor(tensor_or_sizes) else tensor_or_sizes
    return "(" + ", ".join(str(int(size)) for size in sizes) + ("," if len(sizes) == 1 else "") + ")"


def format_dtype(name: torch.dtype | torch.layout) -> str:
    """A dtype or a layout without its module: float32."""
    return str(name).removeprefix("torch.")


def is_tensor(value: object) -> TypeGuard[Tensor]:
    """Say whether a value is a tensor, which nothing is before torch has been imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def describe_kind(value: object) -> str:
    """Name what a value is, with its article: "a list of 3 elements", "the class Linear", "the float `3.5`"."""
    name = "Tensor" if is_tensor(value) else type(value).__name__
    if value is None:
        return "None"
    if type(value) in (bool, int, float) and convert_to_text_safely(value):
        return f"the {name} {quote_first_line(value, 60)}"
    if type(value) is str:
        return f"the text {quote_first_line(repr(value), 60)}"
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if inspect.isroutine(value):
        return f"the function {getattr(value, '__name__', '')}".strip()
    if "torch" in sys.modules and isinstance(value, sys.modules["torch"].nn.Module):
        return f"a module ({name})"
    if isinstance(value, list | tuple):
        return f"a {name} of {len(value)} element{'' if len(value) == 1 else 's'}"
    if name == "ndarray":
        return "a NumPy array"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


_LIVE = re.compile(r"[`$\\<]")  # what a page may make something else of


def describe_argument(value: object) -> str:
    """An argument of a call: a tensor by its shape, anything else as Python writes it, if that is short."""
    if is_tensor(value):
        return f"a tensor of shape {format_shape(value)}"
    text = repr(value)
    if len(text) > 60:
        return describe_kind(value)
    return quote_first_line(text, 60) if _LIVE.search(text) else text


def join_names(names: Sequence[str], max_names: int = 4) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:max_names]) + (f" and {len(names) - max_names} more" if len(names) > max_names else "")


# how far one factor or one offset may be off and still tell all values: rounding in half precision
_ROUNDING = 1e-3
# how far a sum of 1 may be off: a row of a dozen numbers in half precision
_OFF_ONE = 2e-2


def find_nan_or_zeros(actual: Tensor, expected: Tensor, axes: Sequence[str] = ()) -> tuple[str, str, str] | None:
    """(seen, expected, look) for an answer that tells nothing: NaN, infinity, or nothing but zeros."""
    actual, expected = actual.double(), expected.double()
    if expected.isfinite().all() and not actual.isfinite().all():
        kind = "NaN (not a number)" if actual.isnan().any() else "infinite"
        look = "Print the tensors on the way: which is the first that holds it?"
        odd = ~actual.isfinite()
        first = "" if odd.all() or not axes else f"; the first is at {_describe_first_place(odd, axes)}"
        return f"{_describe_affected_share(odd, 'is', 'are')} {kind}{first}", "finite numbers", look
    if actual.numel() > 1 and not actual.any():
        look = "Which line writes into the result? Print something there: does it run at all?"
        return "every value is 0, as in a tensor that was never filled", "numbers computed from the input", look
    return None


def find_constant_factor_or_offset(actual: Tensor, expected: Tensor) -> tuple[str, str, str] | None:
    """(seen, expected, look) where one number tells all values: a constant, a factor, an offset."""
    actual, expected = actual.double(), expected.double()
    scale = float(expected.abs().max()) if expected.numel() > 2 and expected.isfinite().all() else 0.0
    if (
        scale == 0
        or _are_all_values_equal(expected)
        or torch.equal(*(each.flatten().sort().values for each in (actual, expected)))
    ):
        return None  # the right numbers in other places have no factor and no offset
    if _are_all_values_equal(actual):
        value = _format_number(float(actual.flatten()[0]), 4)
        return f"every value is {value}", "values that differ from each other", "Where does the input enter the result?"
    rounding = _ROUNDING * 1e-2 * scale
    factor = float((actual * expected).sum() / expected.square().sum())
    if abs(factor - 1) > _ROUNDING and torch.allclose(actual, factor * expected, rtol=_ROUNDING, atol=rounding):
        look = "Which line multiplies or divides once too often, or not often enough?"
        return f"every value is {factor:.4g} times what it should be", "a factor of 1", look
    offset = float((actual - expected).mean())
    if abs(offset) > _ROUNDING * scale and bool(((actual - expected - offset).abs() <= rounding).all()):
        look = "Which line adds or subtracts once too often, or not often enough?"
        return f"every value is {abs(offset):.4g} too {'large' if offset > 0 else 'small'}", "a difference of 0", look
    return _find_missing_negatives(actual, expected, rounding) or _find_row_offsets(actual, expected, rounding)


def _find_missing_negatives(actual: Tensor, expected: Tensor, rounding: float) -> tuple[str, str, str] | None:
    """(seen, expected, look) where all is right but for what lies below 0, as behind a ReLU."""
    below = expected < -rounding
    if not below.any() or actual[below].any() or not torch.allclose(actual[~below], expected[~below], atol=rounding):
        return None
    look = "Which step gives no negative number, and who asked for it?"
    return (
        "no value is negative: 0 stands wherever it should be",
        f"{_describe_affected_share(below, 'below 0', 'below 0')}",
        look,
    )


def _find_row_offsets(actual: Tensor, expected: Tensor, rounding: float) -> tuple[str, str, str] | None:
    """(seen, expected, look) where all numbers along the last axis have the same offset, and other ones elsewhere."""
    off = actual - expected
    apart = (off - off[..., :1]).abs().max() if expected.ndim > 1 and expected.shape[-1] > 2 else off.abs().max()
    if apart > rounding or off.abs().max() < rounding / _ROUNDING:
        return None
    look = "Which number do you add or subtract there, one for all that stand along the last axis?"
    centered = bool((actual.mean(-1).abs() <= rounding).all())
    zero = ": their mean is 0 everywhere" if centered else ""
    return f"all values along the last axis are off by one and the same number{zero}", "no such offset", look


def find_rows_not_summing_to_one(actual: Tensor, expected: Tensor, axes: Sequence[str]) -> tuple[str, str, str] | None:
    """(seen, expected, look) for rows that should sum to 1, as those of a softmax do, and do not."""
    if (
        expected.ndim < 2
        or expected.shape[-1] < 2
        or not expected.is_floating_point()
        or not actual.is_floating_point()
    ):
        return None
    actual, expected = actual.double(), expected.double()
    off = (actual.sum(-1) - 1).abs() > _OFF_ONE
    if bool((expected < 0).any()) or bool(((expected.sum(-1) - 1).abs() > _OFF_ONE).any()) or not off.any():
        return None
    names = axes if len(axes) == expected.ndim else ()
    total = _format_number(float(actual.sum(-1)[_find_first_index(off)]), 4)
    place = f"{_describe_first_place(off, names[:-1])}, sums to {total}"
    along = (f"along the axis of the {name}" for axis, name in enumerate(names) if _sums_to_one(actual, axis))
    elsewhere = f"; they do {named}" if (named := next(along, "")) else ""
    share = _describe_affected_share(off, "does not sum", "do not sum").replace("value", "row")
    seen = f"{'none of its rows sums' if off.all() else share} to 1{elsewhere}"
    look = "Along which axis should these numbers share out a sum of 1?"
    return f"{seen}; the first, at {place}", "1 for every row", look


def _sums_to_one(tensor: Tensor, axis: int) -> bool:
    return bool(((tensor.sum(axis) - 1).abs() <= _OFF_ONE).all())


def find_first_difference(
    actual: Tensor, expected: Tensor, tolerance: tuple[float, float], axes: Sequence[str]
) -> tuple[str, str]:
    """(seen, expected): how many values differ by more than ``tolerance``, where, and the first of them."""
    found, right = actual.double(), expected.double()
    relative, absolute = tolerance
    differs = ~torch.isclose(found, right, rtol=relative, atol=absolute)
    index = _find_first_index(differs)
    here, there = _format_number_pair(
        float(found[index]), float(right[index]), torch.bool in (actual.dtype, expected.dtype)
    )
    if found.numel() == 1:
        return f"its value is {here}", there
    names = axes if len(axes) == len(index) else ()
    first, second = (each.flatten().sort().values for each in (found, right))
    moved = len(first) > 2 and torch.allclose(first, second, rtol=relative, atol=absolute)
    seen = "the right values stand in other places" if moved else _describe_affected_share(differs, "differs", "differ")
    where = _describe_first_place(differs, axes)
    return (
        f"{seen}{_describe_shared_index(differs, names)}; the first is at {where}: {here}",
        f"{there} there",
    )


def _find_first_index(mask: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in mask.nonzero()[0])


def _describe_first_place(mask: Tensor, axes: Sequence[str]) -> str:
    """The first place of a mask, by the names of its axes where they are known."""
    index = _find_first_index(mask)
    if len(axes) != len(index):
        return f"index {list(index)}"
    return ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))


def _are_all_values_equal(tensor: Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _format_number_pair(first: float, second: float, boolean: bool) -> tuple[str, str]:
    """Two numbers with as few digits as tell them apart, four at least."""
    if boolean and {first, second} <= {0.0, 1.0}:
        return str(bool(first)), str(bool(second))
    for digits in range(4, 17):
        if _format_number(first, digits) != _format_number(second, digits):
            return _format_number(first, digits), _format_number(second, digits)
    return _format_number(first, 17), _format_number(second, 17)


def _format_number(number: float, digits: int) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e9 else f"{number:.{digits}g}"


def _describe_shared_index(differs: Tensor, names: Sequence[str]) -> str:
    """The one index of an axis that holds every difference, or the one that holds none."""
    for axis, name in enumerate(names if len(names) > 1 else ()):
        wrong = differs.movedim(axis, 0).reshape(differs.shape[axis], -1).any(1)
        if len(wrong) > 1 and int(wrong.sum()) == 1:
            return f", only in {name} {int(wrong.nonzero()[0])}"
        if len(wrong) > 2 and int(wrong.sum()) == len(wrong) - 1:
            return f", everywhere but in {name} {int((~wrong).nonzero()[0])}"
    return ""


def _describe_affected_share(mask: Tensor, singular: str, plural: str) -> str:
    count, total = int(mask.sum()), mask.numel()
    if count == total:
        return f"all of its values {plural}" if total > 1 else f"its value {singular}"
    if count < 4:
        return f"{count} of its {total} values {singular if count == 1 else plural}"
    return f"{max(round(100 * count / total), 1)} % of its values {plural}"


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
        name: what returned it, opens the message ("one_hot", "the weights").
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
            f"{name} has dtype {format_dtype(tensor.dtype)}",
            format_dtype(expected.dtype) + (", the dtype of the input" if expected.is_floating_point() else ""),
            "Which line makes a new tensor, and which dtype does it give it?",
            # of the dtype that inputs have as a rule, where other checks ask for something else; else it is the claim
            Reason.DTYPE if expected.dtype == torch.float32 else Reason.DIFFERENT,
            format_dtype(tensor.dtype),
        )
    if tensor.device != expected.device:
        raise Failure(
            f"{name} lies on {tensor.device}",
            f"{expected.device}, where the input lies",
            "Which line makes a new tensor without saying on which device?",
            Reason.DEVICE,
        )
    if not are_close(tensor, expected):
        seen, wanted, look = _explain_difference(tensor.detach(), expected.detach(), axes, describe, look)
        raise Failure(f"{name} has the shape {format_shape(tensor)}, as expected, but {seen}", wanted, look)


def _explain_difference(
    actual: Tensor, expected: Tensor, axes: Sequence[str], describe: Describe | None, look: str
) -> tuple[str, str, str]:
    """(seen, expected, look), by the first that has something to say."""
    if described_as := find_nan_or_zeros(actual, expected, axes) or find_constant_factor_or_offset(actual, expected):
        return described_as
    described = None
    if describe:
        with contextlib.suppress(IndexError, ValueError, OverflowError):  # it may look for what is not there
            described = describe(actual, expected)
    if described is None and (described_as := find_rows_not_summing_to_one(actual, expected, axes)):
        return described_as
    by_hand = "Work out that one value by hand, line by line. Where does your code differ?"
    return *(
        described or find_first_difference(actual, expected, get_tolerance(actual, expected), axes)
    ), look or by_hand


def expect_tensor(actual: object, expected_shape: Sequence[int], name: str) -> Tensor:
    """``actual`` as a tensor, or a failure that says what it is instead, or which shape it has."""
    if not isinstance(actual, Tensor):
        expected = f"a tensor of shape {_format_wanted_shape(expected_shape)}"
        raise Failure(
            f"{name} is {describe_kind(actual)}",
            expected,
            _ask_about_return_line(actual),
            Reason.KIND,
            describe_kind(actual),
        )
    if tuple(actual.shape) != tuple(expected_shape):
        raise Failure(
            f"{name} has the shape {_format_wanted_shape(actual.shape)}",
            f"{_format_wanted_shape(expected_shape)}{_describe_shape_mismatch(actual.shape, expected_shape)}",
            "Write the shape of every intermediate tensor beside its line.",
            Reason.SHAPE,
        )
    return actual


def _ask_about_return_line(value: object) -> str:
    if value is None:
        return "Does every path end in a `return`?"
    if inspect.isgenerator(value) or inspect.iscoroutine(value):
        word = "yield" if inspect.isgenerator(value) else "async"
        return f"What does the word `{word}` do to a function?"
    if type(value).__name__ == "ndarray":
        return "Which line before your `return` turns the tensor into a NumPy array?"
    if isinstance(value, list | tuple):
        return "What stands behind `return`: one tensor, or several things?"
    if callable(value):
        return "Which brackets are missing in the `return` line?"
    return "What does your `return` line give back?"


def _format_wanted_shape(sizes: Sequence[int]) -> str:
    return format_shape(sizes) if len(sizes) else "(), a single number"


def are_close(actual: Tensor, expected: Tensor) -> bool:
    """Say whether two tensors of one shape hold the same numbers, up to the rounding of the coarser dtype."""
    relative, absolute = get_tolerance(actual, expected)
    exact = not (actual.is_floating_point() or expected.is_floating_point())
    first, second = (each.detach().to("cpu", torch.int64 if exact else torch.float64) for each in (actual, expected))
    if exact:
        return torch.equal(first, second)
    return torch.allclose(first, second, rtol=relative, atol=absolute)


def get_tolerance(actual: Tensor, expected: Tensor) -> tuple[float, float]:
    """Relative and absolute, of the coarser of two dtypes; none for integers."""
    if not expected.is_floating_point():
        return 0.0, 0.0
    coarser = max((actual.dtype, expected.dtype), key=lambda dtype: TOLERANCE.get(dtype, (0.0, 0.0)))
    return TOLERANCE.get(coarser, (1e-4, 1e-5))


def _describe_shape_mismatch(sizes: Sequence[int], expected_sizes: Sequence[int]) -> str:
    if len(sizes) != len(expected_sizes) and expected_sizes:
        return f", with {len(expected_sizes)} ax{'i' if len(expected_sizes) == 1 else 'e'}s"
    return ": the same sizes in another order" if sorted(sizes) == sorted(expected_sizes) else ""
