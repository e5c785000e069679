"""Where a module goes wrong: the first of its parts that is given, or that gives, other numbers than in a right one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from exercise_kit.engine.compare import Describe, close, tolerance_of
from exercise_kit.engine.differences import first_difference

RANDOM = "it gives other numbers when it runs again on the same input", "one and the same result in every run"

if TYPE_CHECKING:
    from exercise_kit.engine.student_module import StudentModule


def located(
    module: StudentModule,
    right: StudentModule | Mapping[str, Tensor],
    names: Sequence[str],
    *inputs: Any,
    axes: Sequence[str] = (),
    **options: Any,
) -> Describe:
    """A ``describe`` for :func:`~exercise_kit.engine.compare.expect_equal` that says where wrong numbers come from.

    It runs the student's module once more, and only where the numbers are wrong; where that run gives other numbers
    than the first, it says so instead.

    Args:
        module: the student's.
        right: one with the same parts and the same weights; or what has to enter and leave the parts, as
            :meth:`~exercise_kit.engine.student_module.StudentModule.parts` gives it, in the order of a right forward.
        names: of the parts, as "norm1".
        inputs: of the forward whose result is wrong.
        axes: names of the axes of what enters and leaves the parts, where they have that many.
        options: of that forward.
    """

    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str] | None:
        found = module.parts((*names, ""), *inputs, **options)
        if not found:
            return None
        if differs(found.get(":out"), actual):
            return RANDOM
        wanted = right if isinstance(right, Mapping) else right.parts(names, *inputs, **options)
        last = ""
        for key in wanted:
            there = found.get(key)
            if there is None or there.shape != wanted[key].shape:  # not called, or fed in another layout
                continue
            if not close(there, wanted[key]):
                return _told(last, key, there, wanted[key], axes)
            last = key
        return _behind(last, actual, expected, axes) if last else None

    return describe


def differs(again: object, before: Tensor) -> bool:
    """Whether a second run has given other numbers than the one ``before``, of the same shape."""
    return isinstance(again, Tensor) and again.shape == before.shape and not close(again, before)


def _told(last: str, key: str, found: Tensor, wanted: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    before = f"{_named(last)} is right, but " if last else ""
    seen, expected = _difference(found, wanted, axes)
    return f"{before}{_named(key)} is wrong{'' if last else ' already'}: {seen}", expected


def _behind(last: str, actual: Tensor, expected: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    seen, wanted = _difference(actual, expected, axes)
    return f"{_named(last)} is still right, and goes wrong behind that: {seen}", wanted


def _difference(found: Tensor, wanted: Tensor, axes: Sequence[str]) -> tuple[str, str]:
    names = axes if len(axes) == wanted.ndim else ()
    return first_difference(found.cpu(), wanted.cpu(), tolerance_of(found, wanted), names)


def _named(key: str) -> str:
    name, _, way = key.rpartition(":")
    return f"what enters `{name}`" if way == "in" else f"what `{name}` gives"
