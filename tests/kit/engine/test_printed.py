"""What an answer prints: the first call's lines, and how many more there were."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest
from torch import Tensor

from exercise_kit.engine import check
from exercise_kit.engine.verdict import Report


def print_always(values: Tensor, width: int) -> None:
    print("the shape is", tuple(values.shape))
    print("the width is", width)


def print_more_later(values: Tensor, width: int) -> None:
    if width > values.shape[1]:
        print("one\n" * 3, end="")
    elif width > 3:
        print("it is", end=" ")
        print("wide", end="")


@pytest.fixture
def check_printing_answer(numbers_course_answers: Any) -> Callable[..., Report]:
    """Checks a right answer that prints first."""

    def check_answer(output: Callable[[Tensor, int], None] = lambda *_: None) -> Report:
        return check(
            "moving_average",
            lambda values, width: (output(values, width), numbers_course_answers.moving_average(values, width))[1],
        )

    return check_answer


def test_only_the_first_call_is_shown(
    check_printing_answer: Callable[..., Report], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout
    assert check_printing_answer(print_always).passed
    first, second, more = capsys.readouterr().out.splitlines()
    assert first.startswith("the shape is (")
    assert second.startswith("the width is ")
    assert re.fullmatch(r"\(\d more calls printed (as much|something, too)\.\)", more)
    assert sys.stdout is before


def test_calls_that_print_something_else_are_counted_too(
    check_printing_answer: Callable[..., Report], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_printing_answer(print_more_later).passed
    shown = capsys.readouterr().out
    assert shown.startswith("it is wide\n(")
    assert shown.endswith("printed something, too.)\n")


def test_an_answer_that_prints_nothing_adds_nothing(
    check_printing_answer: Callable[..., Report], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_printing_answer().passed
    assert capsys.readouterr().out == ""


def test_while_a_debugger_looks_on_everything_is_shown(
    check_printing_answer: Callable[..., Report], capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        check_printing_answer(print_always)
    finally:
        sys.settrace(before)
    assert capsys.readouterr().out.count("the shape is") > 2
