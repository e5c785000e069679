"""How two tensors of one shape differ, in words."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

# how far one factor or one offset may be off and still tell all values: rounding in half precision
_ROUNDING = 1e-3
# how far a sum of 1 may be off: a row of a dozen numbers in half precision
_OFF_ONE = 2e-2


def without_content(found: Tensor, right: Tensor, axes: Sequence[str] = ()) -> tuple[str, str, str] | None:
    """(seen, expected, look) for an answer that tells nothing: NaN, infinity, or nothing but zeros."""
    found, right = found.double(), right.double()
    if right.isfinite().all() and not found.isfinite().all():
        kind = "NaN (not a number)" if found.isnan().any() else "infinite"
        look = "Print the tensors on the way: which is the first that holds it?"
        odd = ~found.isfinite()
        first = "" if odd.all() or not axes else f"; the first is at {_place(odd, axes)}"
        return f"{_share(odd, 'is', 'are')} {kind}{first}", "finite numbers", look
    if found.numel() > 1 and not found.any():
        look = "Which line writes into the result? Print something there: does it run at all?"
        return "every value is 0, as in a tensor that nobody has filled", "numbers made of what went in", look
    return None


def pattern(found: Tensor, right: Tensor) -> tuple[str, str, str] | None:
    """(seen, expected, look) where one number tells all values: a constant, a factor, an offset."""
    found, right = found.double(), right.double()
    scale = float(right.abs().max()) if right.numel() > 2 and right.isfinite().all() else 0.0
    if scale == 0 or _is_constant(right):
        return None
    if _is_constant(found):
        value = _figure(float(found.flatten()[0]), 4)
        return f"every value is {value}", "values that differ from each other", "Where does the input enter the result?"
    rounding = _ROUNDING * 1e-2 * scale
    factor = float((found * right).sum() / right.square().sum())
    if abs(factor - 1) > _ROUNDING and torch.allclose(found, factor * right, rtol=_ROUNDING, atol=rounding):
        look = "Which line multiplies or divides once too often, or not often enough?"
        return f"every value is {factor:.4g} times what it should be", "a factor of 1", look
    offset = float((found - right).mean())
    if abs(offset) > _ROUNDING * scale and bool(((found - right - offset).abs() <= rounding).all()):
        look = "Which line adds or subtracts once too often, or not often enough?"
        return f"every value is {abs(offset):.4g} too {'large' if offset > 0 else 'small'}", "a difference of 0", look
    return None


def rows_off_one(found: Tensor, right: Tensor, axes: Sequence[str]) -> tuple[str, str, str] | None:
    """(seen, expected, look) for rows that should sum to 1, as those of a softmax do, and do not."""
    if right.ndim < 2 or right.shape[-1] < 2 or not right.is_floating_point() or not found.is_floating_point():
        return None
    found, right = found.double(), right.double()
    off = (found.sum(-1) - 1).abs() > _OFF_ONE
    if bool((right < 0).any()) or bool(((right.sum(-1) - 1).abs() > _OFF_ONE).any()) or not off.any():
        return None
    names = axes if len(axes) == right.ndim else ()
    place = f"{_place(off, names[:-1])}, sums to {_figure(float(found.sum(-1)[_first(off)]), 4)}"
    along = (f"along the axis of the {name}" for axis, name in enumerate(names) if _sums_to_one(found, axis))
    elsewhere = f"; they do {named}" if (named := next(along, "")) else ""
    share = _share(off, "does not sum", "do not sum").replace("value", "row")
    seen = f"{'none of its rows sums' if off.all() else share} to 1{elsewhere}"
    look = "Along which axis should these numbers share out a sum of 1?"
    return f"{seen}; the first, at {place}", "1 for every row", look


def _sums_to_one(found: Tensor, axis: int) -> bool:
    return bool(((found.sum(axis) - 1).abs() <= _OFF_ONE).all())


def first_difference(
    actual: Tensor, expected: Tensor, tolerance: tuple[float, float], axes: Sequence[str]
) -> tuple[str, str]:
    """(seen, expected): how many values differ by more than ``tolerance``, where, and the first of them."""
    found, right = actual.double(), expected.double()
    relative, absolute = tolerance
    differs = ~torch.isclose(found, right, rtol=relative, atol=absolute)
    index = _first(differs)
    here, there = _apart(float(found[index]), float(right[index]), torch.bool in (actual.dtype, expected.dtype))
    if found.numel() == 1:
        return f"its value is {here}", there
    names = axes if len(axes) == len(index) else ()
    first, second = (each.flatten().sort().values for each in (found, right))
    moved = len(first) > 2 and torch.allclose(first, second, rtol=relative, atol=absolute)
    seen = "the right values stand in other places" if moved else _share(differs, "differs", "differ")
    return f"{seen}{_confined(differs, names)}; the first is at {_place(differs, axes)}: {here}", f"{there} there"


def _first(mask: Tensor) -> tuple[int, ...]:
    return tuple(int(i) for i in mask.nonzero()[0])


def _place(mask: Tensor, axes: Sequence[str]) -> str:
    """The first place of a mask, by the names of its axes where they are known."""
    index = _first(mask)
    if len(axes) != len(index):
        return f"index {list(index)}"
    return ", ".join(f"{axis} {i}" for axis, i in zip(axes, index, strict=True))


def _is_constant(tensor: Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _apart(here: float, there: float, boolean: bool) -> tuple[str, str]:
    """Two numbers with as few digits as tell them apart, four at least."""
    if boolean and {here, there} <= {0.0, 1.0}:
        return str(bool(here)), str(bool(there))
    for digits in range(4, 17):
        if _figure(here, digits) != _figure(there, digits):
            return _figure(here, digits), _figure(there, digits)
    return _figure(here, 17), _figure(there, 17)


def _figure(number: float, digits: int) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e9 else f"{number:.{digits}g}"


def _confined(differs: Tensor, names: Sequence[str]) -> str:
    """The one index of an axis that holds every difference, or the one that holds none."""
    for axis, name in enumerate(names if len(names) > 1 else ()):
        wrong = differs.movedim(axis, 0).reshape(differs.shape[axis], -1).any(1)
        if len(wrong) > 1 and int(wrong.sum()) == 1:
            return f", only in {name} {int(wrong.nonzero()[0])}"
        if len(wrong) > 2 and int(wrong.sum()) == len(wrong) - 1:
            return f", everywhere but in {name} {int((~wrong).nonzero()[0])}"
    return ""


def _share(mask: Tensor, one: str, many: str) -> str:
    count, total = int(mask.sum()), mask.numel()
    if count == total:
        return f"all of its values {many}" if total > 1 else f"its value {one}"
    if count < 4:
        return f"{count} of its {total} values {one if count == 1 else many}"
    return f"{max(round(100 * count / total), 1)} % of its values {many}"
