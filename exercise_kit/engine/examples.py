"""The worked example in an answer's docstring as a check: it gives what it shows."""

from __future__ import annotations

import ast
import doctest
import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from exercise_kit.engine.verdict import Failure
from exercise_kit.quoting import quote_first_line

if TYPE_CHECKING:
    from exercise_kit.engine.student import Student

EXAMPLES: dict[str, str] = {}
"""The doctest in the docstring of the object of that name."""
# examples print four decimals at least where they do not round themselves
_ROUNDING = 1e-4
_LONGEST = 160


def expect_docstring_example(student: Student) -> None:
    """Fail unless the example in the docstring of each of the exercise's objects gives the result that it shows."""
    for name in student.names:
        steps = list(doctest.DocTestParser().get_examples(EXAMPLES[name]))
        source = "".join(each.source for each in steps)
        found = student.example(name, source)
        shown = [each for each in steps if each.want]
        for step, value in zip(shown, found, strict=True):
            if not _equals_printed_value(_convert_to_printed_form(value), _parse_expected_output(step.want)):
                source, wanted, gave = (
                    " ".join(text.split()) for text in (step.source, step.want, _format_as_python(value))
                )
                seen = f"the docstring's example {quote_first_line(source)} gave {quote_first_line(gave, _LONGEST)}"
                look = "Run that example in a cell, line by line. Which number is the first that you do not expect?"
                if value is None:
                    look = "What does your `return` line give back?"
                if _lacks_only_size_one_axes(_convert_to_printed_form(value), _parse_expected_output(step.want)):
                    look = "The numbers are right, and an axis with one entry is lost. Which line drops it?"
                raise Failure(seen, f"`{wanted}`, as the docstring says", look)


def _lacks_only_size_one_axes(actual: Any, expected: Any) -> bool:
    """Say whether a value is the expected one but for axes with one entry, which are missing."""
    while isinstance(expected, list | tuple) and len(expected) == 1:
        expected = expected[0]
        if _equals_printed_value(actual, expected):
            return True
    if isinstance(expected, list | tuple) and isinstance(actual, list | tuple) and len(expected) == len(actual):
        return all(
            _equals_printed_value(*each) or _lacks_only_size_one_axes(*each)
            for each in zip(actual, expected, strict=True)
        )
    return False


def _format_as_python(value: Any) -> str:
    """A value as Python prints it; of what no example gives, the type alone."""
    if type(value) in (list, tuple):
        left, right = "[]" if type(value) is list else "()"
        return f"{left}{', '.join(map(_format_as_python, value))}{right}"
    plain = value is None or isinstance(value, bool | int | float | str | Tensor)
    return repr(value) if plain else f"<{type(value).__name__}>"


def _parse_expected_output(printed: str) -> Any:
    """Read what an example prints as a value; a tensor as ("tensor", its numbers)."""
    bare = re.sub(r",\s*(grad_fn=<\w+>|dtype=torch\.\w+)", "", printed)
    return ast.literal_eval(bare.replace("tensor(", "('tensor', ").strip())


def _convert_to_printed_form(value: Any) -> Any:
    """A value of a student's in the form of :func:`_parse_expected_output`."""
    if isinstance(value, Tensor):
        is_answer = value.dtype == torch.bool and not value.dim()  # tensor(True) is as good an answer as True
        return value.item() if is_answer else ("tensor", value.tolist())
    if isinstance(value, np.generic):  # np.float64(0.5) is as good a number as 0.5
        return value.item()
    return type(value)(map(_convert_to_printed_form, value)) if type(value) in (list, tuple) else value


def _equals_printed_value(actual: Any, expected: Any) -> bool:
    if isinstance(expected, list | tuple):
        same = type(actual) is type(expected) and len(actual) == len(expected)
        return same and all(map(_equals_printed_value, actual, expected))
    if isinstance(expected, float) and isinstance(actual, float | int) and not isinstance(actual, bool):
        return math.isclose(actual, expected, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return type(actual) is type(expected) and bool(actual == expected)
