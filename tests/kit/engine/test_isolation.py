"""No trace is left: nothing on stderr, no global setting changed, and none that matters."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine import check
from exercise_kit.engine.student import Student
from exercise_kit.engine.verdict import Failure


@pytest.mark.parametrize(
    "noise",
    [
        lambda: print("a line", file=sys.stderr),
        lambda: warnings.warn("careful", stacklevel=1),
        lambda: logging.getLogger("student").error("careful"),
        lambda: os.write(2, b"from C\n"),
        lambda: os.system("echo from a child >&2"),
        lambda: torch.tensor([1.0], requires_grad=True).sum().backward(create_graph=True),
    ],
    ids=["print", "warn", "log", "descriptor", "child", "torch"],
)
def test_nothing_reaches_stderr(
    numbers_course_answers: Any, noise: Callable[[], object], capfd: pytest.CaptureFixture[str]
) -> None:
    handler = logging.StreamHandler(sys.stderr)  # as basicConfig in an earlier cell leaves one
    logging.getLogger("student").addHandler(handler)
    try:
        report = check("moving_average", lambda *given: (noise(), numbers_course_answers.moving_average(*given))[1])
    finally:
        logging.getLogger("student").removeHandler(handler)
    assert report.passed, str(report)
    assert capfd.readouterr().err == ""
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "after\n"
    assert logging.root.manager.disable == 0


async def promised(values: Tensor, width: int) -> Tensor:
    return values.unfold(1, width, 1).mean(dim=2)


def yield_means(values: Tensor, width: int) -> Iterator[Tensor]:
    yield values.unfold(1, width, 1).mean(dim=2)


@pytest.mark.parametrize(("function", "word"), [(promised, "`async`"), (yield_means, "`yield`")])
@pytest.mark.filterwarnings("error")
@pytest.mark.usefixtures("numbers_course_answers")
def test_functions_that_only_promise_an_answer_earn_nothing_for_it(function: Callable[..., Any], word: str) -> None:
    report = check("moving_average", function)
    assert all(each.verdict != "pass" for each in report.results)
    assert word in report.results[0].look


GLOBALS: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "dtype": (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
    "device": (lambda: torch.set_default_device("meta"), lambda: torch.empty(1).device),
    "gradients": (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
    "threads": (lambda: torch.set_num_threads(torch.get_num_threads() + 1), torch.get_num_threads),
    "seed": (lambda: torch.manual_seed(5), lambda: torch.get_rng_state().sum()),
    "warnings": (lambda: warnings.simplefilter("error"), lambda: len(warnings.filters)),
    "depth": (lambda: sys.setrecursionlimit(5000), sys.getrecursionlimit),
}


def make_class_that_changes(right: type[nn.Module], change: Callable[[], object]) -> type[nn.Module]:
    """A right Standardize that first does something, in each method."""

    class Standardize(right):
        def __init__(self, num_features: int) -> None:
            super().__init__(num_features)
            change()

        def forward(self, x: Tensor) -> Tensor:
            standardized = super().forward(x)
            change()
            return standardized

    return Standardize


@pytest.mark.parametrize(("change", "read"), GLOBALS.values(), ids=GLOBALS)
def test_global_settings_neither_matter_nor_stay_changed(
    numbers_course_answers: Any, change: Callable[[], object], read: Callable[[], object]
) -> None:
    before = read()
    for report in (
        check("moving_average", lambda *given: (numbers_course_answers.moving_average(*given), change())[0]),
        check("Standardize", make_class_that_changes(numbers_course_answers.Standardize, change)),
    ):
        assert report.passed, str(report)
        assert read() == before


@contextmanager
def apply_and_undo(change: Callable[[], object], back: Callable[[], object]) -> Iterator[None]:
    change()
    try:
        yield
    finally:
        back()


@pytest.mark.parametrize(
    "around",
    [
        lambda: apply_and_undo(
            lambda: torch.set_default_dtype(torch.float64), lambda: torch.set_default_dtype(torch.float32)
        ),
        lambda: apply_and_undo(lambda: torch.set_default_device("meta"), lambda: torch.set_default_device(None)),
        lambda: torch.device("meta"),
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        lambda: apply_and_undo(lambda: warnings.simplefilter("error"), warnings.resetwarnings),
    ],
    ids=["dtype", "device", "with device", "no_grad", "inference", "autocast", "warnings"],
)
def test_settings_of_the_notebook_do_not_matter(numbers_course_answers: Any, around: Callable[[], Any]) -> None:
    with warnings.catch_warnings(), around():
        before = torch.get_default_device(), torch.get_default_dtype(), torch.is_grad_enabled()
        report = check("Standardize", numbers_course_answers.Standardize)
        assert (torch.get_default_device(), torch.get_default_dtype(), torch.is_grad_enabled()) == before
    assert report.passed, str(report)
    assert torch.empty(1).device.type == "cpu"


def call_as_student(function: Callable[[], object]) -> object:
    return Student({"function": function})()


@pytest.mark.parametrize("name", sorted(GLOBALS.keys() - {"seed"}))  # random numbers go on from call to call
def test_global_settings_are_put_back_after_every_call(name: str) -> None:
    change, read = GLOBALS[name]
    before = read()
    call_as_student(lambda: (change(), 0)[1])
    assert read() == before
    with pytest.raises(Failure):
        call_as_student(lambda: (change(), 1 / 0)[1])
    assert read() == before
