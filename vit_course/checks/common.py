"""Claims that many exercises share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from vit_course.checks.student import Student
from vit_course.checks.verdict import Failure


def expect_left_alone(student: Student) -> None:
    """Fail when a call has changed one of its input tensors."""
    student.record.append(("changed inputs", tuple(student.changed_inputs)))
    if student.changed_inputs:
        raise Failure(
            f"{student.name} changed its input of shape {student.changed_inputs[0]}",
            "the same numbers in it after the call as before",
            "Which operation ends in an underscore, or assigns into a slice of the input?",
        )


def expect_value_error(student: Student, inputs: tuple[Any, ...], numbers: Sequence[int], described: str) -> None:
    """Fail unless a call raises ValueError with every one of ``numbers`` in its message."""
    error = student.error_of(*inputs)
    wanted = f"a ValueError that names {' and '.join(str(number) for number in numbers)}"
    look = "The exercise's text says which error to raise; test for it before you compute."
    if error is None:
        raise Failure(f"{student.name} accepted {described}", wanted, look)
    if not isinstance(error, ValueError):
        raise Failure(f"{student.name} raised {type(error).__name__} on {described}", wanted, look)
    said = {int(number) for number in re.findall(r"\d+", str(error))}
    student.record.append(("numbers named", tuple(number in said for number in numbers)))
    if not set(numbers) <= said:
        raise Failure(f'{student.name} raised ValueError("{error}") on {described}', wanted, look)
