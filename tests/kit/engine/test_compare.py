"""Comparing tensors: what counts as equal, and what a student reads when they are not."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import Tensor

from exercise_kit.engine.compare import are_close, expect_equal, expect_tensor, format_shape
from exercise_kit.engine.verdict import Failure

AXES = ("image", "token", "feature")


def make_numbers(*size: int, seed: int = 0) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(seed))


def find_failure(actual: object, expected: Tensor, **options: object) -> Failure:
    with pytest.raises(Failure) as caught:
        expect_equal(actual, expected, "patchify", AXES, **options)  # type: ignore[arg-type]
    assert caught.value.seen.startswith("patchify")
    return caught.value


def test_equal_tensors_pass() -> None:
    right = make_numbers(2, 3, 4)
    for same in (right, right.clone().requires_grad_(), right + 1e-6, right.mT.contiguous().mT, right.neg().neg()):
        expect_equal(same, right, "patchify")
    expect_equal(torch.tensor([-0.0, 1.0]), torch.tensor([0.0, 1.0]), "patchify")
    expect_equal(torch.tensor(3), torch.tensor(3), "the number")
    expect_equal(torch.tensor([True, False]), torch.tensor([True, False]), "the mask")
    expect_equal(right.double(), right, "patchify", any_float=True)
    expect_equal(torch.empty(0, 3), torch.empty(0, 3), "patchify")


@pytest.mark.parametrize(
    ("answer", "seen", "look"),
    [
        (None, "is None", "return"),
        ([[1.0, 2.0]], "is a list of 1 element", "return"),
        ((make_numbers(2), make_numbers(2)), "is a tuple of 2 elements", "return"),
        (3.5, "is the float `3.5`", "return"),
        ("tokens", "is the text `'tokens'`", "return"),
        (np.zeros(3), "is a NumPy array", "return"),
        (torch.nn.Linear, "is the class Linear", "brackets"),
        (torch.relu, "is the function relu", "brackets"),
        ((each for each in ()), "is a generator", "yield"),
        ({}, "is a dict", "return"),
        (OSError(), "is an OSError", "return"),
        ([[]] * 10**6, "is a list of 1000000 elements", "return"),
    ],
    ids=lambda value: re.sub(r"\W+", " ", value) if isinstance(value, str) else "",
)
def test_what_is_no_tensor_is_reported_by_its_kind(answer: object, seen: str, look: str) -> None:
    found = find_failure(answer, make_numbers(2, 3, 4))
    assert found.seen == f"patchify {seen}"
    assert found.expected == "a tensor of shape (2, 3, 4)"
    assert look in found.look


@pytest.mark.parametrize(
    ("size", "wanted", "expected"),
    [
        ((2, 4, 3), (2, 3, 4), "(2, 3, 4): the same sizes in another order"),
        ((2, 12), (2, 3, 4), "(2, 3, 4), with 3 axes"),
        ((1, 4), (4,), "(4,), with 1 axis"),
        ((2, 3, 5), (2, 3, 4), "(2, 3, 4)"),
        ((1,), (), "(), a single number"),
    ],
)
def test_a_wrong_shape_says_both(size: tuple[int, ...], wanted: tuple[int, ...], expected: str) -> None:
    with pytest.raises(Failure) as caught:
        expect_tensor(make_numbers(*size), wanted, "patchify")
    assert caught.value.seen == f"patchify has the shape {format_shape(size)}"
    assert caught.value.expected == expected


def test_a_single_number_is_called_one() -> None:
    assert find_failure(torch.tensor(2.0), make_numbers(3)).seen == "patchify has the shape (), a single number"
    found = find_failure(torch.tensor(2.0), torch.tensor(3.5))
    assert found.seen == "patchify has the shape (), as expected, but its value is 2"
    assert found.expected == "3.5"
    assert find_failure(None, torch.tensor(3.5)).expected == "a tensor of shape (), a single number"


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn])
def test_a_wrong_dtype_says_both(dtype: torch.dtype) -> None:
    found = find_failure(make_numbers(2, 3).to(dtype), make_numbers(2, 3))
    assert found.seen == f"patchify has dtype {str(dtype).removeprefix('torch.')}"
    assert found.expected == "float32, the dtype of the input"


def test_integers_and_bools_are_compared_exactly() -> None:
    assert find_failure(torch.tensor([1, 3]), torch.tensor([1, 2])).expected == "2 there"
    found = find_failure(torch.tensor([True, True, False]), torch.tensor([True, False, False]))
    assert (found.seen.endswith("the first is at index [1]: True"), found.expected) == (True, "False there")
    assert find_failure(torch.tensor([1.0, 0.0]), torch.tensor([True, False])).expected == "bool"
    assert not are_close(torch.tensor([1.7]), torch.tensor([1]))
    assert not are_close(torch.tensor([2]), torch.tensor([True]))
    assert not are_close(torch.tensor([2**53 + 1]), torch.tensor([2**53]))


def test_a_wrong_device_says_both() -> None:
    found = find_failure(torch.empty(2, 3, device="meta"), make_numbers(2, 3))
    assert (found.seen, found.expected) == ("patchify lies on meta", "cpu, where the input lies")


def test_nothing_but_zeros_says_that_nobody_wrote() -> None:
    def describe(*_: Tensor) -> tuple[str, str]:
        return "token 0 is the pixel of image 0", "another"

    for zeros in (torch.zeros(2, 3, 4), torch.zeros(2, 3, 4) * -1.0):
        found = find_failure(zeros, make_numbers(2, 3, 4), describe=describe, look="Which axis is fastest?")
        assert "every value is 0" in found.seen
        assert found.look.endswith("?")
        assert "run" in found.look


@pytest.mark.parametrize(
    ("number", "kind"), [(float("nan"), "NaN (not a number)"), (float("inf"), "infinite"), (-float("inf"), "infinite")]
)
def test_numbers_that_are_none_come_before_all_else(number: float, kind: str) -> None:
    def describe(actual: Tensor, _: Tensor) -> tuple[str, str]:
        return f"pixel {int(actual.sum())}", "another"  # int(nan) raises

    wrong = make_numbers(2, 3, 4)
    wrong[0, 1, 2] = number
    found = find_failure(wrong, make_numbers(2, 3, 4), describe=describe)
    assert found.seen.endswith(f"1 of its 24 values is {kind}; the first is at image 0, token 1, feature 2")
    assert found.look
    wrong[:, 1:] = number
    assert f"67 % of its values are {kind}" in find_failure(wrong, make_numbers(2, 3, 4)).seen


@pytest.mark.parametrize(
    ("wrong", "seen", "expected"),
    [
        (lambda x: 2 * x, "every value is 2 times what it should be", "a factor of 1"),
        (lambda x: -x, "every value is -1 times what it should be", "a factor of 1"),
        (lambda x: x / 3, "every value is 0.3333 times what it should be", "a factor of 1"),
        (lambda x: x + 1, "every value is 1 too large", "a difference of 0"),
        (lambda x: x - 0.25, "every value is 0.25 too small", "a difference of 0"),
        (lambda x: torch.full_like(x, 0.5), "every value is 0.5", "values that differ from each other"),
        (lambda x: x.flip(2), "the right values stand in other places; the first is at image 0, token 0, feature 0",
         "there"),
        (lambda x: torch.cat([x[:1], make_numbers(1, 3, 4, seed=1)]), "50 % of its values differ, only in image 1",
         "there"),
        (lambda x: torch.cat([x[:, :1], make_numbers(2, 2, 4, seed=1)], 1),
         "everywhere but in token 0; the first is at image 0, "
         "token 1, feature 0", "there"),
    ],
)  # fmt: skip
def test_a_pattern_is_reported_in_one_sentence(wrong: object, seen: str, expected: str) -> None:
    right = make_numbers(2, 3, 4)
    found = find_failure(wrong(right), right)  # type: ignore[operator]
    assert seen in found.seen
    assert found.expected.endswith(expected)


@pytest.mark.parametrize(
    ("here", "there", "seen", "expected"),
    [
        (0.562183, 53.0153503, "0.5622", "53.02 there"),
        (7.0, 1440.0, "7", "1440 there"),
        (1.0, 1.0002, "1", "1.0002 there"),
        (123456.0, 123457.0, "123456", "123457 there"),
        (1e-7, 1.0, "1e-07", "1 there"),
        (1e12, 1.0, "1e+12", "1 there"),
    ],
)
def test_two_numbers_have_as_few_digits_as_distinguish_them(
    here: float, there: float, seen: str, expected: str
) -> None:
    right = make_numbers(1, 2, 4).double()
    wrong = right.clone()
    wrong[0, 1, 2], right[0, 1, 2] = here, there
    found = find_failure(wrong, right)
    assert found.seen.endswith(f"1 of its 8 values differs, only in token 1; the first is at image 0, token 1, "
                              f"feature 2: {seen}")  # fmt: skip
    assert found.expected == expected
    assert found.look.endswith("?"), "though the check has no question of its own"


def test_the_checks_own_words_come_first_where_it_has_any() -> None:
    right = make_numbers(2, 3, 4)
    wrong = right.flip(1)
    assert (
        "token 0 is token 2" in find_failure(wrong, right, describe=lambda *_: ("token 0 is token 2", "token 0")).seen
    )
    assert "other places" in find_failure(wrong, right, describe=lambda *_: None).seen
    assert "other places" in find_failure(wrong, right, describe=lambda actual, _: actual[[9]]).seen
    counted = torch.arange(24.0).reshape(2, 3, 4)  # whose rows in other places are off by one number each
    assert (
        "token 0 is token 2"
        in find_failure(counted.flip(1), counted, describe=lambda *_: ("token 0 is token 2", "")).seen
    )


def test_words_of_a_check_get_numbers_without_a_graph() -> None:
    def describe(actual: Tensor, expected: Tensor) -> tuple[str, str]:
        return f"it starts with {actual.numpy()[0, 0, 0]}", f"{expected.numpy()[0, 0, 0]}"

    found = find_failure(make_numbers(2, 3, 4, seed=1).requires_grad_(), make_numbers(2, 3, 4), describe=describe)
    assert "it starts with" in found.seen


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_may_round(dtype: torch.dtype) -> None:
    right = make_numbers(2, 3, 4).to(dtype)
    assert are_close(right * 1.005, right)
    assert not are_close(right * 1.5, right)


def make_attention_weights(*shape: int) -> Tensor:
    return make_numbers(*shape).abs().softmax(-1)


def test_rows_that_should_sum_to_one_are_named() -> None:
    right = make_attention_weights(2, 3, 4)
    found = find_failure(right * torch.tensor([0.5, 2.0, 3.0])[:, None], right)
    assert found.seen.endswith("none of its rows sums to 1; the first, at image 0, token 0, sums to 0.5")
    assert found.expected == "1 for every row"
    wrong = right.clone()
    wrong[1, 2] = torch.tensor([0.5, 0.5, 0.5, 0.25])
    found = find_failure(wrong, right)
    assert found.seen.endswith("1 of its 6 rows does not sum to 1; the first, at image 1, token 2, sums to 1.75")


def test_the_axis_that_does_sum_to_one_is_named() -> None:
    right = make_attention_weights(2, 3, 4)
    wrong = make_numbers(2, 3, 4, seed=1).softmax(1)
    seen = find_failure(wrong, right).seen
    assert "none of its rows sums to 1; they do along the axis of the token; the first, at image 0" in seen


def test_rows_that_never_summed_to_one_are_not_evaluated_to() -> None:
    assert "sum to 1" not in find_failure(make_numbers(2, 3, 4, seed=1), make_numbers(2, 3, 4)).seen
    assert "sum to 1" not in find_failure(make_attention_weights(2, 3, 4).flip(1), make_attention_weights(2, 3, 4)).seen
