"""What check() was given, and what it says when it cannot work with it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine import check
from exercise_kit.engine.rendering import render_html
from exercise_kit.engine.verdict import Verdict
from vit_course.patches import patchify


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), 'Which exercise? Give its name, and what you wrote for it: `check("normalize_images", normalize_images)`'),
        ((" ", patchify), "Which exercise?"),
        (("patchfy", patchify), 'There is no exercise called `patchfy`. Did you mean `check("patchify", patchify)`?'),
        (("PatchFy", patchify), 'Did you mean `check("patchify", patchify)`?'),
        (("patch_embedding", patchify), 'Did you mean `check("PatchEmbedding", PatchEmbedding)`?'),
        (("qqqqqq", patchify), "There are: normalize_images, patchify"),
        (("<script>" * 1000, patchify), "There is no exercise called `<script>"),
        ((patchify,), 'The name of the exercise comes first, in quotes: `check("patchify", patchify)`'),
        ((patchify, "patchify"), 'in quotes: `check("patchify", patchify)`. This is the function patchify.'),
        ((nn.Linear, "PatchEmbedding"), '`check("PatchEmbedding", PatchEmbedding)`. This is the class Linear.'),
        ((3, patchify), "This is the int `3`."),
        (("patchify",), "patchify needs one function to check. Nothing was given."),
        (("patchify", patchify, patchify), "patchify needs one function to check. 2 were given."),
        (("split_heads", patchify), "split_heads needs 2 functions to check. Only one was given."),
        (("patchify", torch.zeros(2)), "this is a Tensor. Give the function itself, without calling it"),
        (("patchify", None), "this is None. Write"),
        (("patchify", "patchify"), "this is the text `'patchify'`. Leave out the quotes"),
        (("patchify", nn.Linear), "patchify has to be a function, and this is the class Linear"),
        (("PatchEmbedding", nn.Linear(2, 2)), "this is a module (Linear). Give the class itself, without building it"),
        (("PatchEmbedding", patchify), "PatchEmbedding has to be a class, and this is the function patchify"),
        (("PatchEmbedding", functools.partial(nn.Linear)), "this is a partial"),
        (("patchify", lambda images: images), "called as `patchify(images, patch_size)`, but yours takes `(images)`"),
        (("patchify", lambda images, patch_size, stride: images), "yours takes `(images, patch_size, stride)`"),
        (("patchify", lambda images, *, patch_size=2: images), "yours takes `(images, *, patch_size=2)`"),
        (("PatchEmbedding", type("Small", (nn.Module,), {"__init__": lambda self, dim: None})), "takes `(dim)`"),
    ],
)
def test_what_cannot_be_checked_is_said_in_words(arguments: tuple[Any, ...], said: str) -> None:
    report = check(*arguments, points=4)
    assert said in report.problem
    assert (report.score, report.passed, report.results) == (0, False, ())
    assert len(str(report)) < 1000
    assert "<script>" not in render_html(report)


def test_two_functions_in_the_wrong_order_are_reported_so() -> None:
    def split_heads(x: Tensor, num_heads: int) -> Tensor:
        return x

    def merge_heads(heads: Tensor) -> Tensor:
        return heads

    assert "wrong order" in check("split_heads", merge_heads, split_heads).problem


@pytest.mark.parametrize("name", ["PATCHIFY", " patchify "])
def test_case_and_spaces_around_a_name_are_forgiven(name: str) -> None:
    assert check(name, patchify).exercise == "patchify"


class Cutter:
    """An object that can be called."""

    def __call__(self, images: Tensor, patch_size: int) -> Tensor:
        return patchify(images, patch_size)


def wrap_in_no_grad() -> Callable[..., Tensor]:
    return torch.no_grad()(patchify)


def compile_by_torchscript() -> Callable[..., Tensor]:
    def cut(images: Tensor, patch_size: int) -> Tensor:
        if images.size(2) % patch_size != 0 or images.size(3) % patch_size != 0:
            raise ValueError(str(images.size(2)) + " " + str(images.size(3)) + " " + str(patch_size))
        patches = images.unfold(2, patch_size, patch_size).unfold(3, patch_size, patch_size)
        return patches.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(cut)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lambda images, patch_size: patchify(images, patch_size),
        lambda: lambda *inputs: patchify(*inputs),
        lambda: functools.partial(patchify),
        lambda: Cutter(),
        lambda: Cutter().__call__,
        lambda: functools.lru_cache(functools.wraps(patchify)(lambda *inputs: patchify(*inputs))),
        wrap_in_no_grad,
        compile_by_torchscript,
    ],
    ids=["lambda", "star", "partial", "object", "method", "decorated", "no_grad", "torchscript"],
)
def test_whatever_can_be_called_is_called(make: Callable[[], Callable[..., Tensor]]) -> None:
    report = check("patchify", make())
    failed = [each.name for each in report.results if each.verdict != Verdict.PASS]
    # "gradients get through", says the text
    assert set(failed) == ({"every_pixel_gets_its_gradient"} if make is wrap_in_no_grad else set()), str(report)
