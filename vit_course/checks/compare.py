"""Comparing what a student returned with what was expected, and saying in words how they differ."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations

import torch
from torch import Tensor

from vit_course.checks.verdict import Failure

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
            f"{name} has dtype {_short(tensor.dtype)}",
            f"{_short(expected.dtype)}, the dtype of the input",
            "Which line makes a new tensor, and which dtype does it give it?",
        )
    if tensor.device != expected.device:
        raise Failure(
            f"{name} lies on {tensor.device}",
            f"{expected.device}, where the input lies",
            "Which line makes a new tensor without saying on which device?",
        )
    if not close(tensor, expected):
        seen, wanted = (describe and describe(tensor, expected)) or _first_difference(tensor, expected, axes)
        raise Failure(f"{name} has the shape {shape(tensor)}, as expected, but {seen}", wanted, look)


def expect_tensor(actual: object, wanted: Sequence[int], name: str) -> Tensor:
    """``actual`` as a tensor, or a failure that says what it is instead, or which shape it has."""
    if actual is None:
        raise Failure(f"{name} is None", f"a tensor of shape {shape(wanted)}", "Does every path end in a `return`?")
    if not isinstance(actual, Tensor):
        raise Failure(
            f"{name} is a {type(actual).__name__}{_of_length(actual)}",
            f"a tensor of shape {shape(wanted)}",
            "What does your `return` line give back?",
        )
    if tuple(actual.shape) != tuple(wanted):
        raise Failure(
            f"{name} has the shape {shape(actual)}", f"{shape(wanted)}{_axes_swapped(actual, wanted)}",
            "Write the shape of every intermediate tensor beside its line.",
        )  # fmt: skip
    return actual


def close(actual: Tensor, expected: Tensor) -> bool:
    """Whether two tensors of one shape hold the same numbers, up to the rounding of the coarser dtype."""
    if not expected.is_floating_point():
        return bool(torch.equal(actual.to(expected.dtype), expected))
    relative, absolute = _tolerance(actual, expected)
    first, second = (each.detach().to("cpu", torch.float64) for each in (actual, expected))
    return torch.allclose(first, second, rtol=relative, atol=absolute)


def _tolerance(actual: Tensor, expected: Tensor) -> tuple[float, float]:
    """Relative and absolute, of the coarser of two dtypes; none for integers."""
    if not expected.is_floating_point():
        return 0.0, 0.0
    coarser = max((actual.dtype, expected.dtype), key=lambda dtype: TOLERANCE.get(dtype, (0.0, 0.0)))
    return TOLERANCE.get(coarser, (1e-4, 1e-5))


def shape(of: Tensor | Sequence[int]) -> str:
    """A shape as people write it: (2, 10, 48)."""
    sizes = of.shape if isinstance(of, Tensor) else of
    return "(" + ", ".join(str(int(size)) for size in sizes) + ("," if len(sizes) == 1 else "") + ")"


def _first_difference(actual: Tensor, expected: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    found, right = actual.detach().to("cpu", torch.float64), expected.detach().to("cpu", torch.float64)
    if not torch.isfinite(found).all():
        kind = "NaN" if torch.isnan(found).any() else "infinity"
        return f"{_share(~torch.isfinite(found))} of its values are {kind}", "finite numbers everywhere"
    if (factor := _constant_factor(found, right)) is not None:
        return f"every value is {factor:.4g} times what it should be", "a factor of 1"
    relative, absolute = _tolerance(actual, expected)
    differs = ~torch.isclose(found, right, rtol=relative, atol=absolute)
    index = [int(i) for i in differs.nonzero()[0]]
    names = axes if len(axes) == len(index) else [f"axis {i}" for i in range(len(index))]
    place = ", ".join(f"{axis} {i}" for axis, i in zip(names, index, strict=True))
    digits = 9 if actual.dtype == expected.dtype == torch.float64 else 5
    seen = f"{_share(differs)} of its values differ; the first is at {place or 'the only entry'}"
    return f"{seen}: {found[tuple(index)]:.{digits}g}", f"{right[tuple(index)]:.{digits}g} there"


def _constant_factor(found: Tensor, right: Tensor) -> float | None:
    """c where found = c * right for a c other than 1, else None."""
    if right.abs().max() == 0 or found.abs().max() == 0:
        return None
    factor = float((found * right).sum() / right.square().sum())
    same = torch.allclose(found, factor * right, rtol=1e-3, atol=1e-5 * float(right.abs().max()))
    return factor if same and found.numel() > 2 and abs(factor - 1) > 1e-3 else None


def _axes_swapped(actual: Tensor, wanted: Sequence[int]) -> str:
    sizes = tuple(actual.shape)
    if len(sizes) != len(wanted) or not 1 < len(sizes) <= 5 or sorted(sizes) != sorted(wanted):
        return ""
    orders = [order for order in permutations(range(len(sizes))) if tuple(sizes[i] for i in order) == tuple(wanted)]
    return ": the same sizes in another order" if orders else ""


def _share(mask: Tensor) -> str:
    percent = 100 * float(mask.float().mean())
    return "all" if percent == 100 else f"{percent:.0f} %" if percent >= 1 else "a few"


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _of_length(value: object) -> str:
    return f" of {len(value)} elements" if isinstance(value, list | tuple) else ""
