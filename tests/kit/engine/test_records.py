"""Odd answers: made plain, named by their kind, recorded, and failed in words by a whole run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exercise_kit.engine import check
from exercise_kit.engine.records import is_same_record, take_snapshot
from exercise_kit.engine.rendering import render_html
from exercise_kit.engine.verdict import Verdict
from tests.kit.engine.patchify_student import INPUT, change_patchify_result, find_failure, make_student


class Raising(Tensor):
    """Its operators raise."""

    @classmethod
    def __torch_function__(cls, *_: object) -> object:
        raise RuntimeError("<script>hands off</script>")


class Dispatcher(Tensor):
    """A subclass below torch's functions, which no check can look into."""

    @staticmethod
    def __new__(cls, like: Tensor) -> Tensor:
        return Tensor._make_wrapper_subclass(cls, like.shape)

    @classmethod
    def __torch_dispatch__(cls, *_: object) -> object:
        raise RuntimeError("hands off")


def test_answers_come_as_plain_tensors() -> None:
    for function in (lambda x: x.as_subclass(Raising), nn.Buffer):
        answer = make_student(function)(INPUT)
        assert type(answer) is Tensor
        assert torch.equal(answer, INPUT)
    output, (weights,) = make_student(lambda x: (x.as_subclass(Raising), [x.as_subclass(Raising)]))(INPUT)
    assert type(output) is type(weights) is Tensor
    leaf = make_student(lambda x: nn.Parameter(x).as_subclass(Raising))(INPUT)
    assert leaf.requires_grad


@pytest.mark.parametrize(
    ("odd", "seen"),
    [
        (lambda x: x.to("meta"), "a tensor on the device meta"),
        (lambda x: x.to_sparse(), "a tensor of layout sparse_coo"),
        (lambda x: x.to_sparse_csr(), "a tensor of layout sparse_csr"),
        (lambda x: x.to_mkldnn(), "a tensor of layout _mkldnn"),
        (lambda x: x.to(torch.complex64), "a tensor of dtype complex64"),
        (lambda x: x.to(torch.float8_e4m3fn), "a tensor of dtype float8_e4m3fn"),
        (lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "a tensor of dtype qint8"),
        (lambda x: torch.nested.nested_tensor([x, x]), "a nested tensor"),
        (Dispatcher, "a Dispatcher"),
        (lambda x: (x, x.to("meta")), "a tensor on the device meta"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_that_cannot_be_compared_is_reported_by_its_kind(odd: Callable[[Tensor], object], seen: str) -> None:
    found = find_failure(odd, INPUT)
    assert found.seen == f"patchify gave {seen}"
    assert found.expected


def test_big_and_deep_answers_are_kept_short() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    circle: list[Any] = []
    circle.append(circle)
    for answer in (deep, circle, [[0.0] * 1000] * 1000, "x" * 10**6, 10**5000):
        mine = make_student(lambda: answer)  # noqa: B023
        mine()
        assert is_same_record(mine.record, copy.copy(mine.record))


def test_records_are_compared_by_numbers() -> None:
    def find_record(function: Callable[..., Any]) -> list[object]:
        mine = make_student(function)
        mine(INPUT)
        return mine.record

    half = find_record(lambda x: (x / 0, [x.sum(), None, "text"]))
    assert is_same_record(half, find_record(lambda x: (x / 0, (x.sum() + 1e-7, None, "text"))))
    assert not is_same_record(half, find_record(lambda x: (x / 0, (x.sum() + 1, None, "text"))))
    assert not is_same_record(find_record(lambda x: x), find_record(lambda x: x.double()))
    assert not is_same_record(find_record(lambda x: x), find_record(lambda x: x[None]))
    assert not is_same_record(find_record(lambda x: True), find_record(lambda x: 1))
    assert not is_same_record([INPUT.to("meta")], [INPUT.to("meta")])
    assert not is_same_record([INPUT.to_sparse()], [INPUT])


class Lying(Tensor):
    """Says that it equals everything."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        return True if "eq" in str(function) or "close" in str(function) else super().__torch_function__(
            function, types, arguments, options
        )  # fmt: skip


class Nameless:
    """Nothing about it can be asked."""

    @property
    def __class__(self) -> type:
        raise ValueError("no class")

    def __repr__(self) -> str:
        raise ValueError("no text")


def nest_lists_deeply(_: Tensor) -> list[Any]:
    deep: list[Any] = []
    for _number in range(100_000):
        deep = [deep]
    return deep


ODD: dict[str, Callable[[Tensor], object]] = {
    "None": lambda x: None,
    "another device": lambda x: x.to("meta"),
    "complex": lambda x: x.to(torch.complex64),
    "lying zeros": lambda x: torch.zeros_like(x).as_subclass(Lying),
    "raising zeros": lambda x: torch.zeros_like(x).as_subclass(Raising),
    "a number": lambda x: x.sum(),
    "numpy": lambda x: x.numpy(),
    "NaN": lambda x: x * float("nan"),
    "infinity": lambda x: x / 0,
    "zeros": lambda x: -0.0 * x,
    "empty": lambda x: x[:0],
    "list": lambda x: x.tolist(),
    "tower": nest_lists_deeply,
    "text": lambda x: "x" * 10**6,
    "nameless": lambda x: Nameless(),
    "generator": lambda x: (each for each in x),
    "module": lambda x: nn.Linear(2, 2),
    "class": lambda x: Nameless,
    "bool": lambda x: x.bool(),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
@pytest.mark.filterwarnings("ignore")
def test_an_odd_answer_fails_in_words(change: Callable[[Tensor], object]) -> None:
    report = check("patchify", change_patchify_result(change), points=7)
    assert report.problem is None
    assert 0 <= report.score <= 3
    assert Verdict.FAIL in {each.verdict for each in report.results}
    assert all(each.waits for each in report.results if each.verdict == Verdict.UNDECIDED)
    assert all(each.seen for each in report.results if each.verdict == Verdict.FAIL)
    assert not report.misconceptions
    assert "Traceback" not in str(report)
    assert "<script>" not in render_html(report)


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.as_subclass(Raising),
        lambda x: x.clone().mT.contiguous().mT,
        lambda x: x.requires_grad_() if x.is_floating_point() else x,
    ],
    ids=["subclass", "strides", "gradient required"],
)
def test_right_numbers_pass_whatever_they_are_wrapped_in(change: Callable[[Tensor], object]) -> None:
    report = check("patchify", change_patchify_result(change))
    assert report.passed, str(report)


def test_a_giant_tensor_is_on_record_by_its_shape() -> None:
    kept = take_snapshot((torch.zeros(1).expand(1 << 21), torch.zeros(2)))
    assert isinstance(kept, tuple)
    assert kept[0] == ("a large tensor", (1 << 21,), "float32")
    assert torch.equal(kept[1], torch.zeros(2))


def test_floats_are_compared_up_to_rounding_as_tensors_are() -> None:
    assert is_same_record([(-1.0, float("nan"))], [(-1.0000001192092896, float("nan"))])
    assert not is_same_record([1.0], [1.00001])
    assert not is_same_record([1.0], [1])
