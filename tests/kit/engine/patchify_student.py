"""A student whose patchify is any function, and how a call of it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure
from vit_course.patches import patchify

INPUT = torch.arange(6.0).reshape(2, 3)


def make_student(function: Callable[..., Any]) -> Student:
    return Student({"patchify": function})


def find_failure(function: Callable[..., Any], *inputs: Any) -> Failure:
    with pytest.raises(Failure) as caught:
        make_student(function)(*(inputs or (INPUT, 2)))
    return caught.value


def change_patchify_result(change: Callable[[Tensor], Any]) -> Callable[..., Any]:
    """The right patchify, and something done to its result."""

    def patchify_and_more(images: Tensor, patch_size: int) -> Any:
        return change(patchify(images, patch_size))

    return patchify_and_more


def make_raising_patchify(error: BaseException | type[BaseException]) -> Callable[..., None]:
    def patchify(*_: object) -> None:
        raise error

    return patchify
