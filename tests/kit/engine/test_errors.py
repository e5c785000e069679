"""A student's exceptions in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

from exercise_kit.engine.records import is_same_record
from exercise_kit.engine.verdict import Failure, NotWritten
from tests.kit.engine.patchify_student import INPUT, find_failure, make_raising_patchify, make_student


class Wordless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


def endless(*inputs: object) -> object:
    return endless(*inputs)


@pytest.mark.parametrize(
    ("function", "seen", "look"),
    [
        (
            make_raising_patchify(ValueError("height 3")),
            "patchify raised ValueError: `height 3`, at `raise error`",
            "line",
        ),
        (make_raising_patchify(SystemExit), "patchify raised SystemExit, at", "return"),
        (make_raising_patchify(BaseException("odd")), "patchify raised BaseException: `odd`", "line"),
        (make_raising_patchify(GeneratorExit), "patchify raised GeneratorExit, at", "line"),
        (make_raising_patchify(Wordless()), "patchify raised Wordless, at", "line"),
        (make_raising_patchify(MemoryError()), "patchify raised MemoryError, at", "line"),
        (lambda *_: sys.exit("bye"), "patchify raised SystemExit: `bye`, at", "return"),
        (endless, "patchify raised RecursionError", "itself"),
        (lambda images: images, "patchify raised TypeError", "line"),
        (make_raising_patchify(ValueError("first\nsecond")), "patchify raised ValueError: `first`, at", "line"),
        (
            make_raising_patchify(ValueError("a `tick` \x1b[31m \ud800 end")),
            "ValueError: `a 'tick'  [31m   end`, at",
            "line",
        ),
        (make_raising_patchify(ValueError("x" * 10_000)), "x" * 200 + " …`, at `raise error`", "line"),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_an_exception_becomes_words(function: Callable[..., Any], seen: str, look: str) -> None:
    found = find_failure(function)
    assert seen in found.seen
    assert len(found.seen) < 500
    found.seen.encode()
    assert not isinstance(found, NotWritten)
    assert found.expected == "no error when called with a tensor of shape (2, 3), 2"
    assert look in found.look


@pytest.mark.parametrize(
    ("function", "look"),
    [
        (lambda x: x + torch.zeros(7), "Which sizes differ?"),
        (lambda x: x.reshape(2, 6 / 2), "Which of Python's two divisions"),
        (lambda x: len(x) / 0, "Which divisor on that line is 0"),
        (lambda x: x.permute(0, 0), "Which axis is named twice"),
        (lambda x: setattr(torch.nn.Linear(3, 2), "weight", x), "get into the one that is there"),
        (lambda x: torch.relu(x.shape[0]), "What is given to that function"),
    ],
)
def test_what_torch_and_python_say_often_leads_to_a_question(function: Callable[..., Any], look: str) -> None:
    """Beside the errors of tests/course/test_usual_errors.py."""
    assert look in find_failure(function, INPUT).look


def test_a_refusal_of_a_right_input_asks_for_the_test_before_it() -> None:
    def refuses(images: torch.Tensor, size: int) -> None:
        raise ValueError("images must be square")

    def unpacks(images: torch.Tensor, size: int) -> list[int]:
        return [rows for rows, _, _ in [images.shape]]

    assert "What does your own test compare" in find_failure(refuses).look
    assert "What does your own test compare" not in find_failure(unpacks).look


def test_only_the_students_own_not_implemented_means_not_written() -> None:
    def unwritten(*_: object) -> None:
        raise NotImplementedError

    def unwritten_with_a_word(*_: object) -> None:
        raise NotImplementedError("later")

    assert isinstance(find_failure(unwritten), NotWritten)
    assert isinstance(find_failure(unwritten_with_a_word), NotWritten)
    found = find_failure(lambda images, _: images.byte().softmax(-1))  # torch has no kernel for it
    assert not isinstance(found, NotWritten)
    assert "NotImplementedError" in found.seen
    with pytest.raises(NotWritten):
        make_student(unwritten).catch_error(INPUT)


def find_record(function: Callable[..., Any], inputs: tuple[object, ...] = (INPUT,)) -> list[object]:
    """What is on record of a call that raises."""
    mine = make_student(function)
    with pytest.raises(Failure):
        mine(*inputs)
    return mine.record


def test_errors_of_one_type_are_distinguished_by_their_words() -> None:
    assert is_same_record(
        find_record(lambda x: x.view(4, 4)), find_record(lambda x: x.reshape(2, 2, 4))
    )  # two ways, one mistake
    assert not is_same_record(find_record(lambda x: x.view(4, 4)), find_record(lambda x: x.view(4, 5)))
    assert not is_same_record(find_record(lambda x: x.view(4, 4)), find_record(lambda x: x @ x))
    assert not is_same_record(find_record(lambda x: None + 1), find_record(lambda x: len(3)))
    assert is_same_record(find_record(lambda x: [].to(x)), find_record(lambda x: [].clone()))
    assert not is_same_record(find_record(lambda x: [].to(x)), find_record(lambda x: "".to(x)))


def test_an_error_is_the_same_under_any_name_of_the_class() -> None:
    def make_class(name: str) -> type[torch.nn.Module]:
        return type(name, (torch.nn.Module,), {})

    def find_record_of(use: Callable[[type[torch.nn.Module]], object], name: str) -> list[object]:
        return find_record(lambda: use(make_class(name)), ())

    uses: list[Callable[[type[torch.nn.Module]], object]] = [
        lambda made: made().blocks,
        lambda made: made.blocks,
        lambda made: made().get_submodule("blocks.0"),
        lambda made: made()[0],
        lambda made: made()(INPUT),
        lambda made: made("depth"),
        lambda made: made().load_state_dict({"weight": INPUT}),
    ]
    found = [find_record_of(use, "VisionTransformer") for use in uses]
    assert found == [find_record_of(use, "TheSameBlockListedDepthTimes") for use in uses]
    assert len({str(each) for each in found}) == 7
