"""What an answer prints: the first call's lines, and how many more there were."""

from __future__ import annotations

import re
import sys

import pytest
from torch import Tensor

from exercise_kit.engine import check
from vit_course.patches import patchify


def printing(images: Tensor, patch_size: int) -> Tensor:
    print("the shape is", tuple(images.shape))
    print("the patch is", patch_size)
    return patchify(images, patch_size)


def printing_more_for_tall_ones(images: Tensor, patch_size: int) -> Tensor:
    if images.shape[2] > images.shape[3]:
        print("it is", end=" ")
        print("tall", end="")
    elif images.shape[0] == 1:
        print("one\n" * 3, end="")
    return patchify(images, patch_size)


def test_only_the_first_call_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.stdout
    assert check("patchify", printing).passed
    first, second, more = capsys.readouterr().out.splitlines()
    assert first.startswith("the shape is (")
    assert second.startswith("the patch is ")
    assert re.fullmatch(r"\(\d\d more calls printed (as much|something, too)\.\)", more)
    assert sys.stdout is before


def test_calls_that_print_something_else_are_counted_too(capsys: pytest.CaptureFixture[str]) -> None:
    check("patchify", printing_more_for_tall_ones)
    shown = capsys.readouterr().out
    assert shown.startswith("it is tall\n(")
    assert shown.endswith("more calls printed something, too.)\n")


def test_an_answer_that_prints_nothing_adds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    check("patchify", patchify)
    assert capsys.readouterr().out == ""


def test_while_a_debugger_looks_on_everything_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        check("patchify", printing)
    finally:
        sys.settrace(before)
    assert capsys.readouterr().out.count("the shape is") > 10
